//! Redis semantics over the engine: [`Db`], and one file a type with its commands.
//!
//! - `store`, `txn`: how a command runs: locks, one moment, one time, one batch;
//! - `collection`: members of hashes, sets and sorted sets; `sample`: some of them at random;
//! - `string`, `bits`, `hash`, `list`, `set`, `zset`: the commands of a type;
//! - `key`, `expire`, `copy`, `databases`, `scan`, `sort`, `object`: those of the key space;
//! - `reclaim`, `cleaner`: space that comes back; `check`, `stats`: what a store says of itself;
//! - `spaces`: databases; `times`: expiry; `number`, `long_double`: numbers as text; `cursors`,
//!   `glob`, `limits`, `stripes`: what they need.

pub(crate) mod bits;
mod check;
mod cleaner;
mod collection;
mod copy;
mod cursors;
mod databases;
mod db;
mod expire;
mod glob;
mod hash;
mod key;
mod limits;
pub(crate) mod list;
pub(crate) mod long_double;
pub(crate) mod number;
mod object;
mod random_key;
mod reclaim;
pub(crate) mod sample;
mod scan;
mod set;
mod sort;
mod spaces;
mod stats;
mod store;
mod string;
mod stripes;
mod times;
pub(crate) mod txn;
pub(crate) mod zset;

pub use crate::encoding::meta::Type;
pub use bits::{BitOp, BitRange, BitSearch, BitUnit, BitfieldOp, FieldAction, FieldType, Overflow};
pub use db::Db;
pub use expire::ExpireIf;
pub use limits::Limits;
pub use list::{Place, Search, Side};
pub use scan::{Page, ScanOptions};
pub use sort::{SortBy, SortOptions};
pub use stats::{Stat, StatValue};
pub(crate) use string::common_subsequence;
pub use string::{Condition, Expiry, GetExpiry, Lcs, LcsMatch, SetExpiry, SetOptions, SetOutcome};
pub use zset::{Aggregate, By, Combine, End, ZAdd, ZRange};
