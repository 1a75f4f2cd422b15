//! How many keys databases have, as they were last counted.
//!
//! A count holds for a reader if no key came, went or got another expiry between the moment it was
//! made at and the reader's, in whatever order the two run, and if just the same keys have expired
//! for both. A commit that only writes records in place of such with the same expiry does none of
//! that, whoever looks and at whatever time: it does not count as a change (`Overlay`).

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::encoding::keys::Space;
use crate::engine::Sequence;

/// Spaces remembered; emptied and swapped ones among them.
const MOST: usize = 256;

/// What a reader looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) sequence: Sequence,
    pub(crate) now: u64,
}

/// Keys that exist, and when the first of them expires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) keys: i64,
    pub(crate) soonest: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Sizes(Mutex<HashMap<Space, (Moment, Counted)>>);

impl Sizes {
    /// The count, if it holds for a reader. `last_change` is the newest commit that may have changed
    /// which keys there are, asked for after the reader began.
    pub(crate) fn recall(
        &self,
        space: Space,
        reader: Moment,
        last_change: Sequence,
    ) -> Option<i64> {
        let (at, counted) = *self.0.lock().get(&space)?;
        let unchanged = last_change <= at.sequence && at.sequence <= reader.sequence;
        // A clock that went back may bring back what had expired when it was counted.
        let same_time = at.now <= reader.now && reader.now < counted.soonest;
        (unchanged && same_time).then_some(counted.keys)
    }

    /// Keeps a count of the moment `at`, unless keys may have changed after it.
    pub(crate) fn remember(
        &self,
        space: Space,
        at: Moment,
        last_change: Sequence,
        counted: Counted,
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
