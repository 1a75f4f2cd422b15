//! The golden table, parsed byte by byte.
