//! The parts of an open store, shared by its handles and background threads.
//!
//! Lock order: `copying` (shared), the lead of `committer` (one commit group at a time), `manifest`
//! (one installation at a time), a change of `view` (one at a time). Readers take none of them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::activity::Activity;
use crate::engine::background_work::BackgroundWork;
use crate::engine::committer::Committer;
use crate::engine::compaction::output::{OutputOptions, SmallTables};
use crate::engine::compaction::rate::RateLimit;
use crate::engine::config::{Limits, TreeConfig};
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumbers;
use crate::engine::hash::HashSeed;
use crate::engine::health::Health;
use crate::engine::held_inputs::HeldInputs;
use crate::engine::log_tail::LogTail;
use crate::engine::memtable::HeldMemtables;
use crate::engine::snapshot::Sequences;
use crate::engine::space::DiskSpace;
use crate::engine::sstable::BlockCache;
use crate::engine::sstable::{TableCounters, WriterOptions};
use crate::engine::version::{Manifest, TableOpener};
use crate::engine::view::PublishedView;
use crate::engine::wal::Log;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};
use crate::options::Options;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, RwLock};

/// A tree, and what its tables share.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) config: TreeConfig,
    pub(crate) opener: Arc<TableOpener>,
    pub(crate) counters: Arc<TableCounters>,
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    /// With which the store hashes keys. It stays the same for the life of the store.
    pub(crate) hash_seed: HashSeed,
    /// As the manifest has it; see [`Engine::counted_from`](crate::engine::Engine::counted_from).
    pub(crate) counted_from: Sequence,
    pub(crate) trees: Vec<Tree>,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) health: Arc<Health>,
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) rate: RateLimit,
    pub(crate) space: Arc<DiskSpace>,
    pub(crate) activity: Activity,
    /// `None` if the store was opened read-only.
    pub(crate) log: Option<Log>,
    pub(crate) manifest: Mutex<Option<Manifest>>,
    pub(crate) view: Arc<PublishedView>,
    pub(crate) held: HeldMemtables,
    pub(crate) held_inputs: HeldInputs,
    pub(crate) committer: Committer,
    pub(crate) work: BackgroundWork,
    pub(crate) closed: AtomicBool,
    /// Read-locked by every running checkpoint or backup. `close` waits for it.
    pub(crate) copying: RwLock<()>,
    /// The directory lock, held until `close` or the drop of the engine.
    pub(crate) lock: Mutex<Option<Box<dyn LockGuard>>>,
    /// How far the log of the writer was read; `None` unless the store is read beside a writer.
    pub(crate) tail: Mutex<Option<LogTail>>,
}

impl Core {
    /// The log; an error if the store is closed or read-only.
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

    /// Where and how the tables of a tree are written.
    ///
    /// Tables above the deepest level get more filter bits. They hold few of the keys, so that
    /// costs little memory and saves reads of tables that lack a key.
    pub(crate) fn output_options<'a>(&'a self, tree: &'a Tree, deepest: bool) -> OutputOptions<'a> {
        let more = if deepest || self.options.bloom_bits == 0 { 0 } else { 4 };
        OutputOptions {
            fs: &self.fs,
            dir: &self.dir,
            numbers: &self.numbers,
            collectors: tree.config.collectors.as_deref(),
            writer: WriterOptions {
                block_bytes: self.options.block_bytes,
                bloom_bits: self.options.bloom_bits + more,
                compression: self.options.compression,
                hash_seed: self.hash_seed,
            },
            table_bytes: self.options.table_bytes,
            small: None,
        }
    }

    /// Output options for work that has too little space for all of its result: tables are small
    /// and, if there is hardly any space, come from the reserve. A flush knows that it `needs` no
    /// more than its memtable.
    pub(crate) fn small_tables<'a>(
        &'a self,
        options: OutputOptions<'a>,
        needs: Option<u64>,
    ) -> OutputOptions<'a> {
        let reserve = &self.space.reserve;
        let (least, spare) = (reserve.table_bytes(), self.space.spare() / 4);
        if needs.is_none() && spare >= least * 2 {
            return OutputOptions { table_bytes: options.table_bytes.min(spare), ..options };
        }
        let bytes = needs.map_or(least, |needs| least.min(needs));
        let small = SmallTables { reserve, bytes, for_flush: needs.is_some() };
        OutputOptions { table_bytes: bytes, small: Some(small), ..options }
    }

    /// Notes that files were removed or memtables flushed: fills up the reserve and, if that
    /// suffices, ends the full state.
    pub(crate) fn note_space(&self) {
        self.space.set_owed(self.view.load().memtable_bytes());
        let _ = self.space.reserve.refill();
        let _ = self.space.reconsider();
        self.space.limit_memtables();
    }

    /// Releases the threads, the log, the manifest and the directory.
    pub(crate) fn release(&self) {
        self.refuse_commits();
        self.work.stop();
        if let Some(log) = &self.log {
            log.close();
        }
        *self.manifest.lock() = None;
        *self.lock.lock() = None;
    }
}
