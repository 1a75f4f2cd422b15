//! The sources that an iterator merges: memtables, single tables, and whole sorted levels.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::cursor::Cursor;
use crate::engine::entry::Tag;
use crate::engine::memtable::MemtableCursor;
use crate::engine::sstable::{CacheFill, TableCursor};
use crate::engine::version::TableFile;
use crate::error::Result;

/// A cursor over one source. An enum rather than a trait object, since its calls are the hot path
/// of scans.
#[derive(Debug)]
pub(crate) enum Source {
    /// A memtable.
    Memtable(MemtableCursor),
    /// One table of level 0.
    Table(TableCursor),
    /// The tables of a sorted level, one after another.
    Level(LevelCursor),
}

macro_rules! each {
    ($self:expr, $cursor:ident => $call:expr) => {
        match $self {
            Source::Memtable($cursor) => $call,
            Source::Table($cursor) => $call,
            Source::Level($cursor) => $call,
        }
    };
}

impl Source {
    /// The cursor over the current table, unless this is a memtable.
    #[inline]
    pub(crate) fn table_mut(&mut self) -> Option<&mut TableCursor> {
        match self {
            Self::Memtable(_) => None,
            Self::Table(cursor) => Some(cursor),
            Self::Level(level) => level.open.as_mut(),
        }
    }
}

impl Cursor for Source {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, cursor => cursor.valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }

    #[inline]
    fn tag(&self) -> Tag {
        each!(self, cursor => cursor.tag())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    fn value_bytes(&self) -> Bytes {
        each!(self, cursor => cursor.value_bytes())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_to_last())
    }

    fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        each!(self, cursor => cursor.seek(key, tag))
    }

    fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        each!(self, cursor => cursor.seek_before(key, tag))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }

    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }
}

/// A cursor over tables that are sorted by key and do not overlap. It opens one at a time.
#[derive(Debug)]
pub(crate) struct LevelCursor {
    files: Vec<Arc<TableFile>>,
    /// Index of the open file.
    at: usize,
    open: Option<TableCursor>,
    cache_fill: CacheFill,
}

impl LevelCursor {
    /// A cursor over `files` without a position. A seek gives it one.
    pub(crate) fn new(files: Vec<Arc<TableFile>>, cache_fill: CacheFill) -> Self {
        Self { files, at: 0, open: None, cache_fill }
    }

    /// Opens file `at`, unless it is open. Without such a file the cursor is not valid.
    fn open_at(&mut self, at: usize) -> Result<Option<&mut TableCursor>> {
        if at != self.at || self.open.is_none() {
            self.open = None;
            if let Some(file) = self.files.get(at) {
                self.open = Some(file.table()?.cursor(self.cache_fill));
            }
            self.at = at;
        }
        Ok(self.open.as_mut())
    }

    /// While the open file has no further entries, moves to the first entry of the next file.
    fn skip_forward(&mut self) -> Result<()> {
        while self.open.as_ref().is_some_and(|cursor| !cursor.valid()) {
            if let Some(cursor) = self.open_at(self.at + 1)? {
                cursor.seek_to_first()?;
            }
        }
        Ok(())
    }

    /// While the open file has no earlier entries, moves to the last entry of the previous file.
    fn skip_backward(&mut self) -> Result<()> {
        while self.open.as_ref().is_some_and(|cursor| !cursor.valid()) {
            let Some(previous) = self.at.checked_sub(1) else {
                self.open = None;
                return Ok(());
            };
            if let Some(cursor) = self.open_at(previous)? {
                cursor.seek_to_last()?;
            }
        }
        Ok(())
    }
}

impl Cursor for LevelCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.open.as_ref().is_some_and(Cursor::valid)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], Cursor::key)
    }

    #[inline]
    fn tag(&self) -> Tag {
        self.open.as_ref().map_or(Tag::newest_at(0), Cursor::tag)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], Cursor::value)
    }

    fn value_bytes(&self) -> Bytes {
        self.open.as_ref().map_or_else(Bytes::new, Cursor::value_bytes)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        if let Some(cursor) = self.open_at(0)? {
            cursor.seek_to_first()?;
        }
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        if let Some(cursor) = self.open_at(self.files.len().saturating_sub(1))? {
            cursor.seek_to_last()?;
        }
        self.skip_backward()
    }

    fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        let at = self.files.partition_point(|file| file.meta().bounds.end_before(key));
        if let Some(cursor) = self.open_at(at)? {
            cursor.seek(key, tag)?;
        }
        self.skip_forward()
    }

    fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        let after = self.files.partition_point(|file| !file.meta().bounds.begin_after(key));
        // If no file begins at or before the key, nothing comes before it.
        let at = after.checked_sub(1).unwrap_or(self.files.len());
        if let Some(cursor) = self.open_at(at)? {
            cursor.seek_before(key, tag)?;
        }
        self.skip_backward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match self.open.as_mut() {
            Some(cursor) => cursor.next()?,
            None => return Ok(()),
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        match self.open.as_mut() {
            Some(cursor) => cursor.prev()?,
            None => return Ok(()),
        }
        self.skip_backward()
    }
}
