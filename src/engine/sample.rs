//! Keys of a range drawn at random, without reading the range.
//!
//! The entries of a range lie in runs of the memtables' order and in blocks of tables. A draw
//! chooses a place among them and an entry there so that each entry, of whatever version, has the
//! same probability; an entry that is not what a reader sees of its key is refused, and so is a
//! draw that met nothing:
//!
//! 1. A run counts for [`RUN`] slots, as many as it can have; a table for [`SLACK`] slots an entry,
//!    spread evenly over its blocks. Of all slots one is chosen.
//! 2. If that slot of the run or block holds an entry, that entry is drawn; else nothing is.
//! 3. The entry counts if it is within the range, no delete, and the newest of its key at the
//!    reader's moment.
//!
//! So every key is equally likely, with one exception: a block with more than [`SLACK`] times as
//! many entries as the blocks of its table have on average (values of very different lengths) has
//! more entries than slots, and they share those. A draw of a table without old versions succeeds
//! once in [`SLACK`] times.
//!
//! Owned by one thread; holds the memory and files of its moment.

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

/// Slots of a table for each of its entries.
const SLACK: u64 = 4;

/// Numbers at random, below the one given.
pub(crate) type Random<'r> = &'r mut dyn FnMut(u64) -> u64;

/// A key, its tag and its value.
type Entry = (Vec<u8>, Tag, Bytes);

/// A key and its value.
pub(crate) type Drawn = (Vec<u8>, Bytes);

/// See the module's documentation.
#[derive(Debug)]
pub struct Sampler {
    view: Arc<View>,
    tree: TreeId,
    sequence: Sequence,
    options: IterOptions,
    places: Vec<Place>,
    slots: u64,
}

#[derive(Debug)]
struct Place {
    /// Slots of this place and all before it.
    end: u64,
    slots: u64,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Memtable(Arc<Memtable>),
    /// With its blocks that may hold keys of the range; `None`: all.
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
        let mut sampler = Self { view, tree, sequence, options, places: Vec::new(), slots: 0 };
        sampler.find_places()?;
        Ok(sampler)
    }

    fn find_places(&mut self) -> Result<()> {
        let view = Arc::clone(&self.view);
        for memtable in view.memtables(self.tree) {
            let runs = memtable.runs_between(self.lower(), self.upper()).len() as u64;
            self.add(runs * RUN as u64, Home::Memtable(Arc::clone(memtable)));
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

    /// Entries of the range, of all versions, at most; about a quarter of it is more likely.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    fn add(&mut self, slots: u64, home: Home) {
        if slots > 0 {
            self.slots = self.slots.saturating_add(slots);
            self.places.push(Place { end: self.slots, slots, home });
        }
    }

    /// Only of a table at an end of the range does it matter which blocks there are.
    fn add_table(&mut self, file: &Arc<TableFile>) -> Result<()> {
        let meta = file.meta();
        let all = meta.entries.saturating_mul(SLACK);
        let inside = *meta.smallest >= *self.lower()
            && self.upper().is_none_or(|upper| *meta.largest < *upper);
        if inside {
            self.add(all, Home::Table(Arc::clone(file), None));
            return Ok(());
        }
        let table = file.table()?;
        let blocks = table.blocks_between(self.lower(), self.upper())?;
        let part = u128::from(all) * blocks.len() as u128;
        let part = part / u128::from(table.properties().blocks.max(1));
        // A part of `all`.
        let slots = u64::try_from(part).unwrap_or(all);
        self.add(slots, Home::Table(Arc::clone(file), Some(blocks)));
        Ok(())
    }

    /// Draws a key; `None` if this draw met none: see the module's documentation.
    pub fn draw(&self, random: Random<'_>) -> Result<Option<Drawn>> {
        if self.slots == 0 {
            return Ok(None);
        }
        let slot = random(self.slots);
        let at = self.places.partition_point(|place| place.end <= slot);
        let Some(place) = self.places.get(at) else { return Ok(None) };
        let (key, tag, value) = match &place.home {
            Home::Memtable(memtable) => {
                let Some(found) = memtable.draw(self.lower(), self.upper(), random) else {
                    return Ok(None);
                };
                (found.key().to_vec(), found.tag(), memtable.value_bytes(&found))
            }
            Home::Table(file, blocks) => {
                let slot = slot - (place.end - place.slots);
                let drawn = self.draw_from(file, blocks.as_ref(), (slot, place.slots), random)?;
                let Some(entry) = drawn else { return Ok(None) };
                entry
            }
        };
        Ok(self.is_shown(&key, tag)?.then_some((key, value)))
    }

    fn is_shown(&self, key: &[u8], tag: Tag) -> Result<bool> {
        let within = key >= self.lower() && self.upper().is_none_or(|upper| key < upper);
        if !within || tag.is_delete() || tag.sequence() > self.sequence {
            return Ok(false);
        }
        Ok(self.view.newest(self.tree, key, self.sequence, !self.options.no_fill)? == Some(tag))
    }

    /// Steps 1 and 2 for one of the slots of a table.
    fn draw_from(
        &self,
        file: &TableFile,
        blocks: Option<&Range<usize>>,
        (slot, slots): (u64, u64),
        random: Random<'_>,
    ) -> Result<Option<Entry>> {
        let table = file.table()?;
        let all = 0..usize::try_from(table.properties().blocks).unwrap_or(usize::MAX);
        let blocks = blocks.unwrap_or(&all);
        let (count, slots) = (blocks.len().max(1) as u64, slots.max(1));
        // Block `b` has the slots from `b * slots / count` on.
        let scaled = u128::from(slot) * u128::from(count);
        let block = usize::try_from(scaled / u128::from(slots)).unwrap_or(0);
        let rest = scaled % u128::from(slots) / u128::from(count);
        let number = blocks.start.saturating_add(block);
        table.entry_at(number, !self.options.no_fill, |entries| {
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
