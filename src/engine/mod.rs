//! The storage engine: an ordered, versioned key-value store with atomic batches over several
//! trees. It knows nothing of Redis.
//!
//! - A write: `batch` → `write` with group commit (`committer`) → `wal` → `memtable`; later `flush`
//!   → `sstable` (level 0) → `compactor`, which runs the plans of `compaction`.
//! - A read: `reader` → `view` → `memtable`, then the `sstable`s of the `version` by level.
//! - Durability: `edits` writes version edits to the manifest, `recovery` opens a store.
//! - Beside a writer of another process: `refresh` moves on to what it has committed.
//!
//! The modules import each other without cycles, which `tests/layering.rs` checks.

mod activity;
mod background;
mod background_work;
mod batch;
mod checkpoint;
mod committer;
pub mod compaction;
mod compactor;
mod config;
mod core;
pub mod counter;
mod cursor;
mod edits;
pub mod entry;
pub mod files;
mod flush;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod garbage;
mod garbage_estimator;
mod handle;
pub mod hash;
pub mod health;
mod held_inputs;
mod input_wait;

pub mod iter;
mod lasting_reader;
mod log_tail;
mod maintenance;
mod memory;
pub mod memtable;
#[cfg(loom)]
pub mod models;
mod open_files;
mod rank;
mod reader;
mod recovery;
mod refresh;
mod release;
pub mod reserve;
mod salvage;
mod sampler;
mod shadowed;
mod snapshot;
pub mod space;
pub mod sstable;
mod stats;
mod tables;
mod throttle;
pub mod version;
mod view;
pub mod wal;
mod write;
mod write_stall;

pub use batch::{Batch, Operation, TreeId};
pub use checkpoint::Progress;
pub use committer::Commit;
pub use compaction::{Decision, Filter, FilterFactory, FilterJob};
pub use config::{EngineConfig, TreeConfig, WriteOptions};
pub use entry::{EntryKind, Sequence, Tag};
pub use garbage::{Garbage, TableNeed, TableStats};
pub use handle::Engine;
pub use hash::HashSeed;
pub use iter::{Iter, IterOptions};
pub use reader::{Reader, Snapshot};
pub use refresh::Refresh;
pub use salvage::{Loss, Observer, Salvaged, salvage};
pub use sampler::Sampler;
pub use snapshot::ReservedNumber;
pub use sstable::{CacheFill, Collector, CollectorFactory, Properties};
pub use stats::{LevelStats, Stats, TreeStats};
pub use tables::LiveTable;
pub use view::FlushPoint;

pub use crate::io::beside::BesideFs;
pub use crate::io::fault::FaultFs;
pub use crate::io::fs::FileSystem;
pub use crate::io::mem::{CrashMode, MemFs};
pub use crate::io::real::RealFs;
