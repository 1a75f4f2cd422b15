//! The memtable: entries chained by hash for point reads, and in an order for scans.
//!
//! A bucket is a chain of the newest entries of its keys. Each of them leads to the older versions
//! of its key (`entries`). The chain of a bucket ends at [`LONGEST_CHAIN`] keys. Further keys of the
//! bucket are in a map with a secret hash of its own. So neither a key that is written often nor
//! keys chosen by somebody who knows the hash make lookups slow.
//!
//! Invariants: an entry is complete before its address is stored (Release) in its bucket or in the
//! link of the entry before it. A new version takes the place of the version before it in the
//! chain. A reader that meets the replaced version reads at an older sequence number: entries
//! arrive in the order of their sequence numbers, and those it may see were there before it began.

use std::collections::HashMap;
use std::ops::Range;

use super::arena::{Address, Tail};
use super::buckets::Buckets;
use super::entries::{Entries, MAX_KEY_BYTES, MemtableEntry, NewEntry};
use super::order::{Order, RUN, Sorted};
use crate::engine::entry::{Sequence, Tag};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Mutex, RwLock};

/// Number of keys in the chain of a bucket; further ones are in the map. The mean is below three.
const LONGEST_CHAIN: usize = if cfg!(loom) { 2 } else { 64 };
/// Memory of an entry of that map, beside its key.
const OVERFLOW_ENTRY_BYTES: usize = 48;
/// The smallest number of buckets. loom keeps the history of each.
const FEWEST_BUCKETS: usize = if cfg!(loom) { 1 } else { 256 };
/// A memtable below this size stays in the processor's cache if it is used much.
const CACHED_BYTES: usize = 1 << 20;

/// Writes of one tree that are not flushed yet.
pub struct Memtable {
    pub(super) entries: Entries,
    buckets: Buckets,
    /// The newest entries of keys that did not fit into the chains of their buckets.
    overflow: RwLock<HashMap<Box<[u8]>, Address>>,
    pub(super) writer: Mutex<Writer>,
    pub(super) order: RwLock<Order>,
    len: AtomicUsize,
    bytes: AtomicUsize,
    /// Number of entries that have their place in the order.
    ordered: AtomicUsize,
    /// Up to this number of entries the memtable counts as one that is walked.
    walked_until: AtomicUsize,
}

/// Number of entries after a walk that make it an old one.
const RECENT_WALK: usize = 1 << 15;

/// Number of entries that the writer lets queue up before it gives them their places in the order.
const BEHIND: usize = if cfg!(loom) { 1 } else { 64 };
/// Number of such entries at which the writer waits for a scan that uses the order.
const FAR_BEHIND: usize = 1 << 12;
/// Memory of an entry in the append order and in the order.
const ORDER_BYTES: usize = 4 + 18;

#[derive(Default)]
pub(super) struct Writer {
    tail: Tail,
    /// The addresses of all entries, in the order they were written.
    pub(super) append_order: Vec<Address>,
    overflow_bytes: usize,
}

/// Where the newest entry of a key is, or belongs.
enum Slot<'a> {
    /// In a chain: the link that leads to it, and its address.
    Found(&'a AtomicU32, Address),
    /// At the front of the chain of its bucket.
    Front,
    /// In the map, since the chain is full.
    Overflow,
}

impl Memtable {
    /// A memtable meant for about `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let buckets = (capacity / 128).next_power_of_two().clamp(FEWEST_BUCKETS, 1 << 22);
        Self {
            entries: Entries::new(),
            buckets: Buckets::zeroed(buckets),
            overflow: RwLock::default(),
            writer: Mutex::default(),
            order: RwLock::default(),
            len: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            ordered: AtomicUsize::new(0),
            walked_until: AtomicUsize::new(0),
        }
    }

    /// Number of entries, all versions counted.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether the memtable has no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes used by entries and indexes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether somebody has walked along the memtable lately.
    pub fn was_walked(&self) -> bool {
        self.len() < self.walked_until.load(Ordering::Relaxed)
    }

    #[inline]
    fn bucket(&self, hash: u64) -> Option<&AtomicU32> {
        // Entries store the lower half of the hash, so the bucket is chosen by the upper half.
        self.buckets.get((hash >> 32) as usize & (self.buckets.len() - 1))
    }

    /// Adds an entry. Sequence numbers must not decrease from call to call. Of two entries with
    /// the same key and sequence number the later one wins.
    pub fn insert(&self, hash: u64, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY_BYTES || u32::try_from(value.len()).is_err() {
            return Err(Error::new(ErrorKind::TooLarge, "a key exceeds 2 GiB or a value 4 GiB"));
        }
        let no_memory = || Error::new(ErrorKind::NoMemory, "no memory for a memtable entry");
        let mut writer = self.writer.lock();
        let bucket = self.bucket(hash).ok_or_else(no_memory)?;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is stored")]
        let hash = hash as u32;
        let mut entry = NewEntry { next: 0, older: None, hash, tag, key, value };
        match self.slot(bucket, hash, key) {
            Slot::Found(link, older) => {
                entry.older = Some(older);
                entry.next = self.entries.next(older).load(Ordering::Relaxed);
                let address = self.entries.push(&mut writer.tail, &entry).ok_or_else(no_memory)?;
                link.store(address, Ordering::Release);
                writer.append_order.push(address);
            }
            Slot::Front => {
                entry.next = bucket.load(Ordering::Relaxed);
                let address = self.entries.push(&mut writer.tail, &entry).ok_or_else(no_memory)?;
                bucket.store(address, Ordering::Release);
                writer.append_order.push(address);
            }
            Slot::Overflow => {
                let mut overflow = self.overflow.write();
                entry.older = overflow.get(key).copied();
                let address = self.entries.push(&mut writer.tail, &entry).ok_or_else(no_memory)?;
                if overflow.insert(key.into(), address).is_none() {
                    writer.overflow_bytes += key.len() + OVERFLOW_ENTRY_BYTES;
                }
                writer.append_order.push(address);
            }
        }
        let count = writer.append_order.len();
        let bytes = writer.tail.allocated() + count * ORDER_BYTES + writer.overflow_bytes;
        self.bytes.store(bytes, Ordering::Relaxed);
        self.len.store(count, Ordering::Release);
        Ok(())
    }

    /// Finds the place of `key` in its bucket.
    fn slot<'a>(&'a self, bucket: &'a AtomicU32, hash: u32, key: &[u8]) -> Slot<'a> {
        let mut link = bucket;
        for _ in 0..LONGEST_CHAIN {
            let address = link.load(Ordering::Acquire);
            if address == 0 {
                return Slot::Front;
            }
            match self.entries.entry_of(address, hash, key) {
                Ok(_) => return Slot::Found(link, address),
                Err(next) => link = next,
            }
        }
        Slot::Overflow
    }

    /// The newest entry of `key` at or before `sequence`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is stored")]
    pub fn get(&self, hash: u64, key: &[u8], sequence: Sequence) -> Option<MemtableEntry<'_>> {
        let mut address = self.bucket(hash)?.load(Ordering::Acquire);
        let mut passed = 0;
        while address != 0 {
            match self.entries.entry_of(address, hash as u32, key) {
                Ok(found) if found.tag() <= Tag::newest_at(sequence) => return Some(found),
                Ok(_) => return self.entries.version_at(address, sequence),
                Err(next) => address = next.load(Ordering::Acquire),
            }
            passed += 1;
        }
        if passed < LONGEST_CHAIN {
            return None;
        }
        self.get_from_overflow(key, sequence)
    }

    #[cold]
    fn get_from_overflow(&self, key: &[u8], sequence: Sequence) -> Option<MemtableEntry<'_>> {
        let newest = *self.overflow.read().get(key)?;
        self.entries.version_at(newest, sequence)
    }

    /// Prefetches the heads of the hash chains for these key hashes into the processor's cache.
    ///
    /// The reads do not depend on each other, so the processor waits for memory once for many of
    /// them. Lookups that follow would otherwise wait twice each.
    pub fn prefetch(&self, hashes: &[u64]) {
        if self.bytes() < CACHED_BYTES {
            return;
        }
        let bucket = |hash: &u64| self.bucket(*hash).map_or(0, |it| it.load(Ordering::Acquire));
        let heads = hashes.iter().map(bucket).collect::<Vec<Address>>();
        let present = heads.iter().filter(|head| **head != 0);
        let read = present.map(|head| self.entries.hash(*head));
        std::hint::black_box(read.fold(0, |all, hash| all ^ hash));
    }

    /// The entry at an address that this memtable handed out.
    #[inline]
    pub(super) fn entry(&self, address: Address) -> MemtableEntry<'_> {
        self.entries.entry(address)
    }

    /// Runs `find` on the order, brought up to date, and the entries it refers to. It is run again
    /// whenever a run that it needs had to be sorted first.
    pub(super) fn with_order<T>(&self, mut find: impl FnMut(&Order, &Entries) -> Sorted<T>) -> T {
        self.walked_until.store(self.len() + RECENT_WALK, Ordering::Relaxed);
        let order = self.order.read();
        if order.len() == self.len()
            && let Ok(found) = find(&order, &self.entries)
        {
            return found;
        }
        drop(order);
        let mut order = self.order.write();
        self.catch_up(&mut order);
        loop {
            match find(&order, &self.entries) {
                Ok(found) => return found,
                Err(unsorted) => order.sort(unsorted, &self.entries),
            }
        }
    }

    fn catch_up(&self, order: &mut Order) {
        let fresh: Vec<Address> = {
            let writer = self.writer.lock();
            writer.append_order.get(order.len()..).unwrap_or_default().to_vec()
        };
        order.extend(&fresh, &self.entries);
        self.ordered.store(order.len(), Ordering::Relaxed);
    }

    /// The runs of the order that may hold entries of `[lower, upper)`. They change with every
    /// write.
    pub(crate) fn runs_between(&self, lower: &[u8], upper: Option<&[u8]>) -> Range<usize> {
        self.with_order(|order, entries| Ok(order.runs_between(lower, upper, entries)))
    }

    /// A random entry of the runs that may hold `[lower, upper)`. Each entry is drawn with the
    /// same probability, one in [`RUN`] times the number of runs; otherwise nothing is drawn.
    pub(crate) fn draw(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        random: &mut dyn FnMut(u64) -> u64,
    ) -> Option<MemtableEntry<'_>> {
        let drawn = self.with_order(|order, entries| {
            let runs = order.runs_between(lower, upper, entries);
            let run = runs.start + usize::try_from(random(runs.len().max(1) as u64)).unwrap_or(0);
            let index = usize::try_from(random(RUN as u64)).unwrap_or(RUN);
            Ok(order.slot(run, index))
        });
        drawn.map(|address| self.entry(address))
    }

    /// Gives recent entries their places in the order. The writer calls this after every entry, so
    /// that neither a scan nor a later writer finds much to do.
    #[inline]
    pub fn update_order(&self) {
        let behind = self.len() - self.ordered.load(Ordering::Relaxed);
        if behind >= BEHIND {
            self.order_fresh(behind);
        }
    }

    fn order_fresh(&self, behind: usize) {
        let order = match behind < FAR_BEHIND {
            true => self.order.try_write(),
            false => Some(self.order.write()),
        };
        if let Some(mut order) = order {
            self.catch_up(&mut order);
        }
    }
}

#[cfg(test)]
impl Memtable {
    /// How many entries were placed, sorted or divided so far to keep the order.
    pub(super) fn moved(&self) -> usize {
        self.order.read().moved
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memtable {{ entries: {}, bytes: {} }}", self.len(), self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::{EntryKind, MAX_SEQUENCE};
    use crate::engine::hash::stable_hash;

    fn put(m: &Memtable, key: &[u8], sequence: Sequence, value: &[u8]) {
        m.insert(stable_hash(key), key, Tag::new(sequence, EntryKind::Put), value).unwrap();
    }

    fn get<'a>(m: &'a Memtable, key: &[u8], sequence: Sequence) -> Option<MemtableEntry<'a>> {
        m.get(stable_hash(key), key, sequence)
    }

    #[test]
    fn a_read_sees_the_newest_entry_at_its_sequence() {
        let m = Memtable::new(1 << 16);
        put(&m, b"k", 3, b"three");
        put(&m, b"k", 5, b"five");
        m.insert(stable_hash(b"k"), b"k", Tag::new(7, EntryKind::Delete), b"").unwrap();
        assert!(get(&m, b"k", 2).is_none());
        assert_eq!(get(&m, b"k", 4).unwrap().value(), b"three");
        assert_eq!(get(&m, b"k", 6).unwrap().value(), b"five");
        assert!(get(&m, b"k", MAX_SEQUENCE).unwrap().tag().is_delete());
        assert!(get(&m, b"other", MAX_SEQUENCE).is_none());
    }

    #[test]
    fn of_two_entries_with_one_sequence_the_later_wins() {
        let m = Memtable::new(1 << 16);
        put(&m, b"k", 3, b"first");
        put(&m, b"k", 3, b"second");
        assert_eq!(get(&m, b"k", 3).unwrap().value(), b"second");
    }

    #[test]
    fn empty_keys_and_large_values_are_kept() {
        let m = Memtable::new(1 << 16);
        let large = vec![7u8; 5 << 20];
        put(&m, b"", 1, &large);
        let pinned = get(&m, b"", 1).unwrap().value_bytes();
        drop(m);
        assert_eq!(pinned, large, "a pinned value outlives the last other reference");
    }

    #[test]
    fn every_old_version_of_a_key_that_is_written_often_is_found() {
        let m = Memtable::new(1 << 16);
        let versions = if cfg!(miri) { 30 } else { 5000u64 };
        for sequence in 1..=versions {
            put(&m, b"hot", sequence * 2, &sequence.to_le_bytes());
            put(&m, format!("other{sequence}").as_bytes(), sequence * 2, b"");
        }
        for sequence in 1..=versions {
            for at in [sequence * 2, sequence * 2 + 1] {
                assert_eq!(get(&m, b"hot", at).unwrap().value(), sequence.to_le_bytes());
            }
        }
        assert!(get(&m, b"hot", 1).is_none());
    }

    /// Every key has the same hash, as if somebody had chosen them who knows the seed.
    #[test]
    fn keys_of_one_hash_are_all_found_with_their_versions() {
        let keys = if cfg!(miri) { 66 } else { 2000 };
        let m = Memtable::new(1 << 16);
        let key = |i: u64| format!("key{i}").into_bytes();
        let put = |i: u64, sequence: Sequence| {
            let value = sequence.to_le_bytes();
            m.insert(7, &key(i), Tag::new(sequence, EntryKind::Put), &value).unwrap();
        };
        (0..keys).for_each(|i| put(i, i + 1));
        let bytes = m.bytes();
        (0..keys).for_each(|i| put(i, 3000 + i));
        for i in 0..keys {
            for (sequence, expected) in [(i + 1, i + 1), (2999 + i, i + 1), (9000, 3000 + i)] {
                let found = m.get(7, &key(i), sequence).unwrap();
                assert_eq!(found.key(), key(i));
                assert_eq!(found.value(), expected.to_le_bytes());
            }
            assert!(m.get(7, &key(i), i).is_none());
        }
        assert!(m.get(7, b"absent", 9000).is_none());
        let count = keys as usize;
        assert!(
            bytes >= count * (24 + 8) + (count - LONGEST_CHAIN) * OVERFLOW_ENTRY_BYTES,
            "the map is counted"
        );
        assert_eq!(m.overflow.read().len(), count - LONGEST_CHAIN);
    }

    #[test]
    fn readers_run_beside_the_writer() {
        let writes = if cfg!(miri) { 50 } else { 20_000u64 };
        let m = Memtable::new(1 << 20);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..writes {
                    put(&m, format!("{:05}", i % 500).as_bytes(), i + 1, &i.to_le_bytes());
                }
            });
            scope.spawn(|| {
                for i in 0..writes {
                    let key = format!("{:05}", i % 500);
                    if let Some(found) = get(&m, key.as_bytes(), MAX_SEQUENCE) {
                        assert_eq!(found.key(), key.as_bytes());
                        assert_eq!(found.value(), (found.tag().sequence() - 1).to_le_bytes());
                    }
                }
            });
        });
        assert_eq!(m.len() as u64, writes);
    }
}
