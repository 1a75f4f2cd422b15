//! The tables that a merge or a flush writes.
//!
//! If the work fails, the tables it created are deleted again. Its inputs remain, so nothing is
//! lost. New tables become part of the store only when a version edit names them.

use std::path::Path;
use std::sync::Arc;

use crate::engine::entry::{Tag, bound};
use crate::engine::files::{FileNumber, FileNumbers, table_path};
use crate::engine::reserve::Reserve;
use crate::engine::sstable::{CollectorFactory, TableSummary, TableWriter, WriterOptions};
use crate::engine::version::{FileMeta, KeyBounds};
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// Where and how tables are written.
#[derive(Clone, Copy, Debug)]
pub struct OutputOptions<'a> {
    /// The file system.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The directory for the tables.
    pub dir: &'a Path,
    /// Allocates the file numbers.
    pub numbers: &'a FileNumbers,
    /// Adds properties to the tables.
    pub collectors: Option<&'a dyn CollectorFactory>,
    /// Block size, filter and compression of the tables.
    pub writer: WriterOptions,
    /// A table is finished once it has reached this size.
    pub table_bytes: u64,
    /// For small tables: where their space comes from.
    pub small: Option<SmallTables<'a>>,
}

/// Where the space of small tables comes from on a full disk.
#[derive(Clone, Copy, Debug)]
pub struct SmallTables<'a> {
    /// Allocates space, or provides it.
    pub reserve: &'a Reserve,
    /// Bytes to allocate for a table.
    pub bytes: u64,
    /// Whether the tables are those of a flush.
    pub for_flush: bool,
}

/// Tables being written, in key order.
#[derive(Debug)]
pub struct TableOutputs<'a> {
    options: OutputOptions<'a>,
    open: Option<TableWriter>,
    finished: Vec<FileMeta>,
    created: Vec<FileNumber>,
    kept: bool,
    /// Size at which the table in progress is full.
    limit: u64,
}

impl<'a> TableOutputs<'a> {
    /// Outputs without any table yet.
    pub fn new(options: OutputOptions<'a>) -> Self {
        let (finished, created, limit) = (Vec::new(), Vec::new(), options.table_bytes);
        Self { options, open: None, finished, created, kept: false, limit }
    }

    /// Adds an entry to the table in progress, and begins one if there is none.
    #[inline]
    pub fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        match &mut self.open {
            Some(writer) => writer.add(key, tag, value),
            None => self.begin()?.add(key, tag, value),
        }
    }

    /// Adds to the weight of the last entry that of an older version, which is left out.
    #[inline]
    pub fn weigh_last(&mut self, weight: i64) {
        if let Some(writer) = &mut self.open {
            writer.weigh_last(weight);
        }
    }

    /// Whether a table is in progress and may end before `key`. All versions of a key belong in one
    /// table of a level, and so do keys whose bounds are equal.
    #[inline]
    pub fn can_end_before(&self, key: &[u8]) -> bool {
        self.open.as_ref().is_some_and(|writer| bound(writer.last_key()) != bound(key))
    }

    /// Whether the table in progress has reached its size. Finish it where
    /// [`TableOutputs::can_end_before`] allows that.
    #[inline]
    pub fn is_full(&self) -> bool {
        let full = |writer: &TableWriter| writer.estimated_size() >= self.limit;
        self.open.as_ref().is_some_and(full)
    }

    fn begin(&mut self) -> Result<&mut TableWriter> {
        let options = &self.options;
        let number = options.numbers.allocate();
        let path = table_path(options.dir, number);
        let file = match options.small {
            Some(SmallTables { reserve, bytes, for_flush }) => {
                let (file, size) = reserve.create_table(&path, bytes, for_flush)?;
                // The rest is for index, filter and properties.
                self.limit = size / 4 * 3;
                file
            }
            None => options.fs.create(&path).map_err(|e| Error::io("create", &path, &e))?,
        };
        self.created.push(number);
        let collectors = options.collectors.map_or_else(Vec::new, CollectorFactory::collectors);
        let mut writer = TableWriter::new(file, path, number, options.writer, collectors);
        if options.small.is_some() {
            writer.trim_at_end();
        }
        Ok(self.open.insert(writer))
    }

    /// Completes and syncs the table in progress, and returns its size; 0 if there is none.
    pub fn finish_table(&mut self) -> Result<u64> {
        let Some(writer) = self.open.take() else { return Ok(0) };
        let meta = file_meta(&writer.finish()?);
        let size = meta.size;
        self.finished.push(meta);
        Ok(size)
    }

    /// Completes all tables, makes their names durable, and returns them.
    pub fn finish(mut self) -> Result<Vec<FileMeta>> {
        self.finish_table()?;
        if !self.finished.is_empty() {
            let dir = self.options.dir;
            self.options.fs.sync_dir(dir).map_err(|e| Error::io("sync directory", dir, &e))?;
        }
        self.kept = true;
        Ok(std::mem::take(&mut self.finished))
    }
}

impl Drop for TableOutputs<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.open = None;
        for number in &self.created {
            // If this fails, the next open removes the file.
            let _ = self.options.fs.remove(&table_path(self.options.dir, *number));
        }
    }
}

fn file_meta(summary: &TableSummary) -> FileMeta {
    FileMeta {
        number: summary.number,
        size: summary.file_size,
        bounds: KeyBounds::of(&summary.smallest, &summary.largest),
        entries: summary.entries,
        tombstones: summary.tombstones,
        min_sequence: summary.min_seq,
        max_sequence: summary.max_seq,
        raised: false,
        weight: summary.weight,
    }
}
