//! The subcommands an operator reaches for, one file each.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod dump;
pub(crate) mod exchange;
pub(crate) mod input;
pub(crate) mod inspect;
pub(crate) mod live;
pub(crate) mod repair;
pub(crate) mod tree;
pub(crate) mod upkeep;
pub(crate) mod watch;
pub(crate) mod whole_file;
