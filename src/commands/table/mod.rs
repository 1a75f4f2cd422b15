//! One row a command. From it follow the dispatch and docs/COMMANDS.md (`make generate`).

use super::spec;

use self::spec::Group;

mod bits;
mod hash;
mod key;
mod list;
mod scan;
mod set;
mod sort;
mod string;
mod zset;

/// Every command.
pub(crate) const GROUPS: &[Group] = &[
    string::GROUP,
    bits::GROUP,
    hash::GROUP,
    list::GROUP,
    set::GROUP,
    zset::GROUP,
    key::GROUP,
    scan::GROUP,
    sort::GROUP,
];
