//! The executor's inner loop: entries of the inputs in order, minus what nobody can see.

use super::filter::{Decision, Filter};
use super::survival::Survival;
use super::write::Outputs;
use crate::engine::entry::{Kind, Tag};
use crate::engine::iter::cursor::Cursor;
use crate::error::Result;

/// What a merge did, for the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries read.
    pub read: u64,
    /// Entries dropped because a newer version hides them.
    pub shadowed: u64,
    /// Entries the filter dropped or turned into tombstones.
    pub filtered: u64,
    /// Tombstones that reached the bottom.
    pub elided: u64,
}

/// A question about a key.
type KeyTest<'a> = Box<dyn FnMut(&[u8]) -> bool + 'a>;

/// The rules of one merge.
pub struct Merge<'a> {
    /// Which versions are visible to someone.
    pub survival: Survival,
    /// Takes part, if the tree has one.
    pub filter: Option<Box<dyn Filter>>,
    /// Whether no older version of a key can exist outside the inputs, so a delete of it may go.
    pub is_bottom: KeyTest<'a>,
    /// Called after about each mebibyte with the bytes written since: may sleep, yield to more
    /// urgent work, or stop the merge with an error.
    pub pause: Box<dyn FnMut(u64) -> Result<()> + 'a>,
    /// Whether a table that ends before this key saves later merges work.
    pub cut_before: KeyTest<'a>,
}

const PAUSE_BYTES: u64 = 1 << 20;

impl Merge<'_> {
    /// Reads `inputs` to the end.
    pub fn run(mut self, inputs: &mut impl Cursor, outputs: &mut Outputs<'_>) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut last_key = Vec::new();
        let mut unpaused = 0;
        inputs.seek_to_first()?;
        while inputs.valid() {
            let (key, tag, value) = (inputs.key(), inputs.tag(), inputs.value());
            tally.read += 1;
            if let Some(tag) = self.judge(key, tag, value, &mut tally)? {
                if outputs.is_open() && key != last_key && self.ends_table(key, outputs) {
                    outputs.finish_table()?;
                }
                last_key.clear();
                last_key.extend_from_slice(key);
                outputs.add(key, tag, if tag.is_delete() { &[] } else { value })?;
            }
            unpaused += (key.len() + value.len()) as u64;
            if unpaused >= PAUSE_BYTES {
                (self.pause)(unpaused)?;
                unpaused = 0;
            }
            inputs.next()?;
        }
        Ok(tally)
    }

    fn ends_table(&mut self, key: &[u8], outputs: &Outputs<'_>) -> bool {
        // Asked at every new key, since it keeps count of what the keys pass.
        let cut = (self.cut_before)(key);
        cut || outputs.is_full()
    }

    /// The tag under which the entry goes on, or `None` when it goes.
    #[inline]
    fn judge(
        &mut self,
        key: &[u8],
        tag: Tag,
        value: &[u8],
        tally: &mut Tally,
    ) -> Result<Option<Tag>> {
        if !self.survival.survives(key, tag) {
            tally.shadowed += 1;
            return Ok(None);
        }
        let mut tag = tag;
        if let Some(filter) = &mut self.filter {
            match filter.decide(key, tag, value)? {
                Decision::Keep => {}
                Decision::Drop => {
                    tally.filtered += 1;
                    return Ok(None);
                }
                Decision::Tombstone => {
                    tally.filtered += u64::from(!tag.is_delete());
                    tag = Tag::new(tag.sequence(), Kind::Delete);
                }
            }
        }
        if tag.is_delete() && self.survival.seen_by_all(tag) && (self.is_bottom)(key) {
            tally.elided += 1;
            return Ok(None);
        }
        Ok(Some(tag))
    }
}
