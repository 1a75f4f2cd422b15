//! The interface of everything that yields entries in internal order: memtables, tables, levels
//! and merges of them.

use bytes::Bytes;

use crate::engine::entry::Tag;
use crate::error::Result;

/// A position among entries in internal order (see `engine::entry`).
///
/// A movement either succeeds or returns the error; after an error the cursor is not valid and
/// stays failed until the next seek. A failure is never mistaken for the end of the data.
/// `key`, `tag` and `value` may be called only while `valid()`; otherwise they return empty
/// slices or a zero tag. `next` and `prev` on an invalid cursor do nothing.
pub trait Cursor {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// The user key of the entry.
    fn key(&self) -> &[u8];
    /// Sequence and kind of the entry.
    fn tag(&self) -> Tag;
    /// The value of the entry.
    fn value(&self) -> &[u8];
    /// The value as bytes that outlive the cursor (pinned when large, copied when small).
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
