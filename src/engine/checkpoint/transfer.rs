//! Step 3 of a copy: the files, one after the other.
//!
//! What was copied is read back and compared with its checksums before it counts. Between pieces
//! the user is told, and may end it; a store that is being closed ends it too.

use std::path::Path;
use std::sync::Arc;

use super::target::Target;
use super::{Contents, Progress, Tables};
use crate::engine::cache::BlockCache;
use crate::engine::core::Core;
use crate::engine::files::{FileNumber, log_path, table_path};
use crate::engine::sstable::{Table, TableCounters};
use crate::engine::version::TableFile;
use crate::engine::wal::header::{FileHeader, SEGMENT_MAGIC};
use crate::engine::wal::reader::RecordReader;
use crate::error::{Error, Result};
use crate::io::fs::File;

/// Bytes copied at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Why a transfer has ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The user wanted it to.
    Cancelled,
    /// It failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Step = std::result::Result<(), Stop>;

/// The files on their way.
pub(super) struct Transfer<'a, 'p> {
    core: &'a Core,
    target: &'a Target,
    done: u64,
    total: u64,
    progress: &'a mut Progress<'p>,
    piece: Vec<u8>,
}

/// A file that is being copied, with its name for errors.
struct Ends<'a> {
    from: (&'a dyn File, &'a Path),
    to: (&'a dyn File, &'a Path),
}

impl<'a, 'p> Transfer<'a, 'p> {
    pub(super) fn new(
        core: &'a Core,
        target: &'a Target,
        total: u64,
        progress: &'a mut Progress<'p>,
    ) -> Self {
        Self { core, target, done: 0, total, progress, piece: Vec::new() }
    }

    /// All tables, then the log.
    pub(super) fn all(&mut self, contents: &Contents<'_>, tables: Tables) -> Step {
        self.moved(0)?;
        for file in contents.version.trees.iter().flat_map(|levels| levels.files()) {
            match tables {
                Tables::Link => self.link_table(file)?,
                Tables::Copy => self.copy_table(file)?,
            }
        }
        for &(number, cut) in &contents.cuts {
            self.copy_segment(number, contents.first_offset(number), cut)?;
        }
        Ok(())
    }

    /// `bytes` more are copied.
    fn moved(&mut self, bytes: u64) -> Step {
        self.core.check_open()?;
        self.done += bytes;
        match (self.progress)(self.done, self.total).is_break() {
            true => Err(Stop::Cancelled),
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
        let ends = Ends { from: (&*source, &from), to: (&*copy, &to) };
        self.copy_bytes(&ends, 0, file.meta().size)?;
        copy.sync_all().map_err(|e| Error::io("sync", &to, &e))?;
        let checked = self.check_table(&to, number, file.meta().size);
        // If the original is damaged, the error is to name that.
        checked.or_else(|error| file.table()?.verify().and(Err(error)))?;
        Ok(())
    }

    fn check_table(&self, path: &Path, number: FileNumber, size: u64) -> Result<()> {
        let file = self.target.fs().open(path).map_err(|e| Error::io("open", path, &e))?;
        let (cache, counters) = (Arc::new(BlockCache::new(0)), Arc::<TableCounters>::default());
        Table::open(file, path.to_owned(), number, size, cache, counters)?.verify()
    }

    /// The records of a segment from `first` to `cut`, where they were; the copy ends there, and
    /// its header says so. What lies before is in tables.
    fn copy_segment(&mut self, number: FileNumber, first: u64, cut: u64) -> Step {
        let from = log_path(&self.core.dir, number);
        let source = self.core.fs.open(&from).map_err(|e| Error::io("open", &from, &e))?;
        let to = log_path(self.target.dir(), number);
        let copy = self.create(&to)?;
        let header = FileHeader { magic: SEGMENT_MAGIC, number, size: cut }.encode();
        copy.write_all_at(&header, 0).map_err(|e| Error::io("write", &to, &e))?;
        self.copy_bytes(&Ends { from: (&*source, &from), to: (&*copy, &to) }, first, cut)?;
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

    fn copy_bytes(&mut self, ends: &Ends<'_>, first: u64, end: u64) -> Step {
        let (source, from) = ends.from;
        let (copy, to) = ends.to;
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
