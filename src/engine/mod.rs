//! An ordered, versioned key-value store with atomic batches over several trees. Knows no Redis.
//!
//! The way of a write: `batch` → `write` (group commit) → `wal` (log) → `memtable`; later `flush`
//! → `sstable` (level 0) → `compact` (`compaction`). The way of a read: `view` → `memtable`s →
//! `sstable`s of the `version`, by level, through the `cache`. What is on disk when: `install`
//! (manifest) and `recovery`.

mod background;
mod batch;
pub mod cache;
mod checkpoint;
mod compact;
pub mod compaction;
mod config;
mod core;
pub mod counter;
pub mod entry;
pub mod files;
mod flush;
mod handle;
pub mod health;
mod install;
pub mod iter;
mod judge;
mod memory;
pub mod memtable;
mod open_files;
mod recovery;
mod salvage;
mod sample;
mod snapshot;
mod source;
pub mod sstable;
mod stats;
mod survey;
mod tables;
mod throttle;
pub mod version;
mod view;
pub mod wal;
mod write;

pub use batch::{Batch, Operation, TreeId};
pub use checkpoint::Progress;
pub use compaction::{Decision, Filter, FilterFactory, FilterJob, Needed, Suspect, Waste};
pub use config::{CollectorFactory, EngineConfig, TreeConfig, WriteOptions};
pub use entry::{Kind, Sequence, Tag, hash_key};
pub use handle::{Engine, Reader, Snapshot};
pub use iter::{Iter, IterOptions};
pub use salvage::{Loss, Observer, Salvaged, salvage};
pub use sample::Sampler;
pub use snapshot::ReservedNumber;
pub use sstable::{Collector, Properties};
pub use stats::{LevelStats, Stats, TreeStats};
pub use survey::Surveyed;
pub use write::Commit;

pub use crate::io::fault::FaultFs;
pub use crate::io::fs::FileSystem;
pub use crate::io::mem::{CrashMode, MemFs};
pub use crate::io::real::RealFs;
