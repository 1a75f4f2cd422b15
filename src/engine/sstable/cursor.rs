//! A cursor over a table. One thread owns it. It does not allocate per entry, and values are slices
//! of the current block.
//!
//! A cursor that does not fill the cache reads ahead. Once it moves from one block to the next, it
//! fetches several blocks with one read, twice as much each time, up to a limit.

use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::cache::CacheFill;
use super::format::{Malformed, TRAILER_BYTES};
use super::resident::Resident;
use super::table::Table;
use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, MAX_SEQUENCE, Sequence, Tag};
use crate::error::{Error, Result};

const FIRST_SPAN: u64 = 16 << 10;
const LAST_SPAN: u64 = 256 << 10;

/// A position in a table.
#[derive(Debug)]
pub struct TableCursor {
    table: Arc<Table>,
    cache_fill: CacheFill,
    /// Kept from the first movement on, even if the table evicts its own.
    resident: Option<Arc<Resident>>,
    /// Number of the current data block.
    number: usize,
    at: Option<BlockCursor>,
    failure: Option<Error>,
    /// The key buffer while `at` is `None`.
    key_buffer: Vec<u8>,
    ahead: ReadAhead,
}

/// Bytes of the file that were read ahead.
#[derive(Debug)]
struct ReadAhead {
    offset: u64,
    bytes: Vec<u8>,
    span: u64,
}

impl ReadAhead {
    fn reset(&mut self) {
        self.bytes.clear();
        self.span = FIRST_SPAN;
    }

    fn slice(&self, start: u64, end: u64) -> Option<&[u8]> {
        let start = usize::try_from(start.checked_sub(self.offset)?).ok()?;
        let end = usize::try_from(end.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..end)
    }
}

impl TableCursor {
    fn new(table: Arc<Table>, cache_fill: CacheFill) -> Self {
        Self {
            table,
            cache_fill,
            resident: None,
            number: 0,
            at: None,
            failure: None,
            key_buffer: Vec::new(),
            ahead: ReadAhead { offset: 0, bytes: Vec::new(), span: FIRST_SPAN },
        }
    }

    /// Runs a seek: clears the position, the failure and the bytes read ahead, and then moves.
    fn start_over(
        &mut self,
        movement: impl FnOnce(&mut Self, &Resident) -> Result<()>,
    ) -> Result<()> {
        self.detach();
        self.failure = None;
        self.ahead.reset();
        let moved = self.with_resident(movement);
        self.settle(moved)?;
        self.leave_discarded();
        Ok(())
    }

    /// Ends the walk if it has reached entries that do not count.
    #[inline]
    fn leave_discarded(&mut self) {
        if self.table.lower.is_some() {
            self.leave_before_lower();
        }
    }

    #[cold]
    fn leave_before_lower(&mut self) {
        let lower = self.table.lower.as_deref().unwrap_or_default();
        if self.at.as_ref().is_some_and(|at| at.key() < lower) {
            self.detach();
        }
    }

    /// Moves to the first entry that counts.
    fn enter_start(&mut self, resident: &Resident) -> Result<()> {
        match self.table.lower.clone() {
            Some(lower) => self.enter_at(resident, &lower, Tag::newest_at(MAX_SEQUENCE)),
            None => self.enter_first(resident, 0),
        }
    }

    /// Whether a position is before all entries that count.
    fn is_before_lower(&self, key: &[u8]) -> bool {
        self.table.lower.as_ref().is_some_and(|lower| *key < **lower)
    }

    /// Runs a movement with the resident parts. They are taken out and put back: cloning them at
    /// every block would make all cursors of the table contend for a reference count.
    fn with_resident(
        &mut self,
        movement: impl FnOnce(&mut Self, &Resident) -> Result<()>,
    ) -> Result<()> {
        let resident = match self.resident.take() {
            Some(resident) => resident,
            None => self.table.resident()?,
        };
        let moved = movement(self, &resident);
        self.resident = Some(resident);
        moved
    }

    /// Finds out how many of the next entries have keys before `limit`, for
    /// [`TableCursor::next_uncontested`], and returns that number: at most the rest of the block.
    /// The caller promises that, until the cursor moves backward or seeks, no other source of its
    /// merge gets an entry before `limit`.
    pub(crate) fn find_uncontested(&mut self, limit: Option<&[u8]>) -> u32 {
        self.at.as_mut().map_or(0, |at| at.find_uncontested(limit))
    }

    /// Moves to the next entry if it is uncontested, visible at `sequence`, sets its key, and has
    /// another key than the current entry. Otherwise returns `false` and stays.
    #[inline]
    pub(crate) fn next_uncontested(&mut self, sequence: Sequence) -> bool {
        self.at.as_mut().is_some_and(|at| at.next_uncontested(sequence))
    }

    fn detach(&mut self) {
        if let Some(at) = self.at.take() {
            self.key_buffer = at.into_buffer();
        }
    }

    /// Moves to entry `entry` of `block`, which is data block `number`.
    fn enter(
        &mut self,
        resident: &Resident,
        number: usize,
        block: Block,
        entry: u32,
    ) -> Result<()> {
        let at = BlockCursor::at(block, entry, std::mem::take(&mut self.key_buffer));
        self.at = Some(at.map_err(|why| self.table.malformed(&resident.index, number, why))?);
        self.number = number;
        Ok(())
    }

    fn enter_first(&mut self, resident: &Resident, number: usize) -> Result<()> {
        if number >= resident.index.count() {
            return Ok(());
        }
        let block = self.table.block(&resident.index, number, self.cache_fill)?;
        self.enter(resident, number, block, 0)
    }

    fn enter_last(&mut self, resident: &Resident, number: Option<usize>) -> Result<()> {
        let first = self.table.first_block(&resident.index);
        let Some(number) = number.filter(|number| *number >= first) else { return Ok(()) };
        let block = self.table.block(&resident.index, number, self.cache_fill)?;
        let last = block.count() - 1;
        self.enter(resident, number, block, last)
    }

    fn enter_at(&mut self, resident: &Resident, key: &[u8], tag: Tag) -> Result<()> {
        let number = resident.index.search(key, tag);
        if number == resident.index.count() {
            return Ok(());
        }
        let block = self.table.block(&resident.index, number, self.cache_fill)?;
        let entry = block.lower_bound(key, tag);
        let entry = entry.map_err(|why| self.table.malformed(&resident.index, number, why))?;
        if entry == block.count() {
            return self.enter_first(resident, number + 1);
        }
        self.enter(resident, number, block, entry)
    }

    fn enter_before(&mut self, resident: &Resident, key: &[u8], tag: Tag) -> Result<()> {
        let number = resident.index.search(key, tag);
        if number == resident.index.count() {
            return self.enter_last(resident, number.checked_sub(1));
        }
        let block = self.table.block(&resident.index, number, self.cache_fill)?;
        let entry = block.lower_bound(key, tag);
        let entry = entry.map_err(|why| self.table.malformed(&resident.index, number, why))?;
        match entry.checked_sub(1) {
            Some(entry) => self.enter(resident, number, block, entry),
            None => self.enter_last(resident, number.checked_sub(1)),
        }
    }

    /// Moves from the last entry of a block to the next block.
    #[cold]
    fn next_block(&mut self) -> Result<()> {
        self.detach();
        let number = self.number + 1;
        let moved = self.with_resident(|cursor, resident| {
            if cursor.cache_fill.fills() || number >= resident.index.count() {
                return cursor.enter_first(resident, number);
            }
            let block = cursor.block_ahead(resident, number)?;
            cursor.enter(resident, number, block, 0)
        });
        self.settle(moved)
    }

    /// Moves from the first entry of a block to the previous block.
    #[cold]
    fn previous_block(&mut self) -> Result<()> {
        self.detach();
        let number = self.number.checked_sub(1);
        let moved = self.with_resident(|cursor, resident| cursor.enter_last(resident, number));
        self.settle(moved)?;
        self.leave_discarded();
        Ok(())
    }

    /// Data block `number` from the bytes read ahead, which are refilled if necessary.
    fn block_ahead(&mut self, resident: &Resident, number: usize) -> Result<Block> {
        let (start, end) = (resident.index.offset(number), resident.index.offset(number + 1));
        if end - start > LAST_SPAN {
            // Nothing is gained by reading it together with others, and a copy of it would be kept.
            self.ahead.bytes = Vec::new();
            return self.table.block(&resident.index, number, self.cache_fill);
        }
        if self.ahead.slice(start, end).is_none() {
            self.read_ahead(resident, start, end)?;
        }
        let framed = self.ahead.slice(start, end).unwrap_or_default();
        let block = self.table.loader.block_from(framed, start)?;
        self.table.counters.block_reads.add(1);
        self.table.counters.block_read_bytes.add(end - start - u64::from(TRAILER_BYTES));
        Ok(block)
    }

    fn read_ahead(&mut self, resident: &Resident, start: u64, block_end: u64) -> Result<()> {
        let data_end = resident.index.offset(resident.index.count());
        let end = start.saturating_add(self.ahead.span).min(data_end).max(block_end);
        self.ahead.span = (self.ahead.span * 2).min(LAST_SPAN);
        self.ahead.offset = start;
        self.ahead.bytes.resize(usize::try_from(end - start).unwrap_or(usize::MAX), 0);
        let read = self.table.loader.read(&mut self.ahead.bytes, start);
        if read.is_err() {
            self.ahead.bytes.clear();
        }
        read
    }

    /// Remembers a failure until the next seek.
    fn settle(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            self.detach();
            self.failure = Some(error.clone());
        }
        result
    }

    #[cold]
    fn fail_in_block(&mut self, why: Malformed) -> Result<()> {
        let offset = self.resident.as_ref().map_or(0, |r| r.index.offset(self.number));
        let error = self.table.loader.malformed(offset, why);
        self.settle(Err(error))
    }

    fn last_failure(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl Table {
    /// A cursor over the table, without a position. With [`CacheFill::Skip`] it also reads ahead,
    /// which suits long scans such as compactions.
    pub fn cursor(self: &Arc<Self>, cache_fill: CacheFill) -> TableCursor {
        TableCursor::new(Arc::clone(self), cache_fill)
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], BlockCursor::key)
    }

    #[inline]
    fn tag(&self) -> Tag {
        self.at.as_ref().map_or(Tag::new(0, EntryKind::Delete), BlockCursor::tag)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], BlockCursor::value)
    }

    fn value_bytes(&self) -> Bytes {
        self.at.as_ref().map_or_else(Bytes::new, BlockCursor::value_bytes)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.start_over(Self::enter_start)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.start_over(|cursor, resident| {
            cursor.enter_last(resident, resident.index.count().checked_sub(1))
        })
    }

    fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.start_over(|cursor, resident| match cursor.is_before_lower(key) {
            true => cursor.enter_start(resident),
            false => cursor.enter_at(resident, key, tag),
        })
    }

    fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.start_over(|cursor, resident| match cursor.is_before_lower(key) {
            true => Ok(()),
            false => cursor.enter_before(resident, key, tag),
        })
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some(at) = &mut self.at else { return self.last_failure() };
        match at.next() {
            Ok(true) => Ok(()),
            Ok(false) => self.next_block(),
            Err(why) => self.fail_in_block(why),
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let Some(at) = &mut self.at else { return self.last_failure() };
        match at.prev() {
            Ok(true) => {
                self.leave_discarded();
                Ok(())
            }
            Ok(false) => self.previous_block(),
            Err(why) => self.fail_in_block(why),
        }
    }
}
