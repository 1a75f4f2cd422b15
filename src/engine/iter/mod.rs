//! Iteration: the cursor interface, the merge of several cursors, and the user's view of it.

pub mod cursor;
pub mod merge;
mod user;

pub use user::{Iter, IterOptions};
