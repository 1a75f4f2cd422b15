//! Walks of an iterator beside the same walk over a sorted map.

use std::ops::Bound;

use bytes::Bytes;
use lsmkv::engine::{CacheFill, Iter, IterOptions};

use super::{Blob, Rows};

/// One movement of an iterator.
#[derive(Clone, Debug)]
pub enum Step {
    First,
    Last,
    Seek(Blob),
    SeekBefore(Blob),
    Next,
    Prev,
}

/// Bounds of an iterator: smallest key shown, first key no longer shown.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    pub lower: Option<Blob>,
    pub upper: Option<Blob>,
}

impl Bounds {
    pub fn options(&self, cache_fill: CacheFill) -> IterOptions {
        let bytes = |bound: &Option<Blob>| bound.as_ref().map(|b| Bytes::from(b.0.clone()));
        IterOptions { lower: bytes(&self.lower), upper: bytes(&self.upper), cache_fill }
    }

    fn hold(&self, key: &[u8]) -> bool {
        self.lower.as_ref().is_none_or(|lower| key >= &lower.0[..])
            && self.upper.as_ref().is_none_or(|upper| key < &upper.0[..])
    }
}

/// An iterator and what it should show.
#[derive(Debug)]
pub struct Walk {
    pub iter: Iter,
    rows: Rows,
    at: Option<Vec<u8>>,
}

impl Walk {
    /// An iterator just opened over `rows`.
    pub fn new(iter: Iter, rows: &Rows, bounds: &Bounds) -> Self {
        let shown = rows.iter().filter(|(key, _)| bounds.hold(key));
        Self { iter, rows: shown.map(|(k, v)| (k.clone(), v.clone())).collect(), at: None }
    }

    pub fn take(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
            let shown = self.iter.valid().then(|| self.iter.key().to_vec());
            let blob = |key: &Option<Vec<u8>>| key.clone().map(Blob);
            assert!(
                shown == self.at,
                "{step:?} of {steps:?} went to {:?} instead of {:?}",
                blob(&shown),
                blob(&self.at)
            );
            let value = self.at.as_ref().and_then(|key| self.rows.get(key));
            let value = value.map_or(&[][..], Vec::as_slice);
            assert!(self.iter.value() == value, "{step:?} of {steps:?} shows a wrong value");
            assert!(self.iter.value_bytes() == value, "{step:?}: pinned and plain value differ");
        }
    }

    fn step(&mut self, step: &Step) {
        self.at = self.model_step(step);
        let moved = match step {
            Step::First => self.iter.seek_to_first(),
            Step::Last => self.iter.seek_to_last(),
            Step::Seek(key) => self.iter.seek(&key.0),
            Step::SeekBefore(key) => self.iter.seek_before(&key.0),
            Step::Next => self.iter.next(),
            Step::Prev => self.iter.prev(),
        };
        moved.expect("an iterator moves");
    }

    /// Past an end an iterator shows nothing until the next seek.
    fn model_step(&self, step: &Step) -> Option<Vec<u8>> {
        let from = |bound| self.rows.range::<[u8], _>((bound, Bound::Unbounded)).next();
        let before = |key: &[u8]| {
            self.rows.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back()
        };
        let row = match step {
            Step::First => self.rows.first_key_value(),
            Step::Last => self.rows.last_key_value(),
            Step::Seek(key) => from(Bound::Included(&key.0[..])),
            Step::SeekBefore(key) => before(&key.0),
            Step::Next => from(Bound::Excluded(self.at.as_deref()?)),
            Step::Prev => before(self.at.as_deref()?),
        };
        row.map(|(key, _)| key.clone())
    }
}
