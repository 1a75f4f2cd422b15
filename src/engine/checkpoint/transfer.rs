//! Step 3 of a copy: the files, one after another.
//!
//! Copied bytes are read back and compared with their checksums. Between pieces the caller is told
//! about the progress and may end the copy. A close of the store ends it too.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::target::TargetDir;
use super::{CopyContents, CopyMethod, Progress};
use crate::engine::core::Core;
use crate::engine::files::{FileNumber, log_path, table_path};
use crate::engine::sstable::BlockCache;
use crate::engine::sstable::{Table, TableCounters};
use crate::engine::version::{FileMeta, TableFile};
use crate::engine::wal::header::{FileHeader, SEGMENT_MAGIC};
use crate::engine::wal::reader::RecordReader;
use crate::error::{Error, Result};
use crate::io::fs::File;

/// Number of bytes to copy at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Why a transfer ended early.
#[derive(Debug)]
pub(super) enum TransferEnd {
    /// The caller asked for it.
    Cancelled,
    /// It failed.
    Failed(Error),
}

impl From<Error> for TransferEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Step = std::result::Result<(), TransferEnd>;

/// A running transfer.
pub(super) struct Transfer<'a, 'p> {
    core: &'a Core,
    target: &'a TargetDir,
    done: u64,
    total: u64,
    progress: &'a mut Progress<'p>,
    piece: Vec<u8>,
}

/// The source and the copy of a file, with their paths for errors.
struct CopyPair<'a> {
    from: (&'a dyn File, &'a Path),
    to: (&'a dyn File, &'a Path),
}

impl<'a, 'p> Transfer<'a, 'p> {
    pub(super) fn new(
        core: &'a Core,
        target: &'a TargetDir,
        total: u64,
        progress: &'a mut Progress<'p>,
    ) -> Self {
        Self { core, target, done: 0, total, progress, piece: Vec::new() }
    }

    /// Transfers all tables and then the log.
    pub(super) fn all(&mut self, contents: &CopyContents<'_>, tables: CopyMethod) -> Step {
        self.moved(0)?;
        for file in contents.version.files() {
            match tables {
                CopyMethod::Link => self.link_table(file)?,
                CopyMethod::Copy => self.copy_table(file)?,
            }
        }
        for &(number, cut) in &contents.cuts {
            self.copy_segment(number, contents.first_offset(number), cut)?;
        }
        Ok(())
    }

    /// Reports that `bytes` more were copied.
    fn moved(&mut self, bytes: u64) -> Step {
        self.core.check_open()?;
        self.done += bytes;
        match (self.progress)(self.done, self.total).is_break() {
            true => Err(TransferEnd::Cancelled),
            false => Ok(()),
        }
    }

    fn link_table(&mut self, file: &TableFile) -> Step {
        let to = table_path(self.target.dir(), file.meta().number);
        let linked = self.target.fs().hard_link(&file.path(), &to);
        linked.map_err(|e| Error::io("link", &file.path(), &e))?;
        self.moved(0)
    }

    fn copy_table(&mut self, file: &Arc<TableFile>) -> Step {
        let (from, number) = (file.path(), file.meta().number);
        let source = self.core.fs.open(&from).map_err(|e| Error::io("open", &from, &e))?;
        let to = table_path(self.target.dir(), number);
        let copy = self.create(&to)?;
        let pair = CopyPair { from: (&*source, &from), to: (&*copy, &to) };
        self.copy_bytes(&pair, 0, file.meta().size)?;
        copy.sync_all().map_err(|e| Error::io("sync", &to, &e))?;
        let checked = self.check_table(&to, file.meta());
        // If the original is damaged, the error should name the original.
        checked.or_else(|error| file.table()?.verify().and(Err(error)))?;
        Ok(())
    }

    fn check_table(&self, path: &Path, meta: &FileMeta) -> Result<()> {
        let file = self.target.fs().open(path).map_err(|e| Error::io("open", path, &e))?;
        let (cache, counters) = (Arc::new(BlockCache::new(0)), Arc::<TableCounters>::default());
        let (number, size) = (meta.number, meta.size);
        let table = Table::open(file, path.to_owned(), number, size, cache, counters)?;
        let lower = meta.raised.then(|| Bytes::copy_from_slice(meta.bounds.smallest()));
        table.starting_at(lower).verify()
    }

    /// Copies the records of a segment from `first` to `cut` to the same offsets. The copy ends at
    /// `cut`, and its header says so. Tables hold what comes before `first`.
    fn copy_segment(&mut self, number: FileNumber, first: u64, cut: u64) -> Step {
        let from = log_path(&self.core.dir, number);
        let source = self.core.fs.open(&from).map_err(|e| Error::io("open", &from, &e))?;
        let to = log_path(self.target.dir(), number);
        let copy = self.create(&to)?;
        let header = FileHeader { magic: SEGMENT_MAGIC, number, size: cut }.encode();
        copy.write_all_at(&header, 0).map_err(|e| Error::io("write", &to, &e))?;
        self.copy_bytes(&CopyPair { from: (&*source, &from), to: (&*copy, &to) }, first, cut)?;
        copy.sync_all().map_err(|e| Error::io("sync", &to, &e))?;
        let mut reader = RecordReader::open(&**self.target.fs(), to, number)?;
        let end = reader.replay(first, cut, |_, _| Ok(()))?;
        if end != cut {
            let text = format!("no valid record, though the log goes on to {cut}");
            return Err(Error::corrupt(&from, end, text).into());
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.target.fs().create(path).map_err(|e| Error::io("create", path, &e))
    }

    fn copy_bytes(&mut self, pair: &CopyPair<'_>, first: u64, end: u64) -> Step {
        let (source, from) = pair.from;
        let (copy, to) = pair.to;
        let mut at = first;
        while at < end {
            let len = PIECE_BYTES.min(end - at);
            self.piece.resize(usize::try_from(len).unwrap_or(0), 0);
            source.read_exact_at(&mut self.piece, at).map_err(|e| Error::io("read", from, &e))?;
            copy.write_all_at(&self.piece, at).map_err(|e| Error::io("write", to, &e))?;
            at += len;
            self.moved(len)?;
        }
        Ok(())
    }
}
