//! One row a command. From it follow the dispatch, the C
//! functions of regular commands and docs/COMMANDS.md (`make generate`).

use super::spec;

use self::spec::Group;

mod bits;
mod functions;
mod hash;
mod key;
mod list;
mod scan;
mod set;
mod sort;
mod string;
mod zset;

#[allow(unused_imports, reason = "the generator and a test use it")]
pub(crate) use functions::FUNCTIONS;

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
