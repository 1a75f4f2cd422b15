//! Walks over rows: stored rows with pending writes applied, or members inside a record.

use std::ops::Range;

use bytes::Bytes;

use crate::engine::Iter;
use crate::error::Result;

/// The rows of a range, one after the other.
#[derive(Debug)]
pub(crate) enum Walk {
    /// Rows of a tree.
    Stored(StoredRows),
    /// Members inside a record.
    Packed(PackedWalk),
}

impl Walk {
    pub(super) fn new(
        base: Option<Iter>,
        pending: Vec<(Vec<u8>, Option<Bytes>)>,
        backward: bool,
    ) -> Result<Self> {
        StoredRows::new(base, pending, backward).map(Self::Stored)
    }

    /// Walks over these rows, which are in order.
    pub(crate) fn packed(rows: PackedRows, backward: bool) -> Self {
        let PackedRows { bytes, mut rows } = rows;
        if !backward {
            // Taken from the back.
            rows.reverse();
        }
        Self::Packed(PackedWalk { bytes, rows, started: false })
    }

    /// Moves to the next row, the first at the first call; `false` when there are no more.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Stored(rows) => rows.advance(),
            Self::Packed(walk) => Ok(walk.advance()),
        }
    }

    /// The key of the current row.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Self::Stored(rows) => rows.key(),
            Self::Packed(walk) => walk.bytes.get(walk.current().0).unwrap_or_default(),
        }
    }

    /// The value of the current row.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Self::Stored(rows) => rows.value(),
            Self::Packed(walk) => walk.bytes.get(walk.current().1).unwrap_or_default(),
        }
    }

    /// The value of the current row, for keeping.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match self {
            Self::Stored(rows) => rows.value_bytes(),
            Self::Packed(_) => Bytes::copy_from_slice(self.value()),
        }
    }
}

/// Rows as ranges of keys and values in one byte string.
#[derive(Debug)]
pub(crate) struct PackedRows {
    pub(crate) bytes: Bytes,
    pub(crate) rows: Vec<(Range<usize>, Range<usize>)>,
}

#[derive(Debug)]
pub(crate) struct PackedWalk {
    bytes: Bytes,
    /// The current row is at the back; before the first step, the next one.
    rows: Vec<(Range<usize>, Range<usize>)>,
    started: bool,
}

impl PackedWalk {
    fn advance(&mut self) -> bool {
        if self.started {
            self.rows.pop();
        }
        self.started = true;
        !self.rows.is_empty()
    }

    #[inline]
    fn current(&self) -> (Range<usize>, Range<usize>) {
        self.rows.last().cloned().unwrap_or_default()
    }
}

/// The engine's rows with pending writes applied.
#[derive(Debug)]
pub(crate) struct StoredRows {
    base: Option<Iter>,
    /// The pending writes in reverse order: the next one is at the back.
    pending: Vec<(Vec<u8>, Option<Bytes>)>,
    backward: bool,
    started: bool,
    /// Whether the current row is the last of `pending`.
    from_pending: bool,
}

impl StoredRows {
    fn new(
        mut base: Option<Iter>,
        pending: Vec<(Vec<u8>, Option<Bytes>)>,
        backward: bool,
    ) -> Result<Self> {
        if let Some(iter) = &mut base {
            if backward { iter.seek_to_last()? } else { iter.seek_to_first()? }
        }
        Ok(Self { base, pending, backward, started: false, from_pending: false })
    }

    fn advance(&mut self) -> Result<bool> {
        if self.started {
            self.leave_current()?;
        }
        self.started = true;
        loop {
            let base = self.base.as_ref().filter(|iter| iter.valid()).map(Iter::key);
            let Some((key, value)) = self.pending.last() else {
                self.from_pending = false;
                return Ok(base.is_some());
            };
            let order = base.map(|base| {
                let order = base.cmp(key.as_slice());
                if self.backward { order.reverse() } else { order }
            });
            let exists = value.is_some();
            match order {
                Some(std::cmp::Ordering::Less) => {
                    self.from_pending = false;
                    return Ok(true);
                }
                Some(std::cmp::Ordering::Equal) => self.step_base()?,
                Some(std::cmp::Ordering::Greater) | None => {}
            }
            if exists {
                self.from_pending = true;
                return Ok(true);
            }
            self.pending.pop();
        }
    }

    fn leave_current(&mut self) -> Result<()> {
        if self.from_pending {
            self.pending.pop();
            return Ok(());
        }
        self.step_base()
    }

    fn step_base(&mut self) -> Result<()> {
        match &mut self.base {
            Some(iter) if self.backward => iter.prev(),
            Some(iter) => iter.next(),
            None => Ok(()),
        }
    }

    fn key(&self) -> &[u8] {
        match self.pending.last() {
            Some((key, _)) if self.from_pending => key,
            _ => self.base.as_ref().map_or(&[], Iter::key),
        }
    }

    fn value(&self) -> &[u8] {
        match self.pending.last() {
            Some((_, Some(value))) if self.from_pending => value,
            _ => self.base.as_ref().map_or(&[], Iter::value),
        }
    }

    fn value_bytes(&self) -> Bytes {
        match self.pending.last() {
            Some((_, Some(value))) if self.from_pending => value.clone(),
            _ => self.base.as_ref().map_or_else(Bytes::new, Iter::value_bytes),
        }
    }
}
