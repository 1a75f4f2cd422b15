//! Redis semantics over the engine: [`Db`], and one file a type with its commands.
//!
//! - `store`, `txn`: how a command runs: locks, one moment, one time, one batch;
//! - `collection`: members of hashes, sets and sorted sets; `sample`: some of them at random;
//! - `string`, `hash`, `list`, `set`, `zset`, `key`: the commands;
//! - `reclaim`, `cleaner`: space that comes back; `check`, `stats`: what a store says of itself;
//! - `spaces`: databases; `times`: expiry; `number`: numbers as text; `limits`, `stripes`.

mod check;
mod cleaner;
mod collection;
mod db;
mod hash;
mod key;
mod limits;
pub(crate) mod list;
pub(crate) mod number;
mod reclaim;
pub(crate) mod sample;
mod set;
mod spaces;
mod stats;
mod store;
mod string;
mod stripes;
mod times;
pub(crate) mod txn;
pub(crate) mod zset;

pub use crate::encoding::meta::Type;
pub use db::Db;
pub use limits::Limits;
pub use list::{Place, Search, Side};
pub use stats::{Stat, StatValue};
pub use zset::{Aggregate, By, Combine, End, ZAdd, ZRange};
