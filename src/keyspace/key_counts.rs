//! The number of keys of each database, as last counted by DBSIZE.
//!
//! A count is valid for a reader if no key came, went or changed its expiry between the sequence of
//! the count and that of the reader, in whichever order the two run, and if the same keys have
//! expired for both. A commit that only replaces records by ones with the same expiry does none of
//! that: it does not count as a change (`Overlay`).

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::encoding::keys::Space;
use crate::engine::Sequence;

/// The largest number of spaces remembered, emptied and swapped ones included.
const MOST: usize = 256;

/// The sequence and the time of a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedAt {
    pub(crate) sequence: Sequence,
    pub(crate) now: u64,
}

/// The number of keys that exist, and when the first of them expires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyCount {
    pub(crate) keys: i64,
    pub(crate) soonest: u64,
}

/// The last count of each space.
#[derive(Debug, Default)]
pub(crate) struct KeyCounts(Mutex<HashMap<Space, (CountedAt, KeyCount)>>);

impl KeyCounts {
    /// The count of a space, if it is valid for a reader. `last_change` is the newest commit that
    /// may have changed the set of keys, asked for after the reader was taken.
    pub(crate) fn recall(
        &self,
        space: Space,
        reader: CountedAt,
        last_change: Sequence,
    ) -> Option<i64> {
        let (at, counted) = *self.0.lock().get(&space)?;
        let unchanged = last_change <= at.sequence && at.sequence <= reader.sequence;
        // A clock that went back may revive what had expired at the count.
        let same_time = at.now <= reader.now && reader.now < counted.soonest;
        (unchanged && same_time).then_some(counted.keys)
    }

    /// Remembers a count made at `at`, unless keys may have changed after it.
    pub(crate) fn remember(
        &self,
        space: Space,
        at: CountedAt,
        last_change: Sequence,
        counted: KeyCount,
    ) {
        if last_change > at.sequence {
            return;
        }
        let mut sizes = self.0.lock();
        if sizes.len() >= MOST && !sizes.contains_key(&space) {
            sizes.clear();
        }
        sizes.insert(space, (at, counted));
    }
}

#[cfg(test)]
mod tests;
