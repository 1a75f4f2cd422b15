//! Salvage: builds a new store from what can be read of a damaged one.
//!
//! 1. `catalog` finds out which tables and log segments count, from the manifest or, if that is
//!    damaged, from what is left of it and the files in the directory;
//! 2. tables are read block by block, and the log record by record. What does not match its
//!    checksum is skipped and reported as a [`Loss`]. The newest readable version of each key
//!    counts. So a key whose newest version is lost may get an older value, or reappear after it
//!    was deleted. That is why salvage runs only on request;
//! 3. the entries are written as tables of a new store, which gets its name when it is complete.
//!
//! The damaged store is only read. Its log is held in memory, as the store itself held it, and its
//! tables are streamed. Salvage uses one thread.

mod catalog;
mod log;
mod merge;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::checkpoint::TargetDir;
use crate::engine::compaction::output::{OutputOptions, TableOutputs};
use crate::engine::config::{EngineConfig, TreeConfig};
use crate::engine::entry::Sequence;
use crate::engine::files::{FileKind, FileNumbers};
use crate::engine::hash::HashSeed;
use crate::engine::recovery::lock_to_read;
use crate::engine::sstable::{Properties, WriterOptions};
use crate::engine::version::{FileMeta, LEVELS, LogState, VersionEdit, write_manifest_of_copy};
use crate::engine::wal::LogPosition;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;

use catalog::Catalog;
use merge::Merge;

/// Bytes of a damaged store that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The damaged file.
    pub file: PathBuf,
    /// Offset of the bytes in the file.
    pub offset: u64,
    /// Number of bytes; 0 if unknown.
    pub bytes: u64,
    /// What is wrong with them.
    pub detail: String,
    /// The tree they belonged to, if known.
    pub tree: Option<TreeId>,
    /// The last key read before the bytes and the first key read after them. The lost keys are
    /// between.
    pub between: (Option<Vec<u8>>, Option<Vec<u8>>),
}

/// The result of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Tables read, whole or in part.
    pub tables: u64,
    /// Blocks read.
    pub blocks: u64,
    /// Log records read.
    pub log_records: u64,
    /// Keys in the new store, all trees counted.
    pub keys: u64,
    /// What could not be read.
    pub losses: Vec<Loss>,
}

/// Number of entries between two progress reports: one table may take long.
const ENTRIES_BETWEEN_LOOKS: u64 = 1000;

/// Observes and directs a running salvage.
pub trait Observer {
    /// The tree of a table that no manifest names.
    fn tree_of(&self, properties: &Properties) -> TreeId;
    /// Whether an entry belongs to the tree in which it was found. Trees come in the order of their
    /// ids.
    fn belongs(&mut self, _tree: TreeId, _key: &[u8], _value: &[u8]) -> bool {
        true
    }
    /// Whether an entry that belongs to its tree is counted in the new store.
    fn is_counted(&mut self, _tree: TreeId, _key: &[u8], _value: &[u8]) -> bool {
        false
    }
    /// What [`Engine::counted_from`](crate::engine::Engine::counted_from) tells of the new store, whose newest entry has the sequence
    /// number `newest`.
    fn counted_from(&self, newest: Sequence) -> Sequence {
        newest + 1
    }
    /// Reports the bytes read so far and in total. An error ends the salvage.
    fn progress(&mut self, done: u64, total: u64) -> Result<()>;
}

/// Builds a new store in `out`, which must not exist, from what can be read in `dir`.
pub fn salvage(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    out: &Path,
    config: &EngineConfig,
    observer: &mut dyn Observer,
) -> Result<Salvaged> {
    let dir = &fs.resolve(dir).map_err(|e| Error::io("look for", dir, &e))?;
    check_for_store(&**fs, dir)?;
    let _lock = lock_to_read(&**fs, dir)?;
    let mut report = Salvaged::default();
    let catalog = Catalog::read(&**fs, dir, config.trees.len(), observer, &mut report)?;
    let target = TargetDir::begin(fs, out, dir)?;
    let numbers = FileNumbers::starting_at(1);
    let hash_seed = HashSeed::random();
    let mut store = NewStore { fs, target: &target, config, numbers, hash_seed };
    let mut added = Vec::new();
    let mut newest = 0;
    let mut entries = log::read(&**fs, dir, &catalog, &mut report)?;
    let total = catalog.bytes();
    for (index, tree) in (0u8..).zip(&config.trees) {
        let id = TreeId(index);
        let logged = entries.remove(&id).unwrap_or_default();
        let mut merge = Merge::new(fs, dir, catalog.tables_of(id), logged);
        let done = catalog.bytes_before(id);
        let mut job = TreeJob { id, tree, done, total, observer: &mut *observer };
        let files = store.write(&mut job, &mut merge, &mut report)?;
        newest = newest.max(merge.newest());
        merge.account(id, &mut report);
        #[expect(clippy::cast_possible_truncation, reason = "there are 7 levels")]
        added.extend(files.into_iter().map(|file| (id, LEVELS as u8 - 1, file)));
    }
    observer.progress(total, total)?;
    store.write_manifest(added, newest, observer.counted_from(newest))?;
    target.publish()?;
    Ok(report)
}

/// Fails if a directory holds no file of a store. Its path is probably mistyped, and salvage would
/// create an empty store, as if everything were lost.
fn check_for_store(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    use FileKind::{Current, Log, Manifest, Table};
    let names = fs.list(dir).map_err(|e| Error::io("list", dir, &e))?;
    let mut kinds = names.iter().filter_map(|name| FileKind::parse(name));
    if kinds.any(|kind| matches!(kind, Current | Log(_) | Manifest(_) | Table(_))) {
        return Ok(());
    }
    let message = format!("{}: there is no file of a store", dir.display());
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The tree being written, and the progress before it.
struct TreeJob<'a> {
    id: TreeId,
    tree: &'a TreeConfig,
    done: u64,
    total: u64,
    observer: &'a mut dyn Observer,
}

/// The new store that is being written.
struct NewStore<'a> {
    fs: &'a Arc<dyn FileSystem>,
    target: &'a TargetDir,
    config: &'a EngineConfig,
    numbers: FileNumbers,
    hash_seed: HashSeed,
}

impl NewStore<'_> {
    fn write(
        &self,
        job: &mut TreeJob<'_>,
        merge: &mut Merge<'_>,
        report: &mut Salvaged,
    ) -> Result<Vec<FileMeta>> {
        let options = &self.config.options;
        let mut outputs = TableOutputs::new(OutputOptions {
            fs: self.fs,
            dir: self.target.dir(),
            numbers: &self.numbers,
            collectors: job.tree.collectors.as_deref(),
            writer: WriterOptions {
                block_bytes: options.block_bytes,
                bloom_bits: options.bloom_bits,
                compression: options.compression,
                hash_seed: self.hash_seed,
            },
            table_bytes: options.table_bytes,
            small: None,
        });
        let mut entries = 0u64;
        while merge.advance() {
            let Some((key, tag, value)) = merge.entry() else { break };
            if !job.observer.belongs(job.id, key, value) {
                continue;
            }
            if outputs.is_full() && outputs.can_end_before(key) {
                outputs.finish_table()?;
            }
            // The only entry of its key.
            let weight = i64::from(job.observer.is_counted(job.id, key, value));
            outputs.add(key, tag.with_weight(weight), value)?;
            report.keys += 1;
            entries += 1;
            if entries.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
                job.observer.progress(job.done + merge.bytes_done(), job.total)?;
            }
        }
        outputs.finish()
    }

    /// Writes the manifest that names the tables, and CURRENT.
    fn write_manifest(
        &mut self,
        added: Vec<(TreeId, u8, FileMeta)>,
        newest: Sequence,
        counted_from: Sequence,
    ) -> Result<()> {
        let (number, segment) = (self.numbers.allocate(), self.numbers.allocate());
        let edit = VersionEdit {
            next_file: Some(self.numbers.peek()),
            last_sequence: Some(newest),
            hash_seed: Some(self.hash_seed),
            counted_from: Some(counted_from),
            log: Some(LogState { start: LogPosition::new(segment, 0), cuts: Vec::new() }),
            added,
            removed: Vec::new(),
            trees: self.config.trees.iter().map(|tree| tree.name.as_bytes().to_vec()).collect(),
        };
        let (fs, dir) = (self.target.fs(), self.target.dir());
        write_manifest_of_copy(fs, dir, number, &edit, LogPosition::default())
    }
}

#[cfg(test)]
mod tests;
