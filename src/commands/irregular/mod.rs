//! Commands with options: each reads its own arguments. One file a group of the table.

pub(super) mod key;
pub(super) mod list;
pub(super) mod string;
