//! Commands with options: each reads its own arguments. One file a group of the table.

pub(super) mod key;
pub(super) mod scan;
pub(super) mod sort;
pub(super) mod string;
