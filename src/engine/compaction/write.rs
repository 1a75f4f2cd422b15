//! Writes what a merge or a flush yields into new tables.
//!
//! Outputs that were begun are removed again when the work fails: inputs are kept, so nothing is
//! lost. They become part of the store only by an edit of the manifest.

use std::path::Path;
use std::sync::Arc;

use crate::engine::config::TreeConfig;
use crate::engine::entry::Tag;
use crate::engine::files::{FileNumber, FileNumbers, table_path};
use crate::engine::sstable::{TableSummary, TableWriter, WriterOptions};
use crate::engine::version::FileMeta;
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// Where tables are made and how.
#[derive(Clone, Copy, Debug)]
pub struct Workshop<'a> {
    /// The file system.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The store's directory.
    pub dir: &'a Path,
    /// Source of file numbers.
    pub numbers: &'a FileNumbers,
    /// The tree the tables are for.
    pub tree: &'a TreeConfig,
    /// Block size, filter, compression.
    pub options: WriterOptions,
    /// A table is finished when it has reached this size.
    pub table_bytes: u64,
}

/// Tables being written, in key order.
#[derive(Debug)]
pub struct Outputs<'a> {
    workshop: Workshop<'a>,
    open: Option<TableWriter>,
    finished: Vec<FileMeta>,
    created: Vec<FileNumber>,
    kept: bool,
}

impl<'a> Outputs<'a> {
    /// Nothing written yet.
    pub fn new(workshop: Workshop<'a>) -> Self {
        Self { workshop, open: None, finished: Vec::new(), created: Vec::new(), kept: false }
    }

    /// Adds an entry to the table in progress.
    #[inline]
    pub fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        match &mut self.open {
            Some(writer) => writer.add(key, tag, value),
            None => self.begin()?.add(key, tag, value),
        }
    }

    /// Whether the table in progress has reached its size. The caller finishes it between keys:
    /// all versions of a key are in one table of a level.
    #[inline]
    pub fn is_full(&self) -> bool {
        let full = |writer: &TableWriter| writer.estimated_size() >= self.workshop.table_bytes;
        self.open.as_ref().is_some_and(full)
    }

    /// Whether a table is in progress.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn begin(&mut self) -> Result<&mut TableWriter> {
        let number = self.workshop.numbers.allocate();
        let path = table_path(self.workshop.dir, number);
        let file = self.workshop.fs.create(&path).map_err(|e| Error::io("create", &path, &e))?;
        self.created.push(number);
        let collectors =
            self.workshop.tree.collectors.as_ref().map_or_else(Vec::new, |made| made.collectors());
        let writer = TableWriter::new(file, path, number, self.workshop.options, collectors);
        Ok(self.open.insert(writer))
    }

    /// Completes and syncs the table in progress, if there is one. Returns its size.
    pub fn finish_table(&mut self) -> Result<u64> {
        let Some(writer) = self.open.take() else { return Ok(0) };
        let meta = file_meta(writer.finish()?);
        let size = meta.size;
        self.finished.push(meta);
        Ok(size)
    }

    /// Completes everything, makes the names durable and hands the tables over.
    pub fn finish(mut self) -> Result<Vec<FileMeta>> {
        self.finish_table()?;
        if !self.finished.is_empty() {
            let dir = self.workshop.dir;
            self.workshop.fs.sync_dir(dir).map_err(|e| Error::io("sync directory", dir, &e))?;
        }
        self.kept = true;
        Ok(std::mem::take(&mut self.finished))
    }
}

impl Drop for Outputs<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.open = None;
        for number in &self.created {
            // What cannot be removed now is removed at the next open.
            let _ = self.workshop.fs.remove(&table_path(self.workshop.dir, *number));
        }
    }
}

fn file_meta(summary: TableSummary) -> FileMeta {
    FileMeta {
        number: summary.number,
        size: summary.file_size,
        smallest: summary.smallest.into(),
        largest: summary.largest.into(),
        entries: summary.entries,
        tombstones: summary.tombstones,
        min_sequence: summary.min_seq,
        max_sequence: summary.max_seq,
    }
}
