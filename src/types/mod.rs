//! The commands of Redis, as methods of `Tx`, and their options.
//!
//! - `string`, `bits`, `hash`, `list`, `set`, `zset`: the commands of each type;
//! - `publish`: messages;
//! - `key`, `expire`, `copy`, `databases`, `scan`, `sort`, `object`, `memory`, `random_key`: commands on keys
//!   of any type; `keyspace_sample`: how many keys the databases have, roughly;
//! - `members`: the members of hashes, sets and sorted sets; `packing`: members inside a record;
//!   `ranks`: their positions; `scores`: stored scores; `all_members`, `random_members`: all of them,
//!   or random ones;
//! - `collection_builder`: new collections of any size; `rewrite`: collections without tombstones;
//!   `older_forms`: values that an earlier version has written;
//! - `iterate`: iterators over keys and members that users hold;
//! - `number`, `long_double`: numbers as text.

mod all_members;
pub(crate) mod bits;
mod collection_builder;
mod copy;
mod databases;
mod expire;
mod hash;
mod iterate;
mod key;
pub(crate) mod keyspace_sample;
pub(crate) mod list;
pub(crate) mod long_double;
pub(crate) mod members;
mod memory;
pub(crate) mod number;
mod object;
mod older_forms;
pub(crate) mod packing;
mod publish;
mod random_key;
mod random_members;
mod ranks;
mod rewrite;
mod scan;
pub(crate) mod scores;
mod set;
mod sort;
mod string;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod zset;

pub use crate::encoding::glob::matches as glob_matches;
pub use crate::encoding::meta::Type;
pub use crate::engine::CacheFill;
pub use bits::{BitOp, BitRange, BitSearch, BitUnit, BitfieldOp, FieldAction, FieldType, Overflow};
pub use expire::ExpireIf;
#[cfg(feature = "server")]
pub(crate) use iterate::chunk_of_keys;
pub use iterate::{KeyEntry, KeyIter, KeyRange, Member, MemberIter, MemberRange};
#[doc(hidden)]
pub use keyspace_sample::{KeyFigures, KeyspaceSampler};
pub use list::{InsertPosition, Search, Side};
pub use scan::{Page, ScanOptions};
pub(crate) use set::SetOperation;
pub use sort::{SortBy, SortOptions};
#[cfg(feature = "server")]
pub(crate) use string::StagedString;
#[cfg(feature = "server")]
pub(crate) use string::chunks::StringReader;
pub(crate) use string::chunks::StringValue;
pub use string::{Condition, Expiry, GetExpiry, Lcs, LcsMatch, SetExpiry, SetOptions, SetOutcome};
pub use zset::{Aggregate, By, Combine, End, ZAdd, ZRange};
