//! An iterator over the live keys of a tree at one sequence number, within bounds, in both
//! directions.
//!
//! Going forward, the merge is at the current entry. Going backward, it meets the oldest version of
//! a key first. So the iterator remembers the newest visible version while the merge moves on to
//! the entries before that key: the merge is then *before* the current key.

use std::sync::Arc;

use bytes::Bytes;

use super::source::Source;
use crate::engine::cursor::{Cursor, MergeCursor};
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};
use crate::engine::sstable::CacheFill;
use crate::engine::view::View;
use crate::error::{Error, Result};

/// Number of entries of one key to step over one by one before seeking past them. A key that is
/// written very often, such as a counter, may fill a whole memtable.
const STEPS_BEFORE_SEEK: u32 = 8;

/// Number of steps by comparison after which an iterator looks how far the current table leads on
/// its own. Where other sources interleave, a look finds little, so looks become rare there.
const STEPS_BEFORE_LOOK: u32 = 2;
/// The limit to which that number doubles.
const MOST_STEPS_BEFORE_LOOK: u32 = 64;

/// Bounds and cache behaviour of an iterator.
#[derive(Clone, Debug, Default)]
pub struct IterOptions {
    /// Inclusive lower bound of the keys.
    pub lower: Option<Bytes>,
    /// Exclusive upper bound of the keys.
    pub upper: Option<Bytes>,
    /// Whether blocks that are read are put into the block cache.
    pub cache_fill: CacheFill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IterPosition {
    /// Not valid: before the first seek, past an end, or after a failure.
    Invalid,
    /// The current entry is that of the merge.
    Forward,
    /// The current entry is the remembered one; the merge is before it.
    Backward,
}

/// An iterator over the live keys of one tree at one read point.
///
/// A movement returns an error when data cannot be read. The iterator is then not valid, and keeps
/// returning the error until the next seek: an error never looks like an early end.
#[derive(Debug)]
pub struct Iter {
    merge: MergeCursor<Source>,
    sequence: Sequence,
    options: IterOptions,
    position: IterPosition,
    /// The current key going backward, or the key being skipped going forward.
    key: Vec<u8>,
    value: Bytes,
    failed: Option<Error>,
    /// Number of steps by comparison since the last look for uncontested entries.
    steps: u32,
    /// Number of such steps before the next look.
    steps_before_look: u32,
    /// Keeps the files and memtables alive.
    _view: Arc<View>,
}

impl Iter {
    pub(crate) fn new(
        view: Arc<View>,
        sources: Vec<Source>,
        sequence: Sequence,
        options: IterOptions,
    ) -> Self {
        Self {
            merge: MergeCursor::new(sources),
            sequence,
            options,
            position: IterPosition::Invalid,
            key: Vec::new(),
            value: Bytes::new(),
            failed: None,
            steps: 0,
            steps_before_look: STEPS_BEFORE_LOOK,
            _view: view,
        }
    }

    /// Whether the iterator is at a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.position != IterPosition::Invalid
    }

    /// The key; empty when not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.position {
            IterPosition::Invalid => &[],
            IterPosition::Forward => self.merge.key(),
            IterPosition::Backward => &self.key,
        }
    }

    /// The value; empty when not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.position {
            IterPosition::Invalid => &[],
            IterPosition::Forward => self.merge.value(),
            IterPosition::Backward => &self.value,
        }
    }

    /// The value as bytes that outlive the iterator.
    pub fn value_bytes(&self) -> Bytes {
        match self.position {
            IterPosition::Invalid => Bytes::new(),
            IterPosition::Forward => self.merge.value_bytes(),
            IterPosition::Backward => self.value.clone(),
        }
    }

    /// Sequence number of the current entry. It is known only going forward, and 0 otherwise.
    pub fn sequence(&self) -> Sequence {
        if self.position == IterPosition::Forward { self.merge.tag().sequence() } else { 0 }
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) -> Result<()> {
        match self.options.lower.clone() {
            Some(lower) => self.seek(&lower),
            None => self.seek_with(|it| {
                it.merge.seek_to_first()?;
                it.settle_forward(false)
            }),
        }
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) -> Result<()> {
        match self.options.upper.clone() {
            Some(upper) => self.seek_before(&upper),
            None => self.seek_with(|it| {
                it.merge.seek_to_last()?;
                it.settle_backward()
            }),
        }
    }

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        let lower = self.options.lower.clone();
        let from = lower.as_deref().map_or(key, |lower| key.max(lower));
        self.seek_with(|it| {
            it.merge.seek(from, Tag::newest_at(it.sequence))?;
            it.settle_forward(false)
        })
    }

    /// Moves to the last key before `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let upper = self.options.upper.clone();
        let to = upper.as_deref().map_or(key, |upper| key.min(upper));
        self.seek_with(|it| {
            it.merge.seek_before(to, Tag::newest_at(MAX_SEQUENCE))?;
            it.settle_backward()
        })
    }

    /// Moves to the next key.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a cursor moves and may fail: no Iterator")]
    pub fn next(&mut self) -> Result<()> {
        match self.position {
            IterPosition::Invalid => self.check(),
            IterPosition::Forward => {
                let table = self.merge.current_mut().and_then(Source::table_mut);
                if table.is_some_and(|table| table.next_uncontested(self.sequence)) {
                    return Ok(());
                }
                self.next_by_comparison()
            }
            IterPosition::Backward => {
                // The merge is before the current key, or not valid if there is no earlier key.
                let key = std::mem::take(&mut self.key);

                self.seek_with(|it| {
                    it.merge.seek(&key, Tag::newest_at(MAX_SEQUENCE))?;
                    it.key = key;
                    it.settle_forward(true)
                })
            }
        }
    }

    /// Moves to the previous key.
    pub fn prev(&mut self) -> Result<()> {
        match self.position {
            IterPosition::Invalid => self.check(),
            IterPosition::Forward => {
                self.remember_key();
                self.step(|it| {
                    // Pass all versions of this key. Before the first key the merge is not valid.
                    while it.merge.valid() && it.merge.key() == it.key {
                        it.merge.prev()?;
                    }
                    it.settle_backward()
                })
            }
            IterPosition::Backward => self.step(Self::settle_backward),
        }
    }

    /// Moves to the next key, comparing it with the current key, the bound and the other sources.
    #[inline]
    fn next_by_comparison(&mut self) -> Result<()> {
        self.remember_key();
        self.step(|it| {
            it.merge.next()?;
            it.settle_forward(true)
        })?;
        self.steps += 1;
        if self.steps >= self.steps_before_look {
            self.find_uncontested();
        }
        Ok(())
    }

    /// Looks how many of the next entries of the current table need no comparison, since they are
    /// before the upper bound and before every other source.
    fn find_uncontested(&mut self) {
        self.steps = 0;
        let Some((source, rival)) = self.merge.current_and_rival() else { return };
        let upper = self.options.upper.as_deref();
        let limit = match (upper, rival) {
            (Some(upper), Some(rival)) => Some(upper.min(rival)),
            (limit, None) | (None, limit) => limit,
        };
        let found = source.table_mut().map_or(0, |table| table.find_uncontested(limit));
        self.steps_before_look = match found > STEPS_BEFORE_LOOK {
            true => STEPS_BEFORE_LOOK,
            false => (self.steps_before_look * 2).min(MOST_STEPS_BEFORE_LOOK),
        };
    }

    fn remember_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(self.merge.key());
    }

    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Runs a seek, which clears an earlier failure.
    fn seek_with(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.failed = None;
        self.step(run)
    }

    #[inline]
    fn step(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.position = IterPosition::Invalid;
        let result = run(self);
        if let Err(error) = &result {
            self.position = IterPosition::Invalid;
            self.failed = Some(error.clone());
        }
        result
    }

    /// Finds the first live key from the position of the merge on; `skipping` passes over
    /// `self.key`.
    #[inline]
    fn settle_forward(&mut self, mut skipping: bool) -> Result<()> {
        let mut stepped_over = 0;
        while self.merge.valid() {
            let (key, tag) = (self.merge.key(), self.merge.tag());
            if tag.sequence() <= self.sequence && !(skipping && key == self.key) {
                if self.options.upper.as_deref().is_some_and(|upper| key >= upper) {
                    return Ok(());
                }
                if !tag.is_delete() {
                    self.position = IterPosition::Forward;
                    return Ok(());
                }
                self.remember_key();
                skipping = true;
                stepped_over = 0;
            }
            stepped_over += 1;
            if stepped_over > STEPS_BEFORE_SEEK {
                self.pass_versions(skipping)?;
                stepped_over = 0;
            } else {
                self.merge.next()?;
            }
        }
        Ok(())
    }

    /// Going forward: seeks past all entries of the key being skipped or, if the entries at the
    /// merge are too new, to the newest visible one.
    #[cold]
    fn pass_versions(&mut self, skipping: bool) -> Result<()> {
        let key = self.merge.key().to_vec();
        let past = if skipping && key == self.key { 0 } else { self.sequence };
        self.merge.seek(&key, Tag::newest_at(past))
    }

    /// Finds the last live key from the position of the merge backward, and remembers it.
    fn settle_backward(&mut self) -> Result<()> {
        while self.merge.valid() {
            if self.options.lower.as_deref().is_some_and(|lower| self.merge.key() < lower) {
                return Ok(());
            }
            self.remember_key();
            let mut live = None;
            let mut stepped_over = 0;
            while self.merge.valid() && self.merge.key() == self.key {
                let tag = self.merge.tag();
                if tag.sequence() <= self.sequence {
                    live = (!tag.is_delete()).then(|| self.merge.value_bytes());
                }
                self.merge.prev()?;
                stepped_over += 1;
                if stepped_over > STEPS_BEFORE_SEEK {
                    live = self.newest_version(live)?;
                }
            }
            if let Some(value) = live {
                self.value = value;
                self.position = IterPosition::Backward;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Going backward: seeks to the newest visible entry of the current key, returns its value, and
    /// leaves the merge before that key. `live` is the value according to the entries passed so
    /// far.
    #[cold]
    fn newest_version(&mut self, live: Option<Bytes>) -> Result<Option<Bytes>> {
        let key = std::mem::take(&mut self.key);
        let sought = self.merge.seek(&key, Tag::newest_at(self.sequence));
        let on_key = self.merge.valid() && self.merge.key() == key;
        let tag = self.merge.tag();
        let found = match on_key {
            true => (!tag.is_delete()).then(|| self.merge.value_bytes()),
            false => live,
        };
        let sought =
            sought.and_then(|()| self.merge.seek_before(&key, Tag::newest_at(MAX_SEQUENCE)));
        self.key = key;
        sought.map(|()| found)
    }
}
