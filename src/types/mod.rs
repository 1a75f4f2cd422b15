//! Redis semantics over the engine: [`Db`], and one file a type with its commands.
//!
//! - `store`, `txn`: how a command runs: locks, one moment, one time, one batch;
//! - `view`, `transaction`, `watch`, `ticket`: handles on a moment, and commits of many commands;
//!   `conflicts`, `changed`: whether a key was changed meanwhile;
//! - `collection`: members of hashes, sets and sorted sets; `listing`: all of them; `sample`: some
//!   at random; `build`: collections made anew, of any size;
//! - `string`, `bits`, `hash`, `list`, `set`, `zset`: the commands of a type;
//! - `key`, `expire`, `copy`, `databases`, `scan`, `sort`, `object`: those of the key space;
//! - `iterate`: walks over keys and members that users hold; `backup`: copies of a store;
//! - `reclaim`, `cleaner`: space that comes back; `check`, `stats`: what a store says of itself;
//! - `salvage`: what is left of a damaged one;
//! - `spaces`: databases; `sizes`: how many keys they have; `times`: expiry; `number`,
//!   `long_double`: numbers as text; `cursors`,
//!   `glob`, `limits`, `stripes`: what they need.

mod backup;
pub(crate) mod bits;
mod build;
mod changed;
mod check;
mod cleaner;
mod collection;
mod conflicts;
mod copy;
mod cursors;
mod databases;
mod db;
mod expire;
mod glob;
mod hash;
mod iterate;
mod key;
mod limits;
pub(crate) mod list;
mod listing;
pub(crate) mod long_double;
pub(crate) mod number;
mod object;
mod packing;
mod random_key;
mod reclaim;
mod renew;
mod salvage;
pub(crate) mod sample;
mod scan;
mod set;
mod sizes;
mod sort;
mod spaces;
mod stats;
pub(crate) mod store;
mod string;
mod stripes;
mod survey;
#[cfg(test)]
pub(crate) mod testing;
mod ticket;
mod times;
mod transaction;
pub(crate) mod txn;
mod view;
pub(crate) mod watch;
pub(crate) mod zset;

pub use crate::encoding::meta::Type;
pub use bits::{BitOp, BitRange, BitSearch, BitUnit, BitfieldOp, FieldAction, FieldType, Overflow};
pub use db::Db;
pub use expire::ExpireIf;
pub use glob::matches as glob_matches;
pub use iterate::{KeyEntry, KeyIter, KeyRange, Member, MemberIter, MemberRange};
pub use limits::Limits;
pub use list::{Place, Search, Side};
pub use scan::{Page, ScanOptions};
pub use sort::{SortBy, SortOptions};
pub use stats::{Stat, StatValue};
pub(crate) use store::Done;
pub(crate) use string::common_subsequence;
pub use string::{Condition, Expiry, GetExpiry, Lcs, LcsMatch, SetExpiry, SetOptions, SetOutcome};
pub use survey::TableInfo;
pub use ticket::Ticket;
pub use transaction::Transaction;
pub use zset::{Aggregate, By, Combine, End, ZAdd, ZRange};
