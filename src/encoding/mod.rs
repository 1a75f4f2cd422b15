//! Bytes of the Redis layer: what a key and a record look like inside the engine. Pure
//! functions: no storage, no clock.

pub mod cursors;
pub mod expiry;
pub mod groups;
pub mod keys;
pub mod meta;
pub mod order;
pub mod packed;
pub mod wear;
