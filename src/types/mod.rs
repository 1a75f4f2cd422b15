//! Redis semantics over the engine: [`Db`], and one file a type with its commands.
//!
//! - `store`, `txn`: how a command runs: locks, one moment, one time, one batch;
//! - `collection`: members of hashes, sets and sorted sets;
//! - `string`, `bits`, `hash`, `list`, `set`, `zset`, `key`: the commands;
//! - `spaces`: databases; `times`: expiry; `number`, `long_double`: numbers as text; `limits`,
//!   `stripes`.

pub(crate) mod bits;
mod collection;
mod db;
mod key;
mod limits;
pub(crate) mod long_double;
pub(crate) mod number;
mod spaces;
mod store;
mod string;
mod stripes;
mod times;
pub(crate) mod txn;

pub use crate::encoding::meta::Type;
pub use bits::{BitOp, BitRange, BitSearch, BitUnit, BitfieldOp, FieldAction, FieldType, Overflow};
pub use db::Db;
pub use limits::Limits;
pub(crate) use string::common_subsequence;
pub use string::{Condition, Expiry, GetExpiry, Lcs, LcsMatch, SetExpiry, SetOptions, SetOutcome};
