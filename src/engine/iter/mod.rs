//! Iterators over a tree: the live keys that one reader sees, in order.
//!
//! - `source`: cursors over a memtable, a table or a sorted level, which an iterator merges;
//! - `tree_iter`: [`Iter`], the visible version of each key within bounds;
//! - `view`: the iterators of a view.

pub(crate) mod source;
mod tree_iter;
mod view;

pub use tree_iter::{Iter, IterOptions};
