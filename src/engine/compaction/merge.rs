//! The inner loop of a compaction or flush: writes the entries of the inputs in order, without
//! those that no reader can see.
//!
//! Invariant: for every reader, the weights of the entries it sees of a key add up to the same before
//! and after. An entry that a newer one shadows adds its weight to that one. A tombstone is dropped
//! only if it weighs nothing together with what it shadows. A filter drops what nobody counts.

use super::filter::{Decision, Filter};
use super::output::TableOutputs;
use super::visibility::Visibility;
use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, Tag};
use crate::error::Result;

/// Counts of one merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeStats {
    /// Entries read.
    pub read: u64,
    /// Entries dropped because a newer version shadows them.
    pub shadowed: u64,
    /// Entries that the filter dropped or turned into tombstones.
    pub filtered: u64,
    /// Tombstones dropped because nothing older is below them.
    pub elided: u64,
}

/// A predicate of a key.
type KeyTest<'a> = Box<dyn FnMut(&[u8]) -> bool + 'a>;

/// The rules of one merge.
pub struct Merge<'a> {
    /// Tells which versions some reader can see.
    pub visibility: Visibility,
    /// The compaction filter, if there is one.
    pub filter: Option<Box<dyn Filter>>,
    /// Whether no older version of a key can exist outside the inputs, so that its tombstone may be
    /// dropped.
    pub is_bottom: KeyTest<'a>,
    /// Called after each mebibyte or so with the bytes read since the last call. It may sleep,
    /// yield to more urgent work, or stop the merge with an error.
    pub pause: Box<dyn FnMut(u64) -> Result<()> + 'a>,
    /// Whether finishing a table before this key saves later merges work.
    pub cut_before: KeyTest<'a>,
    /// Whether to stop where the first table is full.
    pub one_table: bool,
}

/// What became of an entry that some reader can see. What it shadows adds its weight to it.
enum Fate {
    Written,
    /// It is a tombstone that may be dropped.
    Held,
    Dropped,
}

/// A tombstone that is dropped if it weighs nothing in the end.
struct HeldTombstone {
    key: Vec<u8>,
    tag: Tag,
    weight: i64,
}

/// How a merge ended.
#[derive(Clone, Debug, Default)]
pub struct MergeEnd {
    /// What was done.
    pub stats: MergeStats,
    /// The key before which the merge stopped; `None` if it reached the end. Nothing of this key, or
    /// of keys with the same bound, was written.
    pub stopped_before: Option<Vec<u8>>,
}

const PAUSE_BYTES: u64 = 1 << 20;
/// Bytes read after which a merge of one table stops, full or not, so that its inputs are given
/// back.
const PIECE_BYTES: u64 = 64 << 20;

impl Merge<'_> {
    /// Merges `inputs` to their end, or until a table is full.
    pub fn run(
        mut self,
        inputs: &mut impl Cursor,
        outputs: &mut TableOutputs<'_>,
    ) -> Result<MergeEnd> {
        let mut stats = MergeStats::default();
        let (mut unpaused, mut read) = (0, 0);
        let (mut fate, mut held) = (Fate::Dropped, None);
        inputs.seek_to_first()?;
        while inputs.valid() {
            let (key, tag, value) = (inputs.key(), inputs.tag(), inputs.value());
            stats.read += 1;
            if !self.visibility.is_visible(key, tag) {
                stats.shadowed += 1;
                match (&fate, &mut held) {
                    (Fate::Written, _) => outputs.weigh_last(tag.weight()),
                    (Fate::Held, Some(HeldTombstone { weight, .. })) => *weight += tag.weight(),
                    _ => {}
                }
            } else {
                release(held.take(), outputs, &mut stats)?;
                let surviving = self.surviving_tag(key, tag, value, &mut stats)?;
                fate = match surviving {
                    Some(tag) if self.may_go(key, tag) => {
                        let weight = tag.weight();
                        held = Some(HeldTombstone { key: key.to_vec(), tag, weight });
                        Fate::Held
                    }
                    Some(_) => Fate::Written,
                    None => Fate::Dropped,
                };
                if let (Fate::Written, Some(tag)) = (&fate, surviving) {
                    let long = self.one_table && read >= PIECE_BYTES;
                    if outputs.can_end_before(key) && (self.ends_table(key, outputs) || long) {
                        if self.one_table {
                            return Ok(MergeEnd { stats, stopped_before: Some(key.to_vec()) });
                        }
                        outputs.finish_table()?;
                    }
                    outputs.add(key, tag, if tag.is_delete() { &[] } else { value })?;
                }
            }
            let bytes = (key.len() + value.len()) as u64;
            (unpaused, read) = (unpaused + bytes, read + bytes);
            if unpaused >= PAUSE_BYTES {
                (self.pause)(unpaused)?;
                unpaused = 0;
            }
            inputs.next()?;
        }
        release(held, outputs, &mut stats)?;
        Ok(MergeEnd { stats, stopped_before: None })
    }

    /// Whether an entry is a tombstone that hides nothing.
    #[inline]
    fn may_go(&mut self, key: &[u8], tag: Tag) -> bool {
        tag.is_delete() && self.visibility.is_visible_to_all(tag) && (self.is_bottom)(key)
    }

    fn ends_table(&mut self, key: &[u8], outputs: &TableOutputs<'_>) -> bool {
        // Called wherever a table may end, since it keeps track of the keys it has passed.
        let cut = (self.cut_before)(key);
        cut || outputs.is_full()
    }

    /// The tag with which an entry that some reader can see survives the filter.
    #[inline]
    fn surviving_tag(
        &mut self,
        key: &[u8],
        tag: Tag,
        value: &[u8],
        stats: &mut MergeStats,
    ) -> Result<Option<Tag>> {
        let mut tag = tag;
        if let Some(filter) = &mut self.filter {
            match filter.decide(key, tag, value)? {
                Decision::Keep => {}
                Decision::Drop => {
                    stats.filtered += 1;
                    return Ok(None);
                }
                Decision::Tombstone => {
                    stats.filtered += u64::from(!tag.is_delete());
                    tag = Tag::new(tag.sequence(), EntryKind::Delete);
                }
            }
        }
        Ok(Some(tag))
    }
}

/// Drops a tombstone that weighs nothing together with what it shadows. One that does weigh belongs
/// to a collection of which a filter has dropped a part; it goes with the rest.
fn release(
    held: Option<HeldTombstone>,
    outputs: &mut TableOutputs<'_>,
    stats: &mut MergeStats,
) -> Result<()> {
    let Some(HeldTombstone { key, tag, weight }) = held else { return Ok(()) };
    if weight == 0 {
        stats.elided += 1;
        return Ok(());
    }
    outputs.add(&key, tag.with_weight(weight), &[])
}

#[cfg(test)]
mod tests;
