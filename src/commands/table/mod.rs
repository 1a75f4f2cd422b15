//! One row a command. From it follow the dispatch and docs/COMMANDS.md (`make generate`).

use super::spec;

use self::spec::Group;

mod key;
mod list;
mod string;

/// Every command.
pub(crate) const GROUPS: &[Group] = &[string::GROUP, list::GROUP, key::GROUP];
