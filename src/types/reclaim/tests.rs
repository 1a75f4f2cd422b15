//! Stories of reclaim.
