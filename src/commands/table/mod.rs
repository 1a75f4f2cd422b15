//! One row a command. From it follow the dispatch and docs/COMMANDS.md (`make generate`).

use super::spec;

use self::spec::Group;

mod key;
mod scan;
mod sort;
mod string;

/// Every command.
pub(crate) const GROUPS: &[Group] = &[string::GROUP, key::GROUP, scan::GROUP, sort::GROUP];
