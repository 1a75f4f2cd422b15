//! The schema: one entry per command, one file per family.
//!
//! Everything about a command follows from its entry. The library takes locks, key positions and
//! properties from it; the generator (`codegen/`) makes from it the dispatch, the functions of the
//! C ABI, the C++ and Python methods and docs/COMMANDS.md (`make generate`).

pub(crate) mod connection;
mod derive;
mod parameters;
pub(crate) mod spec;

pub(crate) mod bits;
pub(crate) mod blocking;
pub(crate) mod hash;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod message;
pub(crate) mod scan;
pub(crate) mod script;
pub(crate) mod set;
pub(crate) mod sort;
pub(crate) mod string;
pub(crate) mod zset;

use spec::Group;

/// Every command of the store.
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
    script::GROUP,
    blocking::GROUP,
    message::GROUP,
];
