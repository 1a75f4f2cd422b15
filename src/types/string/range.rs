//! Parts of strings.

use std::ops::Range;

use bytes::Bytes;

use super::length;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;

impl Tx<'_> {
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<i64> {
        let mut draft = self.draft(key)?;
        if draft.exists() {
            self.check_growth(draft.len() as u64, value.len())?;
        }
        draft.write(self, draft.len(), value)?;
        let total = length(draft.len());
        // Also without a change, which WATCH notices all the same, as in Redis.
        self.put_draft(draft)?;
        self.notify(Classes::STRING, "append", key);
        Ok(total)
    }

    pub(crate) fn getrange(&self, key: &[u8], start: i64, end: i64) -> Result<Bytes> {
        let Some(value) = self.string(key)? else { return Ok(Bytes::new()) };
        value.range(self, resolve(start, end, value.len()))
    }

    pub(crate) fn substr(&self, key: &[u8], start: i64, end: i64) -> Result<Bytes> {
        self.getrange(key, start, end)
    }

    pub(crate) fn setrange(&mut self, key: &[u8], offset: i64, value: &[u8]) -> Result<i64> {
        let Ok(offset) = u64::try_from(offset) else {
            return Err(Error::new(ErrorKind::OutOfRange, "ERR offset is out of range"));
        };
        if value.is_empty() {
            return self.strlen(key);
        }
        // The type is checked before the size.
        let mut draft = self.draft(key)?;
        self.check_growth(offset, value.len())?;
        draft.write(self, usize::try_from(offset).unwrap_or(usize::MAX), value)?;
        let total = length(draft.len());
        self.put_draft(draft)?;
        self.notify(Classes::STRING, "setrange", key);
        Ok(total)
    }
}

/// The range of `len` items between two indexes, inclusive; negative ones count from the end, and
/// those before the beginning mean the first item.
pub(crate) fn clamp(start: i64, end: i64, len: usize) -> Range<usize> {
    let total = length(len);
    let from_front = |index: i64| if index < 0 { (index + total).max(0) } else { index };
    let (start, end) = (from_front(start), from_front(end).min(total - 1));
    if start > end {
        return 0..0;
    }
    usize::try_from(start).unwrap_or(0)..usize::try_from(end + 1).unwrap_or(0)
}

/// The range of [`clamp`], but empty if both indexes are negative and in the wrong order, even
/// where both lie before the beginning.
pub(crate) fn resolve(start: i64, end: i64, len: usize) -> Range<usize> {
    if start < 0 && end < 0 && start > end { 0..0 } else { clamp(start, end, len) }
}
