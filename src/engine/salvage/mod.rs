//! Salvage: a new store from what can be read of a damaged one.
//!
//! 1. `catalog`: which tables and log segments count. The manifest says so; where it is damaged,
//!    what is left of it and the files in the directory do;
//! 2. tables are read block by block and the log record by record; what does not match its
//!    checksum is skipped and listed (`Loss`). The newest version of every key that could be read
//!    is kept, so a key whose newest version was lost may have an older value, or be back after it
//!    was deleted: that is why salvage is never done unasked;
//! 3. they are written as tables of a new store, which gets its name when it is complete.
//!
//! The damaged store is only read. Its log is held in memory, as it was by the store; tables are
//! streamed. One thread.

mod catalog;
mod log;
mod merge;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::checkpoint::Target;
use crate::engine::compaction::write::{Outputs, Workshop};
use crate::engine::config::{EngineConfig, TreeConfig};
use crate::engine::files::{FileKind, FileNumbers, lock_path};
use crate::engine::sstable::{Properties, WriterOptions};
use crate::engine::version::current::set_current;
use crate::engine::version::{Edit, FileMeta, LEVELS, LogState, ManifestWriter};
use crate::engine::wal::{LogPosition, SyncFile};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;

use catalog::Catalog;
use merge::Merge;

/// Bytes of a damaged store that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// How many bytes; 0 if that is not known.
    pub bytes: u64,
    /// What is wrong there.
    pub detail: String,
    /// The tree whose rows they were, if that is known.
    pub tree: Option<TreeId>,
    /// The last key read before them, and the first one after: what was lost lies between.
    pub between: (Option<Vec<u8>>, Option<Vec<u8>>),
}

/// What a salvage brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Tables read, whole or in part.
    pub tables: u64,
    /// Blocks of them.
    pub blocks: u64,
    /// Records of the log.
    pub log_records: u64,
    /// Keys of all trees that the new store has.
    pub keys: u64,
    /// What could not be read.
    pub losses: Vec<Loss>,
}

/// Entries written before the observer is told again: a table may take long.
const ENTRIES_BETWEEN_LOOKS: u64 = 1000;

/// What a salvage asks and tells while it runs.
pub trait Observer {
    /// To which tree a table belongs that no manifest names.
    fn tree_of(&self, properties: &Properties) -> TreeId;
    /// Whether an entry belongs to the tree it was found in. Trees come in their order.
    fn belongs(&mut self, _tree: TreeId, _key: &[u8], _value: &[u8]) -> bool {
        true
    }
    /// Bytes read so far, and those in all. An error ends the salvage.
    fn progress(&mut self, done: u64, total: u64) -> Result<()>;
}

/// Makes a new store in `out`, which must not exist, of what can be read in `dir`.
pub fn salvage(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    out: &Path,
    config: &EngineConfig,
    observer: &mut dyn Observer,
) -> Result<Salvaged> {
    let dir = &fs.resolve(dir).map_err(|e| Error::io("look for", dir, &e))?;
    // Before the lock, which makes a file.
    check_for_store(&**fs, dir)?;
    let _lock = fs.lock(&lock_path(dir)).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = format!("{}: the store is open in another process", dir.display());
            Error::new(ErrorKind::Busy, message)
        }
        _ => Error::io("lock", dir, &e),
    })?;
    let mut report = Salvaged::default();
    let catalog = Catalog::read(&**fs, dir, config.trees.len(), observer, &mut report)?;
    let target = Target::begin(fs, out, dir)?;
    let mut rescue = Rescue { fs, target: &target, config, numbers: FileNumbers::starting_at(1) };
    let mut added = Vec::new();
    let mut newest = 0;
    let mut entries = log::read(&**fs, dir, &catalog, &mut report)?;
    let total = catalog.bytes();
    for (index, tree) in (0u8..).zip(&config.trees) {
        let id = TreeId(index);
        let logged = entries.remove(&id).unwrap_or_default();
        let mut merge = Merge::new(fs, dir, catalog.tables_of(id), logged);
        let done = catalog.bytes_before(id);
        let mut place = Place { id, tree, done, total, observer: &mut *observer };
        let files = rescue.write(&mut place, &mut merge, &mut report)?;
        newest = newest.max(merge.newest());
        merge.account(id, &mut report);
        #[expect(clippy::cast_possible_truncation, reason = "there are 7 levels")]
        added.extend(files.into_iter().map(|file| (id, LEVELS as u8 - 1, file)));
    }
    observer.progress(total, total)?;
    rescue.describe(added, newest)?;
    target.publish()?;
    Ok(report)
}

/// Of a directory that has nothing of a store an empty one would be made, as if everything had been
/// lost: more likely its name is mistyped.
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

/// The tree being written, and how far the whole is before it.
struct Place<'a> {
    id: TreeId,
    tree: &'a TreeConfig,
    done: u64,
    total: u64,
    observer: &'a mut dyn Observer,
}

/// The new store.
struct Rescue<'a> {
    fs: &'a Arc<dyn FileSystem>,
    target: &'a Target,
    config: &'a EngineConfig,
    numbers: FileNumbers,
}

impl Rescue<'_> {
    fn write(
        &self,
        place: &mut Place<'_>,
        merge: &mut Merge<'_>,
        report: &mut Salvaged,
    ) -> Result<Vec<FileMeta>> {
        let options = &self.config.options;
        let mut outputs = Outputs::new(Workshop {
            fs: self.fs,
            dir: self.target.dir(),
            numbers: &self.numbers,
            tree: place.tree,
            options: WriterOptions {
                block_bytes: options.block_bytes,
                bloom_bits: options.bloom_bits,
                compression: options.compression,
            },
            table_bytes: options.table_bytes,
        });
        let mut entries = 0u64;
        while merge.advance() {
            let Some((key, tag, value)) = merge.entry() else { break };
            if !place.observer.belongs(place.id, key, value) {
                continue;
            }
            if outputs.is_full() {
                outputs.finish_table()?;
            }
            outputs.add(key, tag, value)?;
            report.keys += 1;
            entries += 1;
            if entries.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
                place.observer.progress(place.done + merge.bytes_done(), place.total)?;
            }
        }
        outputs.finish()
    }

    /// The manifest that names the tables, and CURRENT.
    fn describe(&mut self, added: Vec<(TreeId, u8, FileMeta)>, newest: u64) -> Result<()> {
        let (fs, dir) = (&**self.target.fs(), self.target.dir());
        let sync_file = Arc::new(SyncFile::open(fs, dir)?);
        let (number, segment) = (self.numbers.allocate(), self.numbers.allocate());
        let edit = Edit {
            next_file: Some(self.numbers.peek()),
            last_sequence: Some(newest),
            log: Some(LogState { start: LogPosition::new(segment, 0), cuts: Vec::new() }),
            added,
            removed: Vec::new(),
            trees: self.config.trees.iter().map(|tree| tree.name.as_bytes().to_vec()).collect(),
        };
        let manifest = ManifestWriter::create(
            Arc::clone(self.target.fs()),
            dir,
            number,
            &edit.encode(),
            Arc::default(),
            Arc::clone(&sync_file),
        )?;
        sync_file.note_manifest(number, manifest.end())?;
        sync_file.sync()?;
        set_current(fs, dir, number)
    }
}

#[cfg(test)]
mod tests;
