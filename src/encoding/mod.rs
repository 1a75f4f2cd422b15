//! The encoding of keys and records inside the engine, and patterns of keys. Pure functions: no
//! storage, no clock.

pub mod chunked;
pub(crate) mod collection_summary;
pub(crate) mod cursors;
pub(crate) mod expiry;
pub(crate) mod glob;
pub mod header;
pub mod keys;
pub mod meta;
pub mod order;
pub mod packed;
pub mod tombstones;
