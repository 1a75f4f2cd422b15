//! Counting and selection by position: how many keys of a range are set, and which is the nth.
//!
//! Both answer for *counted* keys: keys of which every write told whether the key was set
//! ([`Batch::put_absent`], [`Batch::delete_present`]), from the first write on. A caller asks only
//! for ranges whose keys are all counted ([`Engine::counted_from`]).
//!
//! Each entry of a counted key has a weight: by how much it changes the number of keys. A reader
//! sees as many keys of a range as the weights of all entries there add up to that it sees, in
//! whatever memtables and tables they are. Each of these has sums over stretches of its entries, so
//! a count looks at two ends per source, and reads a block at each.
//!
//! Selection narrows the range by estimates, which need indexes alone, counts exactly up to the
//! place found, and walks the few keys that are left.
//!
//! [`Batch::put_absent`]: crate::engine::Batch::put_absent
//! [`Batch::delete_present`]: crate::engine::Batch::delete_present
//! [`Engine::counted_from`]: crate::engine::Engine::counted_from

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::entry::Sequence;
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::memtable::Memtable;
use crate::engine::reader::Reader;
use crate::engine::sstable::CacheFill;
use crate::engine::version::{LEVELS, Levels, TableFile};
use crate::error::{Error, ErrorKind, Result};

/// Number of keys that selection walks rather than count again. Small in tests, so that small
/// stores need all of it.
const SHORT_WALK: u64 = if cfg!(test) { 2 } else { 256 };
/// Number of estimates that selection corrects before it halves what is left instead.
const CORRECTIONS: u32 = 4;

impl Reader {
    /// The number of keys of `tree` from `lower` on and before `upper` that are set. An empty
    /// `upper` is no bound. All keys of the range must be counted; otherwise the result has no
    /// meaning.
    pub fn count(&self, tree: TreeId, lower: &[u8], upper: &[u8]) -> Result<u64> {
        self.ranked(tree, lower, upper)?.count(upper_bound(upper))
    }

    /// Of the keys of `tree` from `lower` on and before `upper` that are set, the one that follows
    /// `nth` others; `None` if there are no more than `nth`. An empty `upper` is no bound. All keys
    /// of the range must be counted; otherwise the result has no meaning.
    pub fn select(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: &[u8],
        nth: u64,
    ) -> Result<Option<Bytes>> {
        let ranked = self.ranked(tree, lower, upper)?;
        let upper = upper_bound(upper);
        let total = ranked.count(upper)?;
        if nth >= total {
            return Ok(None);
        }
        let (key, before) = ranked.place_near(nth, upper, total)?;
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            cache_fill: CacheFill::Fill,
        };
        walk(self.iter(tree, options)?, &key, before, nth)
    }

    /// The sources of `tree` that may hold keys of a range.
    fn ranked<'a>(&'a self, tree: TreeId, lower: &'a [u8], upper: &[u8]) -> Result<Ranked<'a>> {
        let upper = upper_bound(upper);
        let levels = self.view.levels(tree)?;
        let mut sources: Vec<Source<'a>> =
            self.view.memtables(tree).map(|memtable| Source::Memtable(memtable)).collect();
        let within = |file: &&Arc<TableFile>| file.meta().bounds.reach_into(Some(lower), upper);
        sources.extend(levels.level(0).iter().filter(within).map(|file| Source::Table(file)));
        let sorted = (1..LEVELS).filter(|level| !levels.level(*level).is_empty());
        sources.extend(sorted.map(|level| Source::Level(levels, level)));
        Ok(Ranked { sources, lower, sequence: self.sequence() })
    }
}

fn upper_bound(upper: &[u8]) -> Option<&[u8]> {
    (!upper.is_empty()).then_some(upper)
}

/// Moves from `key`, which `before` keys precede, to the one that `nth` precede.
fn walk(mut iter: Iter, key: &[u8], before: u64, nth: u64) -> Result<Option<Bytes>> {
    if before <= nth {
        iter.seek(key)?;
        for _ in before..nth {
            iter.next()?;
        }
    } else {
        iter.seek_before(key)?;
        for _ in nth + 1..before {
            iter.prev()?;
        }
    }
    match iter.valid() {
        true => Ok(Some(Bytes::copy_from_slice(iter.key()))),
        false => Err(miscounted("there are fewer keys than were counted")),
    }
}

fn miscounted(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("keys of a counted range were miscounted: {what}"))
}

/// A part of a tree with sums of its own.
#[derive(Clone, Copy)]
enum Source<'a> {
    Memtable(&'a Memtable),
    Table(&'a TableFile),
    Level(&'a Levels, usize),
}

impl Source<'_> {
    /// The sum of the weights of the entries of `[lower, upper)` that are visible at `sequence`.
    fn weight(&self, lower: &[u8], upper: Option<&[u8]>, sequence: Sequence) -> Result<i64> {
        let fill = CacheFill::Fill;
        match self {
            Self::Memtable(memtable) => Ok(memtable.weight_between(lower, upper, sequence)),
            Self::Table(file) => file.weight_between(lower, upper, sequence, fill),
            Self::Level(levels, at) => levels.weight_between(*at, lower, upper, sequence, fill),
        }
    }

    /// An estimate of that sum, without reading blocks.
    fn estimate(&self, lower: &[u8], upper: &[u8]) -> Result<i64> {
        match self {
            Self::Memtable(memtable) => Ok(memtable.estimate_between(lower, upper)),
            Self::Table(file) => file.table()?.estimate_between(lower, upper),
            Self::Level(levels, level) => levels.estimate_between(*level, lower, upper),
        }
    }

    /// A key strictly between `lower` and `upper` in the middle of the range, and how many keys
    /// there were to choose from.
    fn split(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<Option<(usize, Vec<u8>)>> {
        match self {
            Self::Memtable(memtable) => Ok(memtable.split_between(lower, upper)),
            Self::Table(file) => file.table()?.split_between(lower, upper),
            Self::Level(levels, level) => levels.split_between(*level, lower, upper),
        }
    }
}

/// The sources of a tree, for positions from `lower` on.
struct Ranked<'a> {
    sources: Vec<Source<'a>>,
    lower: &'a [u8],
    sequence: Sequence,
}

/// A stretch of keys, and how many keys precede its two ends.
struct Stretch {
    from: Vec<u8>,
    before: u64,
    /// `None` for the end of the range.
    to: Option<Vec<u8>>,
    before_end: u64,
}

impl Ranked<'_> {
    /// The number of keys before `upper`.
    fn count(&self, upper: Option<&[u8]>) -> Result<u64> {
        if upper.is_some_and(|upper| upper <= self.lower) {
            return Ok(0);
        }
        let mut sum = 0i64;
        for source in &self.sources {
            sum = sum.saturating_add(source.weight(self.lower, upper, self.sequence)?);
        }
        u64::try_from(sum).map_err(|_| miscounted("their number is negative"))
    }

    /// A key near the one that `nth` precede, and how many keys precede it. In all, `total` keys
    /// are before `upper`, more than `nth`.
    fn place_near(&self, nth: u64, upper: Option<&[u8]>, total: u64) -> Result<(Vec<u8>, u64)> {
        let mut stretch = Stretch {
            from: self.lower.to_vec(),
            before: 0,
            to: upper.map(<[u8]>::to_vec),
            before_end: total,
        };
        let mut aim = i64::try_from(nth).unwrap_or(i64::MAX);
        let mut corrections = 0;
        while nth - stretch.before > SHORT_WALK {
            if let Some(to) = &stretch.to
                && stretch.before_end - nth <= SHORT_WALK
            {
                return Ok((to.clone(), stretch.before_end));
            }
            let guess = if corrections < CORRECTIONS { self.guess(&stretch, aim)? } else { None };
            let middle = || self.middle(&stretch.from, stretch.to.as_deref());
            let key = match guess {
                Some(key) => key,
                None => match middle()? {
                    Some(key) => key,
                    None => break,
                },
            };
            let before = self.count(Some(&key))?;
            if before.abs_diff(nth) <= SHORT_WALK {
                return Ok((key, before));
            }
            let estimate = self.estimate(&key)?;
            let error = estimate.saturating_sub(i64::try_from(before).unwrap_or(i64::MAX));
            aim = i64::try_from(nth).unwrap_or(i64::MAX).saturating_add(error);
            corrections += 1;
            if before <= nth {
                (stretch.from, stretch.before) = (key, before);
            } else {
                (stretch.to, stretch.before_end) = (Some(key), before);
            }
        }
        Ok((stretch.from, stretch.before))
    }

    fn estimate(&self, key: &[u8]) -> Result<i64> {
        let mut sum = 0i64;
        for source in &self.sources {
            sum = sum.saturating_add(source.estimate(self.lower, key)?);
        }
        Ok(sum)
    }

    /// A key within the stretch that about `aim` keys precede, by estimates; `None` if they all are
    /// at its ends.
    fn guess(&self, stretch: &Stretch, aim: i64) -> Result<Option<Vec<u8>>> {
        let (mut from, mut to) = (None, stretch.to.clone());
        loop {
            let start = from.as_ref().unwrap_or(&stretch.from);
            let Some(middle) = self.middle(start, to.as_deref())? else { break };
            if self.estimate(&middle)? <= aim {
                from = Some(middle);
            } else {
                to = Some(middle);
            }
        }
        Ok(from)
    }

    /// A key strictly between two others in the middle of the source that has most to choose from.
    fn middle(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let mut widest: Option<(usize, Vec<u8>)> = None;
        for source in &self.sources {
            if let Some(split) = source.split(from, to)?
                && widest.as_ref().is_none_or(|widest| widest.0 < split.0)
            {
                widest = Some(split);
            }
        }
        Ok(widest.map(|(_, key)| key))
    }
}

#[cfg(test)]
mod tests;
