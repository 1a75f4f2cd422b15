//! The encoding of keys and records inside the engine. Pure functions: no storage, no clock.

pub(crate) mod collection_summary;
pub(crate) mod cursors;
pub(crate) mod expiry;
pub mod header;
pub mod keys;
pub mod meta;
pub mod order;
pub mod packed;
pub mod tombstones;
