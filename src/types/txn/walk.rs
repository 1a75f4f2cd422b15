//! A walk over rows: that have been written and that are kept aside, or that are in a record.

use std::ops::Range;

use bytes::Bytes;

use crate::engine::Iter;
use crate::error::Result;

/// Rows of a range, one after the other.
#[derive(Debug)]
pub(crate) enum Walk {
    /// Of a tree.
    Stored(StoredRows),
    /// Of a record.
    Packed(PackedWalk),
}

impl Walk {
    pub(super) fn new(
        base: Option<Iter>,
        aside: Vec<(Vec<u8>, Option<Bytes>)>,
        backward: bool,
    ) -> Result<Self> {
        StoredRows::new(base, aside, backward).map(Self::Stored)
    }

    /// Over these rows, which are in order.
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

    /// The value of the current row, to be kept.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match self {
            Self::Stored(rows) => rows.value_bytes(),
            Self::Packed(_) => Bytes::copy_from_slice(self.value()),
        }
    }
}

/// Rows by the places of their keys and values in bytes that hold them all.
#[derive(Debug)]
pub(crate) struct PackedRows {
    pub(crate) bytes: Bytes,
    pub(crate) rows: Vec<(Range<usize>, Range<usize>)>,
}

#[derive(Debug)]
pub(crate) struct PackedWalk {
    bytes: Bytes,
    /// The current one, or the next before the first, is at the back.
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

/// The engine's rows with the writes kept aside over them.
#[derive(Debug)]
pub(crate) struct StoredRows {
    base: Option<Iter>,
    /// The next one is at the back.
    aside: Vec<(Vec<u8>, Option<Bytes>)>,
    backward: bool,
    started: bool,
    /// Whether the row shown is the last of `aside`.
    from_aside: bool,
}

impl StoredRows {
    fn new(
        mut base: Option<Iter>,
        aside: Vec<(Vec<u8>, Option<Bytes>)>,
        backward: bool,
    ) -> Result<Self> {
        if let Some(iter) = &mut base {
            if backward { iter.seek_to_last()? } else { iter.seek_to_first()? }
        }
        Ok(Self { base, aside, backward, started: false, from_aside: false })
    }

    fn advance(&mut self) -> Result<bool> {
        if self.started {
            self.leave_current()?;
        }
        self.started = true;
        loop {
            let base = self.base.as_ref().filter(|iter| iter.valid()).map(Iter::key);
            let Some((key, value)) = self.aside.last() else {
                self.from_aside = false;
                return Ok(base.is_some());
            };
            let order = base.map(|base| {
                let order = base.cmp(key.as_slice());
                if self.backward { order.reverse() } else { order }
            });
            let exists = value.is_some();
            match order {
                Some(std::cmp::Ordering::Less) => {
                    self.from_aside = false;
                    return Ok(true);
                }
                Some(std::cmp::Ordering::Equal) => self.step_base()?,
                Some(std::cmp::Ordering::Greater) | None => {}
            }
            if exists {
                self.from_aside = true;
                return Ok(true);
            }
            self.aside.pop();
        }
    }

    fn leave_current(&mut self) -> Result<()> {
        if self.from_aside {
            self.aside.pop();
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
        match self.aside.last() {
            Some((key, _)) if self.from_aside => key,
            _ => self.base.as_ref().map_or(&[], Iter::key),
        }
    }

    fn value(&self) -> &[u8] {
        match self.aside.last() {
            Some((_, Some(value))) if self.from_aside => value,
            _ => self.base.as_ref().map_or(&[], Iter::value),
        }
    }

    fn value_bytes(&self) -> Bytes {
        match self.aside.last() {
            Some((_, Some(value))) if self.from_aside => value.clone(),
            _ => self.base.as_ref().map_or_else(Bytes::new, Iter::value_bytes),
        }
    }
}
