//! Cursors: positions among entries in internal order. Memtables, tables, levels and merges of them
//! have one.

mod merge;

use bytes::Bytes;

use crate::engine::entry::Tag;
use crate::error::Result;

pub(crate) use merge::MergeCursor;

/// A position among entries in internal order: user key ascending, then newest version first.
///
/// Every movement may fail. After an error the cursor is not valid, and `next` and `prev` return
/// the error again until the next seek: a failure is never mistaken for the end of the data. While
/// the cursor is not valid, `key`, `tag` and `value` return empty slices or a zero tag, and `next`
/// and `prev` do not move it.
pub trait Cursor {
    /// Whether the cursor is at an entry.
    fn valid(&self) -> bool;
    /// The user key of the current entry.
    fn key(&self) -> &[u8];
    /// Sequence number and kind of the current entry.
    fn tag(&self) -> Tag;
    /// The value of the current entry.
    fn value(&self) -> &[u8];
    /// The value as bytes that outlive the cursor: a long value is pinned, a short one copied.
    fn value_bytes(&self) -> Bytes;
    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after `(key, tag)` in internal order.
    fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()>;
    /// Moves to the last entry strictly before `(key, tag)` in internal order.
    fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()>;
    /// Moves to the next entry.
    fn next(&mut self) -> Result<()>;
    /// Moves to the previous entry.
    fn prev(&mut self) -> Result<()>;
}
