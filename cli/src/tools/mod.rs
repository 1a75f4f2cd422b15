//! The subcommands for operators, one file each.

pub(crate) mod atomic_file;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod dump;
pub(crate) mod import_export;
pub(crate) mod input_file;
pub(crate) mod inspect;
pub(crate) mod maintenance;
pub(crate) mod repair;
pub(crate) mod tree;
pub(crate) mod watch;
