//! Commands with options: each reads its own arguments. One file a group of the table.

pub(super) mod bits;
pub(super) mod hash;
pub(super) mod key;
pub(super) mod list;
pub(super) mod scan;
pub(super) mod set;
pub(super) mod sort;
pub(super) mod string;
pub(super) mod zset;
