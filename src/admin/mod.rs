//! Operations on a whole store.
//!
//! - `open`, `upkeep`: opening, closing, flushing, compaction, reclaiming space;
//! - `beside`: a store that is read while another process writes to it;
//! - `stats`, `tables`, `check`: what a store reports about itself;
//! - `backup`, `salvage`: copies of a store, and what can be read of a damaged one.

mod backup;
mod beside;
mod check;
mod open;
mod salvage;
mod stats;
mod tables;
mod upkeep;

pub use stats::{Stat, StatValue};
pub use tables::TableInfo;
