//! An ordered, versioned key-value store with atomic batches over several trees. Knows no Redis.

pub mod batch;
pub mod cache;
pub mod counter;
pub mod entry;
pub mod files;
pub mod health;
pub mod iter;
pub mod memtable;
pub mod sstable;
pub mod wal;
