//! A walk over rows that have been written and rows that are kept aside.

use bytes::Bytes;

use crate::engine::Iter;
use crate::error::Result;

/// Rows of a range, one after the other: the engine's, with the writes kept aside over them.
#[derive(Debug)]
pub(crate) struct Walk {
    base: Option<Iter>,
    /// The next one is at the back.
    aside: Vec<(Vec<u8>, Option<Bytes>)>,
    backward: bool,
    started: bool,
    /// Whether the row shown is the last of `aside`.
    from_aside: bool,
}

impl Walk {
    pub(super) fn new(
        mut base: Option<Iter>,
        aside: Vec<(Vec<u8>, Option<Bytes>)>,
        backward: bool,
    ) -> Result<Self> {
        if let Some(iter) = &mut base {
            if backward { iter.seek_to_last()? } else { iter.seek_to_first()? }
        }
        Ok(Self { base, aside, backward, started: false, from_aside: false })
    }

    /// Moves to the next row, the first at the first call; `false` when there are no more.
    pub(crate) fn advance(&mut self) -> Result<bool> {
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

    /// The key of the row.
    pub(crate) fn key(&self) -> &[u8] {
        match self.aside.last() {
            Some((key, _)) if self.from_aside => key,
            _ => self.base.as_ref().map_or(&[], Iter::key),
        }
    }

    /// The value of the row.
    pub(crate) fn value(&self) -> &[u8] {
        match self.aside.last() {
            Some((_, Some(value))) if self.from_aside => value,
            _ => self.base.as_ref().map_or(&[], Iter::value),
        }
    }

    /// The value of the row, to keep.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match self.aside.last() {
            Some((_, Some(value))) if self.from_aside => value.clone(),
            _ => self.base.as_ref().map_or_else(Bytes::new, Iter::value_bytes),
        }
    }
}
