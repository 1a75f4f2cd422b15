//! An ordered, versioned key-value store with atomic batches over several trees. Knows no Redis.

pub mod cache;
pub mod counter;
pub mod entry;
pub mod files;
pub mod health;
pub mod iter;
pub mod sstable;
pub mod version;
pub mod wal;
