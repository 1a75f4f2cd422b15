//! What an open store knows about its keys as a whole. Each table here stands on its own; commands
//! and compactions share them.
//!
//! - `trees`: the three trees; `spaces`: which keys belong to a database;
//! - `read_clock`: which time each reader sees; `limits`, `packing`: the sizes that options allow;
//! - `errors`: errors about a key's record;
//! - `script_limits`: what a script may take;
//! - `scan_cursors`, `key_counts`: what SCAN and DBSIZE remember;
//! - `cleaner_state`, `reclaimed`: progress of the cleaner and of the compaction filters.

pub(crate) mod cleaner_state;
pub(crate) mod errors;
pub(crate) mod key_counts;
pub(crate) mod limits;
pub(crate) mod packing;
pub(crate) mod read_clock;
pub(crate) mod reclaimed;
pub(crate) mod scan_cursors;
pub(crate) mod script_limits;
pub(crate) mod spaces;
#[cfg(test)]
pub(crate) mod spills;
pub(crate) mod string_layout;
pub(crate) mod trees;
