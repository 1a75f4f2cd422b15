//! Numeric cursors of scans.
//!
//! In Rust and C the cursor of a scan is the bytes at which it continues. Redis clients expect a
//! number, below 2^53 for those that keep numbers as doubles. What Redis promises must hold:
//!
//! - an element that exists during the whole scan is returned at least once;
//! - a scan ends while the collection stays bounded, whatever else happens.
//!
//! A number holds the place at which its scan continues, not the name of a scan (`number.rs`):
//!
//! - up to six bytes; or
//! - what differs from a landmark, a byte string that this store knows by an id (`landmarks.rs`).
//!
//! **Invariant.** A page that walked the rows up to `last`, with `next` the row after it, ends with a
//! place in `last < place <= next`. So the next page misses no row and repeats none. A number that is
//! not understood starts again, which misses nothing either.
//!
//! **A page ends where a number can say so.** If no number fits between two rows, there are two ways:
//! a new landmark, or a page that is longer than asked for. While landmarks need less than 64 KiB, a
//! new one stands wherever it is needed. Beyond that, at least `spacing` rows must lie between it and
//! its neighbours, and the page grows until they do, or until a number fits. The spacing begins with
//! 64 and doubles every 2 MiB.
//!
//! **Why a scan ends.** Each call moves the place forward: past at least one row.
//!
//! - *10,000 other scanning clients* use the same landmarks, for a landmark belongs to no scan. They
//!   can make pages longer, not take a place away.
//! - *A million scans begun and abandoned* leave at most one landmark per `spacing` rows of the data.
//!   At the limit of 24 MiB the least recently used one goes. To get there takes more than 2 * 10^9
//!   rows; to lose the landmark of a scan, they must be walked between two of its calls. Above 1 MiB,
//!   landmarks that no scan has used for an hour are dropped, so keys that come and go leave none
//!   behind. A scan that pauses for longer may then start again.
//! - *Rows that come and go* do not matter to a place, which need not exist as a row. But rows that
//!   are always inserted ahead of a scan could keep it busy. So one page in 65,536 makes the following
//!   pages of its scan 8 times as large, and so on: `growth`. In the end a page is as large as the
//!   collection. The choice is by a hash of the place, so that a repeated call has the same answer.
//! - *After a clean close* the newest landmarks, 1 MiB of them, are known again. After another end
//!   those are unknown that were made since, and their scans start again. An id is a hash of the
//!   bytes, with the seed of the store. So no id stands for other bytes later, but for a collision of
//!   29 bits, and a landmark that is made again makes old numbers good again.
//!
//! **Memory.** 24 MiB, and 16 MiB for landmarks of more than 4 KiB. These are apart, since a few of
//! them would replace all others. Only scans of such keys can lose them, and one stands only after a
//! walk of 16 times its size.

mod landmarks;
mod number;

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;

use self::landmarks::Landmarks;
use self::number::{ID_MASK, MOST_GROWTH, Number, Place, common};
use crate::encoding::cursors::{decode, encode};
use crate::encoding::keys::{MetaKey, Space, meta_key};
use crate::engine::{Batch, Engine, HashSeed, Reader, WriteOptions};
use crate::error::Result;
use crate::keyspace::trees::META;

/// The most bytes of landmarks.
const MOST_BYTES: usize = 24 << 20;
/// The most bytes of long landmarks.
const MOST_LONG_BYTES: usize = 16 << 20;
/// The length from which a landmark is long.
const LONG: usize = 4 << 10;
/// A long landmark stands after a walk of so many times its length.
const LONG_SPACING: usize = 16;
/// The most bytes of landmarks that a close saves.
const MOST_SAVED: usize = 1 << 20;
/// One page in 2^16 is the last before growth.
const GROWTH_BITS: u32 = 16;
/// The bits of the factor of one step of growth.
const GROWTH_STEP: u32 = 3;

/// The cursors of one open store.
#[derive(Debug)]
pub(crate) struct ScanCursors {
    seed: HashSeed,
    tables: Mutex<Tables>,
}

#[derive(Debug)]
struct Tables {
    short: Landmarks,
    long: Landmarks,
    /// Whether there are landmarks that no close has saved.
    changed: bool,
    /// The record that was loaded last.
    loaded: Option<Bytes>,
}

/// The key of the record that a clean close writes.
fn record() -> MetaKey {
    meta_key(Space::RESERVED, b"cursors")
}

impl ScanCursors {
    fn new(seed: HashSeed) -> Self {
        let (short, long) = (Landmarks::new(MOST_BYTES), Landmarks::new(MOST_LONG_BYTES));
        Self { seed, tables: Mutex::new(Tables { short, long, changed: false, loaded: None }) }
    }

    /// Loads what the last clean close saved.
    pub(crate) fn load(engine: &Engine) -> Result<Self> {
        let cursors = Self::new(engine.hash_seed());
        cursors.reload(&engine.reader()?)?;
        Ok(cursors)
    }

    /// Adds what the last clean close before the reader saved, unless that is known.
    pub(crate) fn reload(&self, reader: &Reader) -> Result<()> {
        let saved = reader.get(META, &record())?;
        let mut tables = self.tables.lock();
        if saved == tables.loaded {
            return Ok(());
        }
        let changed = tables.changed;
        decode(saved.as_deref().unwrap_or_default()).into_iter().for_each(|(id, bytes)| {
            tables.add(id, bytes);
        });
        (tables.changed, tables.loaded) = (changed, saved);
        Ok(())
    }

    /// Saves the newest landmarks for the next open.
    pub(crate) fn save(&self, engine: &Engine) -> Result<()> {
        let mut batch = Batch::new();
        {
            let mut tables = self.tables.lock();
            if !tables.changed {
                return Ok(());
            }
            batch.put(META, &record(), &tables.newest(MOST_SAVED));
            tables.changed = false;
        }
        engine.commit(&mut batch, WriteOptions::default()).map(|_| ())
    }

    /// The bytes at which the scan of this number continues, and how its page ends. Empty, the
    /// beginning, for a number that is not understood.
    pub(crate) fn resume(&self, number: u64) -> (Vec<u8>, NumberedEnd<'_>) {
        let start = Number::from_u64(number).and_then(|number| {
            let mut tables = self.tables.lock();
            Some((number.place.bytes(|id| tables.get(id))?, number.growth))
        });
        let (position, growth) = start.unwrap_or_default();
        let end = NumberedEnd {
            cursors: self,
            growth,
            tried: false,
            walked: 0,
            candidate: None,
            number: 0,
            kept: usize::MAX,
        };
        (position, end)
    }
}

impl Tables {
    fn get(&mut self, id: u32) -> Option<Vec<u8>> {
        let now = Instant::now();
        let bytes = self.short.get(id, now).or_else(|| self.long.get(id, now));
        bytes.map(|bytes| bytes.to_vec())
    }

    /// A place for `separator` by the landmarks that exist, or that of a landmark after `last` and
    /// not after `next`.
    fn place(&mut self, last: &[u8], next: &[u8], separator: &[u8]) -> Option<Place> {
        let near = |table: &Landmarks| {
            let (id, landmark) = table.at_or_before(next)?;
            if landmark > last {
                return Some((id, Place::at(id)));
            }
            Some((id, Place::near(separator, id, landmark)?))
        };
        let (id, place) = near(&self.short).or_else(|| near(&self.long))?;
        self.get(id);
        Some(place)
    }

    /// Adds a landmark; `false` if its id is taken.
    fn add(&mut self, id: u32, bytes: &[u8]) -> bool {
        if self.short.contains(id) || self.long.contains(id) {
            return false;
        }
        let table = if bytes.len() > LONG { &mut self.long } else { &mut self.short };
        table.add(id, bytes, Instant::now());
        self.changed = true;
        true
    }

    /// Encodes the newest landmarks with at most this many bytes.
    fn newest(&self, most: usize) -> Vec<u8> {
        let mut left = most;
        let newest_first = self.short.newest().chain(self.long.newest());
        let mut kept: Vec<_> = newest_first
            .take_while(|(_, bytes)| {
                let rest = left.checked_sub(bytes.len());
                left = rest.unwrap_or(0);
                rest.is_some()
            })
            .collect();
        kept.reverse();
        encode(kept.into_iter())
    }
}

/// Decides where a page ends, and gives it a number.
#[derive(Debug)]
pub(crate) struct NumberedEnd<'c> {
    cursors: &'c ScanCursors,
    growth: u32,
    /// Whether the page could have ended before.
    tried: bool,
    /// The rows since the page could first have ended, large ones counted once per KiB.
    walked: u64,
    /// A place for a landmark, if no other one follows within the spacing.
    candidate: Option<Candidate>,
    number: u64,
    kept: usize,
}

#[derive(Debug)]
struct Candidate {
    separator: Vec<u8>,
    walked: u64,
    taken: usize,
}

/// Two neighbouring rows, between which a page may end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap<'a> {
    /// The last row of the page.
    pub(crate) last: &'a [u8],
    /// The first row after it.
    pub(crate) next: &'a [u8],
    /// The size of the last row with its value.
    pub(crate) row_bytes: usize,
    /// The number of elements in the page.
    pub(crate) taken: usize,
}

impl NumberedEnd<'_> {
    /// How many rows the page has at least, if `count` were asked for.
    pub(crate) fn rows(&self, count: u64) -> u64 {
        count.saturating_mul(1 << (GROWTH_STEP * self.growth))
    }

    /// Whether the page ends here. Asked at each gap from the first on at which it may end.
    pub(crate) fn ends(&mut self, gap: Gap<'_>) -> bool {
        let separator = gap.next.get(..=common(gap.last, gap.next)).unwrap_or(gap.next);
        let cursors = self.cursors;
        let mut tables = cursors.tables.lock();
        if self.tried {
            self.walked += 1 + gap.row_bytes as u64 / 1024;
        }
        self.tried = true;
        let place = Place::prefix(separator);
        let place = place.or_else(|| tables.place(gap.last, gap.next, separator));
        if let Some(place) = place {
            self.end(separator, place, usize::MAX);
            return true;
        }
        if let Some(candidate) = self.candidate.take() {
            if self.walked - candidate.walked < tables.short.spacing() {
                self.candidate = Some(candidate);
                return false;
            }
            return self.end_at_new(&mut tables, &candidate.separator, candidate.taken);
        }
        if separator.len() > LONG {
            let enough = self.walked >= (separator.len() * LONG_SPACING / 1024) as u64;
            return enough && self.end_at_new(&mut tables, separator, usize::MAX);
        }
        let spacing = tables.short.spacing();
        if self.walked < spacing {
            return false;
        }
        if spacing == 0 || !tables.short.any_after(gap.next) {
            return self.end_at_new(&mut tables, separator, usize::MAX);
        }
        let (separator, taken) = (separator.to_vec(), gap.taken);
        self.candidate = Some(Candidate { separator, walked: self.walked, taken });
        false
    }

    /// The number for the next call, 0 for the end of the scan, and how many of the elements of this
    /// page count.
    pub(crate) fn number(&self) -> (u64, usize) {
        (self.number, self.kept)
    }

    fn end_at_new(&mut self, tables: &mut Tables, separator: &[u8], kept: usize) -> bool {
        let id = self.cursors.seed.hash(separator) & ID_MASK;
        let Some(id) = u32::try_from(id).ok().filter(|id| tables.add(*id, separator)) else {
            return false;
        };
        self.end(separator, Place::at(id), kept);
        true
    }

    fn end(&mut self, separator: &[u8], place: Place, kept: usize) {
        let rare = GROWTH_BITS + GROWTH_STEP * self.growth;
        let grows = (self.cursors.seed.hash(separator).reverse_bits()) & ((1 << rare) - 1) == 0;
        let growth = (self.growth + u32::from(grows)).min(MOST_GROWTH);
        self.number = Number { growth, place }.to_u64();
        self.kept = kept;
    }
}

/// 64 unpredictable bits.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

#[cfg(test)]
mod tests;
