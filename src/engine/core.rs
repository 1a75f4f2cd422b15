//! The parts of an open engine, shared by its handles and background threads.
//!
//! Locks, in the order they are taken: `copying` (shared), `committer.lead` (one commit group at a
//! time), `manifest` (one installation at a time), `publish` (one change of the view at a time).
//! Readers take none of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use crate::engine::background::Work;
use crate::engine::cache::BlockCache;
use crate::engine::compaction::rate::RateLimit;
use crate::engine::compaction::write::Workshop;
use crate::engine::config::{Limits, TreeConfig};
use crate::engine::files::FileNumbers;
use crate::engine::health::Health;
use crate::engine::install::Manifest;
use crate::engine::snapshot::Sequences;
use crate::engine::sstable::{TableCounters, WriterOptions};
use crate::engine::stats::Activity;
use crate::engine::tables::TableOpener;
use crate::engine::view::View;
use crate::engine::wal::Log;
use crate::engine::write::Committer;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};
use crate::options::Options;

/// A tree with what its tables share.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) config: TreeConfig,
    pub(crate) opener: Arc<TableOpener>,
    pub(crate) counters: Arc<TableCounters>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    pub(crate) trees: Vec<Tree>,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) health: Arc<Health>,
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) rate: RateLimit,
    pub(crate) activity: Activity,
    /// `None` when opened read-only.
    pub(crate) log: Option<Log>,
    pub(crate) manifest: Mutex<Option<Manifest>>,
    pub(crate) view: ArcSwap<View>,
    /// Held while the view is replaced, so that no change is lost.
    pub(crate) publish: Mutex<()>,
    pub(crate) committer: Committer,
    pub(crate) work: Work,
    pub(crate) closed: AtomicBool,
    /// Read by every copy of the store that is being made; `close` waits for it.
    pub(crate) copying: RwLock<()>,
    /// Held until the last handle is gone or `close` releases it.
    pub(crate) lock: Mutex<Option<Box<dyn LockGuard>>>,
}

impl Core {
    /// The log, or the error that a write to a read-only store gets.
    pub(crate) fn writable(&self) -> Result<&Log> {
        self.check_open()?;
        self.log
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::ReadOnly, "the store was opened read_only"))
    }

    /// An error once `close` has begun.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the store has been closed"));
        }
        Ok(())
    }

    pub(crate) fn tree(&self, index: usize) -> Result<&Tree> {
        self.trees.get(index).ok_or_else(|| {
            let message = format!("tree {index} does not exist, there are {}", self.trees.len());
            Error::new(ErrorKind::Misuse, message)
        })
    }

    /// Where and how tables of a tree are written. Levels above the last hold few of the keys,
    /// so more filter bits there cost little memory and save reads of the wrong table.
    pub(crate) fn workshop<'a>(&'a self, tree: &'a Tree, deepest: bool) -> Workshop<'a> {
        let more = if deepest || self.options.bloom_bits == 0 { 0 } else { 4 };
        Workshop {
            fs: &self.fs,
            dir: &self.dir,
            numbers: &self.numbers,
            tree: &tree.config,
            options: WriterOptions {
                block_bytes: self.options.block_bytes,
                bloom_bits: self.options.bloom_bits + more,
                compression: self.options.compression,
            },
            table_bytes: self.options.table_bytes,
        }
    }

    /// Replaces the view by what `change` makes of it.
    pub(crate) fn change_view(&self, change: impl FnOnce(&View) -> View) {
        let _one_at_a_time = self.publish.lock();
        let changed = change(&self.view.load());
        self.view.store(Arc::new(changed));
    }
}
