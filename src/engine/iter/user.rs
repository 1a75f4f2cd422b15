//! What a user iterates over: live keys at one sequence number, within bounds, both ways.
//!
//! Going forward the merge stands on the entry that is shown. Going backward, versions of a key
//! come oldest first, so the newest visible one is remembered while the merge walks on to the
//! entries before that key: the merge then stands *before* the shown key.

use std::sync::Arc;

use bytes::Bytes;

use super::cursor::Cursor;
use super::merge::MergeCursor;
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};
use crate::engine::source::Source;
use crate::engine::view::View;
use crate::error::{Error, Result};

/// Entries of one key that are stepped over one by one before they are passed by a seek: a key
/// that is written over and over, a counter say, has as many as the memtable holds.
const STEPS_BEFORE_SEEK: u32 = 8;

/// Bounds and cache behaviour of an iterator.
#[derive(Clone, Debug, Default)]
pub struct IterOptions {
    /// Smallest key shown.
    pub lower: Option<Bytes>,
    /// First key no longer shown.
    pub upper: Option<Bytes>,
    /// Leave the block cache as it is: for scans that will not come again.
    pub no_fill: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing: before a seek, past an end, or failed.
    Nothing,
    /// The entry the merge stands on.
    Forward,
    /// The remembered entry; the merge stands before it.
    Backward,
}

/// An iterator over the live keys of one tree, as of one moment.
///
/// Movements return an error when the data cannot be read; the iterator then shows nothing and
/// keeps failing until the next seek. It is never an early end.
#[derive(Debug)]
pub struct Iter {
    merge: MergeCursor<Source>,
    sequence: Sequence,
    options: IterOptions,
    shown: Shown,
    /// The key shown going backward, or the key being skipped going forward.
    key: Vec<u8>,
    value: Bytes,
    failed: Option<Error>,
    /// Keeps files and memtables alive.
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
            shown: Shown::Nothing,
            key: Vec::new(),
            value: Bytes::new(),
            failed: None,
            _view: view,
        }
    }

    /// Whether the iterator stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.shown != Shown::Nothing
    }

    /// The key; empty when not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Forward => self.merge.key(),
            Shown::Backward => &self.key,
        }
    }

    /// The value; empty when not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Forward => self.merge.value(),
            Shown::Backward => &self.value,
        }
    }

    /// The value as bytes that outlive the iterator.
    pub fn value_bytes(&self) -> Bytes {
        match self.shown {
            Shown::Nothing => Bytes::new(),
            Shown::Forward => self.merge.value_bytes(),
            Shown::Backward => self.value.clone(),
        }
    }

    /// Sequence number of the shown entry's commit. Only known going forward; 0 otherwise.
    pub fn sequence(&self) -> Sequence {
        if self.shown == Shown::Forward { self.merge.tag().sequence() } else { 0 }
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) -> Result<()> {
        match self.options.lower.clone() {
            Some(lower) => self.seek(&lower),
            None => self.movement(|it| {
                it.merge.seek_to_first()?;
                it.settle_forward(false)
            }),
        }
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) -> Result<()> {
        match self.options.upper.clone() {
            Some(upper) => self.seek_before(&upper),
            None => self.movement(|it| {
                it.merge.seek_to_last()?;
                it.settle_backward()
            }),
        }
    }

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        let lower = self.options.lower.clone();
        let from = lower.as_deref().map_or(key, |lower| key.max(lower));
        self.movement(|it| {
            it.merge.seek(from, Tag::newest_at(it.sequence))?;
            it.settle_forward(false)
        })
    }

    /// Moves to the last key before `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let upper = self.options.upper.clone();
        let to = upper.as_deref().map_or(key, |upper| key.min(upper));
        self.movement(|it| {
            it.merge.seek_before(to, Tag::newest_at(MAX_SEQUENCE))?;
            it.settle_backward()
        })
    }

    /// Moves to the next key.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a cursor moves and may fail: no Iterator")]
    pub fn next(&mut self) -> Result<()> {
        match self.shown {
            Shown::Nothing => self.check(),
            Shown::Forward => {
                self.remember_key();
                self.step(|it| {
                    it.merge.next()?;
                    it.settle_forward(true)
                })
            }
            Shown::Backward => {
                // The merge stands before the shown key, or nowhere if that is the first of all.
                let key = std::mem::take(&mut self.key);

                self.movement(|it| {
                    it.merge.seek(&key, Tag::newest_at(MAX_SEQUENCE))?;
                    it.key = key;
                    it.settle_forward(true)
                })
            }
        }
    }

    /// Moves to the previous key.
    pub fn prev(&mut self) -> Result<()> {
        match self.shown {
            Shown::Nothing => self.check(),
            Shown::Forward => {
                self.remember_key();
                self.step(|it| {
                    // Leave all versions of this key behind; a first key leaves the merge invalid.
                    while it.merge.valid() && it.merge.key() == it.key {
                        it.merge.prev()?;
                    }
                    it.settle_backward()
                })
            }
            Shown::Backward => self.step(Self::settle_backward),
        }
    }

    fn remember_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(self.merge.key());
    }

    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// A seek: forgets an earlier failure.
    fn movement(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.failed = None;
        self.step(run)
    }

    #[inline]
    fn step(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.shown = Shown::Nothing;
        let result = run(self);
        if let Err(error) = &result {
            self.shown = Shown::Nothing;
            self.failed = Some(error.clone());
        }
        result
    }

    /// From the merge's place on, finds the first live key; `skipping` passes over `self.key`.
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
                    self.shown = Shown::Forward;
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

    /// Going forward: by a seek to what comes after all entries of the key being skipped; or, if
    /// the merge stands on entries that are too new, to the newest that is not.
    #[cold]
    fn pass_versions(&mut self, skipping: bool) -> Result<()> {
        let key = self.merge.key().to_vec();
        let past = if skipping && key == self.key { 0 } else { self.sequence };
        self.merge.seek(&key, Tag::newest_at(past))
    }

    /// From the merge's place backward, finds the last live key and remembers it.
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
                self.shown = Shown::Backward;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Going backward: by a seek, the value of the newest visible entry of the key being walked,
    /// and the merge before that key. `live` is what the entries walked so far say.
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
