//! Draws random keys of a range without reading the range.
//!
//! The entries of a range are in runs of memtables and in blocks of tables. A draw works by
//! rejection sampling, so that each entry has the same probability:
//!
//! 1. A run counts as [`RUN`] slots, the most it can have. A table counts as [`SLACK`] slots per
//!    entry, spread evenly over its blocks. One of all slots is chosen.
//! 2. If that slot of the run or block holds an entry, the entry is drawn. Otherwise the draw is
//!    rejected.
//! 3. The draw is also rejected if the entry is outside the range, is a tombstone, or is not the
//!    newest version of its key that the reader sees.
//!
//! So every key is equally likely, with one exception. If the values of a table differ much in
//! length, a block may have more than [`SLACK`] times the average number of entries. It then has
//! more entries than slots, and its entries share them. In a table without old versions one of
//! [`SLACK`] draws succeeds.
//!
//! A sampler is owned by one thread. It holds the memory and files of its read point.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::entry::{Sequence, Tag};
use crate::engine::iter::IterOptions;
use crate::engine::memtable::{Memtable, RUN};
use crate::engine::version::TableFile;
use crate::engine::view::View;
use crate::error::Result;

/// Slots of a table per entry.
const SLACK: u64 = 4;

/// A source of random numbers below its argument.
pub(crate) type Random<'r> = &'r mut dyn FnMut(u64) -> u64;

/// A key, its tag and its value.
type Entry = (Vec<u8>, Tag, Bytes);

/// A key and its value.
pub(crate) type Drawn = (Vec<u8>, Bytes);

/// Draws random keys of a range at one read point.
#[derive(Debug)]
pub struct Sampler {
    view: Arc<View>,
    tree: TreeId,
    sequence: Sequence,
    options: IterOptions,
    strata: Vec<Stratum>,
    slots: u64,
}

/// The slots of one memtable or table.
#[derive(Debug)]
struct Stratum {
    /// Number of slots up to the end of this stratum.
    end: u64,
    slots: u64,
    source: StratumSource,
}

#[derive(Debug)]
enum StratumSource {
    Memtable(Arc<Memtable>),
    /// A table, with the blocks that may hold keys of the range; `None` means all blocks.
    Table(Arc<TableFile>, Option<Range<usize>>),
}

impl Sampler {
    pub(crate) fn new(
        view: &Arc<View>,
        tree: TreeId,
        sequence: Sequence,
        options: IterOptions,
    ) -> Result<Self> {
        let view = Arc::clone(view);
        let mut sampler = Self { view, tree, sequence, options, strata: Vec::new(), slots: 0 };
        sampler.find_strata()?;
        Ok(sampler)
    }

    fn find_strata(&mut self) -> Result<()> {
        let view = Arc::clone(&self.view);
        for memtable in view.memtables(self.tree) {
            let runs = memtable.runs_between(self.lower(), self.upper()).len() as u64;
            self.add(runs * RUN as u64, StratumSource::Memtable(Arc::clone(memtable)));
        }
        let (lower, upper) = (self.options.lower.clone(), self.options.upper.clone());
        for file in view.tables_between(self.tree, lower.as_deref(), upper.as_deref()) {
            self.add_table(file)?;
        }
        Ok(())
    }

    fn lower(&self) -> &[u8] {
        self.options.lower.as_deref().unwrap_or_default()
    }

    fn upper(&self) -> Option<&[u8]> {
        self.options.upper.as_deref()
    }

    /// An upper bound for the number of entries in the range, all versions counted. The number is
    /// usually about a quarter of it.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    fn add(&mut self, slots: u64, source: StratumSource) {
        if slots > 0 {
            self.slots = self.slots.saturating_add(slots);
            self.strata.push(Stratum { end: self.slots, slots, source });
        }
    }

    /// Adds the slots of a table. If the table reaches beyond the range, only the blocks within the
    /// range count.
    fn add_table(&mut self, file: &Arc<TableFile>) -> Result<()> {
        let meta = file.meta();
        let all = meta.entries.saturating_mul(SLACK);
        if meta.bounds.lie_within(self.lower(), self.upper()) {
            self.add(all, StratumSource::Table(Arc::clone(file), None));
            return Ok(());
        }
        let table = file.table()?;
        let blocks = table.blocks_between(self.lower(), self.upper())?;
        let part = u128::from(all) * blocks.len() as u128;
        let part = part / u128::from(table.properties().blocks.max(1));
        // A part of `all`.
        let slots = u64::try_from(part).unwrap_or(all);
        self.add(slots, StratumSource::Table(Arc::clone(file), Some(blocks)));
        Ok(())
    }

    /// Draws a key; `None` if the draw was rejected.
    pub fn draw(&self, random: Random<'_>) -> Result<Option<Drawn>> {
        if self.slots == 0 {
            return Ok(None);
        }
        let slot = random(self.slots);
        let at = self.strata.partition_point(|stratum| stratum.end <= slot);
        let Some(stratum) = self.strata.get(at) else { return Ok(None) };
        let (key, tag, value) = match &stratum.source {
            StratumSource::Memtable(memtable) => {
                let Some(found) = memtable.draw(self.lower(), self.upper(), random) else {
                    return Ok(None);
                };
                (found.key().to_vec(), found.tag(), found.value_bytes())
            }
            StratumSource::Table(file, blocks) => {
                let slot = slot - (stratum.end - stratum.slots);
                let drawn = self.draw_from(file, blocks.as_ref(), (slot, stratum.slots), random)?;
                let Some(entry) = drawn else { return Ok(None) };
                entry
            }
        };
        Ok(self.is_visible(&key, tag)?.then_some((key, value)))
    }

    fn is_visible(&self, key: &[u8], tag: Tag) -> Result<bool> {
        let within = key >= self.lower() && self.upper().is_none_or(|upper| key < upper);
        if !within || tag.is_delete() || tag.sequence() > self.sequence {
            return Ok(false);
        }
        Ok(self.view.newest(self.tree, key, self.sequence, self.options.cache_fill)? == Some(tag))
    }

    /// Performs steps 1 and 2 for one slot of a table.
    fn draw_from(
        &self,
        file: &TableFile,
        blocks: Option<&Range<usize>>,
        (slot, slots): (u64, u64),
        random: Random<'_>,
    ) -> Result<Option<Entry>> {
        let table = file.table()?;
        let all = table.live_blocks()?;
        let blocks = blocks.unwrap_or(&all);
        let (count, slots) = (blocks.len().max(1) as u64, slots.max(1));
        // Block `b` has the slots from `b * slots / count` on.
        let scaled = u128::from(slot) * u128::from(count);
        let block = usize::try_from(scaled / u128::from(slots)).unwrap_or(0);
        let rest = scaled % u128::from(slots) / u128::from(count);
        let number = blocks.start.saturating_add(block);
        table.entry_at(number, self.options.cache_fill, |entries| {
            let entries = u64::from(entries);
            let crowded = entries > slots / count;
            let entry =
                if crowded { random(entries) } else { u64::try_from(rest).unwrap_or(u64::MAX) };
            u32::try_from(entry).ok().filter(|_| entry < entries)
        })
    }
}

#[cfg(test)]
mod tests;
