//! The memtable: entries in an arena, chained by hash.
//!
//! ```text
//! entry, at an 8-byte boundary:
//!   0  next   u32   address of the next older entry of the same bucket, 0 at the end
//!   4  hash   u32   lower half of the key's hash
//!   8  tag    u64   sequence << 8 | kind
//!  16  klen   u32
//!  20  vlen   u32
//!  24  key, value
//! ```
//! Invariants: an entry is written whole before its address is stored (Release) in its bucket;
//! after that no byte of it changes. A chain runs from newest to oldest, since entries arrive in
//! the order of their sequence numbers, so the first match at or below a sequence is the answer.

#![expect(unsafe_code, reason = "reads entries in place; see the invariants above")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::arena::{Address, Arena, Tail};
use super::order::{Order, RUN};
use crate::engine::entry::{Sequence, Tag};
use crate::error::{Error, ErrorKind, Result};

const HEADER: usize = 24;
/// Values below this are copied out; larger ones pin the memtable (ten bytes shall not pin
/// megabytes).
const PIN_FROM: usize = 1024;
/// A memtable below this size is in the processor's cache if it is used much.
const NEAR_ANYHOW: usize = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    next: u32,
    hash: u32,
    tag: u64,
    klen: u32,
    vlen: u32,
}

/// One entry, borrowed from the arena. Only a memtable makes one, so that pinning its value is
/// sound.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    tag: Tag,
    key: &'a [u8],
    value: &'a [u8],
    home: &'a Memtable,
}

impl<'a> Found<'a> {
    /// Sequence and kind.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The user key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The value; empty for a delete.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }
}

/// See the module's documentation.
pub struct Memtable {
    arena: Arena,
    buckets: Box<[AtomicU32]>,
    writer: Mutex<Writer>,
    order: RwLock<Order>,
    len: AtomicUsize,
    bytes: AtomicUsize,
    /// Up to this number of entries the writer keeps the order close behind.
    ordered_until: AtomicUsize,
}

/// Entries that are ordered as they are written after a scan. If none comes meanwhile, the next
/// one orders what has come since: a tree that is hardly ever scanned shall not pay for it with
/// every write.
const ORDERED_AFTER_SCAN: usize = 1 << 15;

/// Zeros that the system provides page by page when they are touched: writing them here would
/// stop the writer that needs a new memtable for a millisecond.
fn zeroed(count: usize) -> Box<[AtomicU32]> {
    let zeros = Box::into_raw(vec![0u32; count].into_boxed_slice());
    // SAFETY: `AtomicU32` has the size, alignment and bit validity of `u32`, and the box is ours.
    unsafe { Box::from_raw(zeros as *mut [AtomicU32]) }
}

#[derive(Default)]
struct Writer {
    tail: Tail,
    /// Every entry in the order it was written.
    written: Vec<Address>,
}

impl Memtable {
    /// A memtable meant for about `capacity` bytes. `expect_scans` keeps the ordered index close
    /// behind the writer from the start.
    pub fn new(capacity: usize, expect_scans: bool) -> Self {
        let buckets = (capacity / 128).next_power_of_two().clamp(256, 1 << 22);
        Self {
            arena: Arena::new(),
            buckets: zeroed(buckets),
            writer: Mutex::default(),
            order: RwLock::default(),
            len: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            ordered_until: AtomicUsize::new(if expect_scans { ORDERED_AFTER_SCAN } else { 0 }),
        }
    }

    /// Number of entries, every version counted.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether nothing was written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in use: entries and indexes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a scan has asked for the order lately.
    pub fn was_scanned(&self) -> bool {
        self.len() < self.ordered_until.load(Ordering::Relaxed)
    }

    #[inline]
    fn bucket(&self, hash: u64) -> Option<&AtomicU32> {
        // The stored half of the hash tells entries of one bucket apart; the bucket uses the other.
        self.buckets.get((hash >> 32) as usize & (self.buckets.len() - 1))
    }

    /// Adds an entry. Sequences must not decrease from call to call; of two entries with the
    /// same key and sequence the later one wins.
    pub fn insert(&self, hash: u64, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let (Ok(klen), Ok(vlen)) = (u32::try_from(key.len()), u32::try_from(value.len())) else {
            return Err(Error::new(ErrorKind::TooLarge, "a key or value exceeds 4 GiB"));
        };
        let mut writer = self.writer.lock();
        let size = HEADER + key.len() + value.len();
        let (Some((address, memory)), Some(bucket)) =
            (self.arena.allocate(&mut writer.tail, size), self.bucket(hash))
        else {
            return Err(Error::new(ErrorKind::NoMemory, "no memory for a memtable entry"));
        };
        let next = bucket.load(Ordering::Relaxed);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is stored")]
        let header = Header { next, hash: hash as u32, tag: tag.raw(), klen, vlen };
        // SAFETY: `memory` has `size` bytes at an 8-byte boundary that nobody else can see yet.
        unsafe {
            memory.cast::<Header>().write(header);
            memory.add(HEADER).copy_from_nonoverlapping(key.as_ptr(), key.len());
            memory.add(HEADER + key.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        bucket.store(address, Ordering::Release);
        writer.written.push(address);
        self.bytes.store(writer.tail.allocated() + writer.written.len() * 4, Ordering::Relaxed);
        self.len.store(writer.written.len(), Ordering::Release);
        Ok(())
    }

    /// The newest entry of `key` at or before `sequence`.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8], sequence: Sequence) -> Option<Found<'_>> {
        let mut address = self.bucket(hash)?.load(Ordering::Acquire);
        while address != 0 {
            let header = self.header(address);
            #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is stored")]
            if header.hash == hash as u32 {
                let found = self.entry(address);
                if found.key == key && found.tag.sequence() <= sequence {
                    return Some(found);
                }
            }
            address = header.next;
        }
        None
    }

    /// Reads where the chains begin that keys with these hashes are in. These reads do not depend on
    /// each other, so the processor waits for memory once for many; look-ups that follow find what
    /// they need in its cache, where each would have waited twice.
    pub fn bring_near(&self, hashes: &[u64]) {
        if self.bytes() < NEAR_ANYHOW {
            return;
        }
        let bucket = |hash: &u64| self.bucket(*hash).map_or(0, |it| it.load(Ordering::Acquire));
        let heads = hashes.iter().map(bucket).collect::<Vec<Address>>();
        let read = heads.iter().filter(|head| **head != 0).map(|head| self.header(*head).hash);
        std::hint::black_box(read.fold(0, |all, hash| all ^ hash));
    }

    #[inline]
    fn header(&self, address: Address) -> Header {
        // SAFETY: addresses come from a bucket (Acquire) or from `written` (its lock), so the
        // entry was written whole before, and it lives as long as the arena.
        unsafe { *self.arena.at(address).cast::<Header>() }
    }

    /// The entry at an address that this memtable handed out.
    #[inline]
    pub(super) fn entry(&self, address: Address) -> Found<'_> {
        let header = self.header(address);
        let (klen, vlen) = (header.klen as usize, header.vlen as usize);
        // SAFETY: as in `header`; key and value follow it within the same allocation.
        let (key, value) = unsafe {
            let data = self.arena.at(address).add(HEADER);
            (
                std::slice::from_raw_parts(data, klen),
                std::slice::from_raw_parts(data.add(klen), vlen),
            )
        };
        // Only tags made by `Tag::new` are ever stored.
        let tag = Tag::from_raw(header.tag).unwrap_or(Tag::newest_at(0));
        Found { tag, key, value, home: self }
    }

    /// The value as bytes of its own: copied when small, else pinning this memtable.
    pub fn value_bytes(self: &Arc<Self>, found: &Found<'_>) -> Bytes {
        if found.value.len() < PIN_FROM || !std::ptr::eq(found.home, Arc::as_ptr(self)) {
            return Bytes::copy_from_slice(found.value);
        }
        Bytes::from_owner(PinnedValue {
            start: found.value.as_ptr(),
            len: found.value.len(),
            _memtable: Arc::clone(self),
        })
    }

    /// Brings the ordered index up to date with everything written so far.
    pub(super) fn ordered(&self) -> parking_lot::RwLockReadGuard<'_, Order> {
        self.ordered_until.store(self.len() + ORDERED_AFTER_SCAN, Ordering::Relaxed);
        let guard = self.order.read();
        if guard.len() == self.len() {
            return guard;
        }
        drop(guard);
        let mut order = self.order.write();
        self.catch_up(&mut order);
        parking_lot::RwLockWriteGuard::downgrade(order)
    }

    fn catch_up(&self, order: &mut Order) {
        let fresh: Vec<Address> = {
            let writer = self.writer.lock();
            writer.written.get(order.len()..).unwrap_or_default().to_vec()
        };
        order.extend(fresh, self);
    }

    /// The runs of the order that may hold entries of `[lower, upper)`. They change with every
    /// write.
    pub(crate) fn runs_between(&self, lower: &[u8], upper: Option<&[u8]>) -> Range<usize> {
        self.ordered().runs_between(lower, upper, self)
    }

    /// An entry of those runs at random: each with the same probability, one in [`RUN`] times
    /// their number; none with what is left.
    pub(crate) fn draw(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        random: &mut dyn FnMut(u64) -> u64,
    ) -> Option<Found<'_>> {
        let order = self.ordered();
        let runs = order.runs_between(lower, upper, self);
        if runs.is_empty() {
            return None;
        }
        let run = runs.start + usize::try_from(random(runs.len() as u64)).ok()?;
        let index = usize::try_from(random(RUN as u64)).ok()?;
        order.slot(run, index).map(|address| self.entry(address))
    }

    /// Called by the writer now and then: keeps scans from finding much to catch up.
    pub fn index_ahead(&self) {
        const BEHIND: usize = 64;
        if !self.was_scanned() {
            return;
        }
        if let Some(mut order) = self.order.try_write()
            && self.len() - order.len() >= BEHIND
        {
            self.catch_up(&mut order);
        }
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memtable {{ entries: {}, bytes: {} }}", self.len(), self.bytes())
    }
}

struct PinnedValue {
    start: *const u8,
    len: usize,
    _memtable: Arc<Memtable>,
}

// SAFETY: the bytes are immutable and live as long as the memtable, which this owns a share of.
unsafe impl Send for PinnedValue {}
// SAFETY: as above.
unsafe impl Sync for PinnedValue {}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: see above.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::{Kind, MAX_SEQUENCE, hash_key};

    fn put(m: &Memtable, key: &[u8], sequence: Sequence, value: &[u8]) {
        m.insert(hash_key(key), key, Tag::new(sequence, Kind::Put), value).unwrap();
    }

    fn get<'a>(m: &'a Memtable, key: &[u8], sequence: Sequence) -> Option<Found<'a>> {
        m.get(hash_key(key), key, sequence)
    }

    #[test]
    fn a_read_sees_the_newest_entry_at_its_sequence() {
        let m = Memtable::new(1 << 16, false);
        put(&m, b"k", 3, b"three");
        put(&m, b"k", 5, b"five");
        m.insert(hash_key(b"k"), b"k", Tag::new(7, Kind::Delete), b"").unwrap();
        assert!(get(&m, b"k", 2).is_none());
        assert_eq!(get(&m, b"k", 4).unwrap().value, b"three");
        assert_eq!(get(&m, b"k", 6).unwrap().value, b"five");
        assert!(get(&m, b"k", MAX_SEQUENCE).unwrap().tag.is_delete());
        assert!(get(&m, b"other", MAX_SEQUENCE).is_none());
    }

    #[test]
    fn of_two_entries_with_one_sequence_the_later_wins() {
        let m = Memtable::new(1 << 16, false);
        put(&m, b"k", 3, b"first");
        put(&m, b"k", 3, b"second");
        assert_eq!(get(&m, b"k", 3).unwrap().value, b"second");
    }

    #[test]
    fn empty_keys_and_large_values_are_kept() {
        let m = Arc::new(Memtable::new(1 << 16, false));
        let large = vec![7u8; 5 << 20];
        put(&m, b"", 1, &large);
        let pinned = m.value_bytes(&get(&m, b"", 1).unwrap());
        drop(m);
        assert_eq!(pinned, large, "a pinned value outlives the last other reference");
    }

    #[test]
    fn readers_run_beside_the_writer() {
        let m = Memtable::new(1 << 20, false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..20_000u64 {
                    put(&m, format!("{:05}", i % 500).as_bytes(), i + 1, &i.to_le_bytes());
                }
            });
            scope.spawn(|| {
                for i in 0..20_000u64 {
                    let key = format!("{:05}", i % 500);
                    if let Some(found) = get(&m, key.as_bytes(), MAX_SEQUENCE) {
                        assert_eq!(found.key, key.as_bytes());
                        assert_eq!(found.value, (found.tag.sequence() - 1).to_le_bytes());
                    }
                }
            });
        });
        assert_eq!(m.len(), 20_000);
    }
}
