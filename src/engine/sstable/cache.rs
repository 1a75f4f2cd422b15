//! The block cache, shared by all tables of a store.
//!
//! Keys are (file number, offset). File numbers are never reused, so the blocks of a deleted table
//! need no removal: nothing asks for them again, and they are evicted in time. The cache resists
//! scans (quick_cache), and its shard locks are the only locks on the read path. Its capacity in
//! bytes may change at any time; 0 turns caching off.
//!
//! Beside the cache, reads, flushes and merges hold dozens of blocks at a time. That is little unless
//! blocks are large, as those of large values are: then the cache leaves room for them. It does so for
//! large batches too: of each there are several copies while it is written, and more once it is read.

use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;
use crate::engine::counter::Counter;
use crate::engine::files::FileNumber;

/// Whether blocks that a read loads from a file are put into the block cache.
///
/// Either way a read uses the blocks that are cached already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheFill {
    /// Blocks are cached: for data that is likely to be read again.
    #[default]
    Fill,
    /// The cache stays as it is: for scans that are not expected to repeat.
    Skip,
}

impl CacheFill {
    /// [`CacheFill::Skip`] if `skip` is set.
    pub fn skip_if(skip: bool) -> Self {
        if skip { Self::Skip } else { Self::Fill }
    }

    /// Whether blocks are cached.
    #[inline]
    pub fn fills(self) -> bool {
        self == Self::Fill
    }

    /// [`CacheFill::Fill`] only if both fill.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::skip_if(!(self.fills() && other.fills()))
    }
}

type Key = (FileNumber, u64);

/// Expected block size, for the number of recently evicted keys that the cache remembers.
const TYPICAL_BLOCK: u64 = 4096;

/// Blocks from this size on are large.
const LARGE_BLOCK: u64 = 64 << 10;
/// The number of large blocks that the cache leaves room for, as far as half its capacity allows.
const BLOCKS_BESIDE: u64 = 32;
/// The number of copies of a large batch that the cache leaves room for.
const BATCHES_BESIDE: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Bytes;

impl Weighter<Key, Block> for Bytes {
    fn weight(&self, _key: &Key, block: &Block) -> u64 {
        block.memory() as u64
    }
}

/// A cache of data blocks with a capacity in bytes.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Cache<Key, Block, Bytes>,
    capacity: AtomicU64,
    /// The room for large blocks and batches that were seen lately, in bytes.
    beside: AtomicU64,
    /// The bytes that the caller wants for something else.
    lent: AtomicU64,
    hits: Counter,
    misses: Counter,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes. With 0 it caches nothing.
    pub fn new(capacity: u64) -> Self {
        let items = (capacity / TYPICAL_BLOCK).clamp(1 << 10, 1 << 22);
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        Self {
            blocks: Cache::with_weighter(items, capacity, Bytes),
            capacity: AtomicU64::new(capacity),
            beside: AtomicU64::new(0),
            lent: AtomicU64::new(0),
            hits: Counter::default(),
            misses: Counter::default(),
        }
    }

    /// The block at `offset` of file `number`, if it is cached.
    #[inline]
    pub fn get(&self, number: FileNumber, offset: u64) -> Option<Block> {
        let found = self.blocks.get(&(number, offset));
        if found.is_some() {
            self.hits.add(1);
        } else {
            self.misses.add(1);
        }
        found
    }

    /// Adds a checked block. A block larger than a shard of the cache is not kept.
    pub fn insert(&self, number: FileNumber, offset: u64, block: Block) {
        if self.capacity() == 0 {
            return;
        }
        let size = block.memory() as u64;
        if size >= LARGE_BLOCK {
            self.leave_room(size.saturating_mul(BLOCKS_BESIDE));
        }
        self.blocks.insert((number, offset), block);
    }

    /// Notes that a batch of so many bytes is written: if it is large, there is room for its copies.
    #[inline]
    pub(crate) fn note_batch(&self, bytes: usize) {
        if bytes as u64 >= LARGE_BLOCK {
            self.leave_room((bytes as u64).saturating_mul(BATCHES_BESIDE));
        }
    }

    #[cold]
    fn leave_room(&self, bytes: u64) {
        if bytes > self.beside.fetch_max(bytes, Ordering::Relaxed) {
            self.apply_capacity();
        }
    }

    /// The capacity in bytes, with the room that is left for large blocks elsewhere.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the capacity, and evicts at once what no longer fits.
    pub fn set_capacity(&self, capacity: u64) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.apply_capacity();
    }

    /// Takes back the room for large blocks and batches, step by step, unless more of them come.
    pub fn forget_large_blocks(&self) {
        let half = |room: u64| match room {
            0 => None,
            room if room < 2 * LARGE_BLOCK * BATCHES_BESIDE => Some(0),
            room => Some(room / 2),
        };
        if self.beside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, half).is_ok() {
            self.apply_capacity();
        }
    }

    /// Leaves `bytes` of the capacity unused, but keeps an eighth of it, until the next call.
    pub fn lend(&self, bytes: u64) {
        if self.lent.swap(bytes, Ordering::Relaxed) != bytes {
            self.apply_capacity();
        }
    }

    fn apply_capacity(&self) {
        let capacity = self.capacity();
        let beside = self.beside.load(Ordering::Relaxed);
        let lent = self.lent.load(Ordering::Relaxed);
        let left = capacity - beside.min(capacity / 2);
        self.blocks.set_capacity(left.saturating_sub(lent).max(capacity / 8));
    }

    /// Memory of the cached blocks, in bytes.
    pub fn used(&self) -> u64 {
        self.blocks.weight()
    }

    /// Number of lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.hits.sum()
    }

    /// Number of lookups that did not find their block.
    pub fn misses(&self) -> u64 {
        self.misses.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sstable::block::tests::block_of;

    fn block(bytes: usize) -> Block {
        block_of(&[(b"key", 1, &vec![0; bytes])])
    }

    #[test]
    fn a_block_is_found_under_its_own_file_and_offset_only() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 0, block(100));
        assert!(cache.get(1, 0).is_some());
        assert!(cache.get(1, 100).is_none());
        assert!(cache.get(2, 0).is_none());
        assert_eq!((cache.hits(), cache.misses()), (1, 2));
    }

    #[test]
    fn the_capacity_is_kept_and_can_shrink_and_grow() {
        let cache = BlockCache::new(1 << 20);
        for i in 0..1000 {
            cache.insert(1, i, block(4000));
        }
        assert!((500 << 10..=1 << 20).contains(&cache.used()), "{}", cache.used());
        cache.set_capacity(100 << 10);
        assert!(cache.used() <= 100 << 10, "{}", cache.used());
        cache.set_capacity(0);
        assert_eq!(cache.used(), 0);
        cache.set_capacity(1 << 20);
        cache.insert(2, 0, block(4000));
        assert!(cache.get(2, 0).is_some());
    }

    #[test]
    fn large_blocks_leave_room_for_others_until_they_are_forgotten() {
        let cache = BlockCache::new(64 << 20);
        let fill = |from: u64| (from..from + 200).for_each(|i| cache.insert(1, i, block(600_000)));
        fill(0);
        assert!(cache.used() <= (64 << 20) - BLOCKS_BESIDE * 600_000, "{}", cache.used());
        (0..100_000).for_each(|i| cache.insert(2, i, block(4000)));
        assert!(cache.used() <= (64 << 20) - BLOCKS_BESIDE * 600_000, "{}", cache.used());
        (0..10).for_each(|_| cache.forget_large_blocks());
        (100_000..120_000).for_each(|i| cache.insert(2, i, block(4000)));
        assert!(cache.used() > (64 << 20) - (8 << 20), "{}", cache.used());
        // Half of the capacity at most, however large they are.
        cache.insert(3, 0, block(10 << 20));
        assert!((1..=32 << 20).contains(&cache.used()), "{}", cache.used());
    }

    #[test]
    fn large_batches_leave_room_for_their_copies_until_they_are_forgotten() {
        let cache = BlockCache::new(64 << 20);
        let fill = |number| (0..20_000).for_each(|i| cache.insert(number, i, block(4000)));
        cache.note_batch(60_000);
        fill(1);
        assert!(cache.used() > (64 << 20) - (8 << 20), "{}", cache.used());
        cache.note_batch(2_000_000);
        assert!(cache.used() <= (64 << 20) - BATCHES_BESIDE * 2_000_000, "{}", cache.used());
        (0..10).for_each(|_| cache.forget_large_blocks());
        fill(2);
        assert!(cache.used() > (64 << 20) - (8 << 20), "{}", cache.used());
    }

    #[test]
    fn what_is_lent_stays_unused_and_an_eighth_is_kept() {
        let cache = BlockCache::new(8 << 20);
        let fill = || (0..4000).for_each(|i| cache.insert(1, i, block(4000)));
        fill();
        cache.lend(3 << 20);
        assert!((4 << 20..=5 << 20).contains(&cache.used()), "{}", cache.used());
        cache.lend(u64::MAX);
        fill();
        assert!((512 << 10..=1 << 20).contains(&cache.used()), "{}", cache.used());
        cache.lend(0);
        fill();
        assert!(cache.used() > 6 << 20, "{}", cache.used());
    }

    #[test]
    fn capacity_zero_caches_nothing() {
        let cache = BlockCache::new(0);
        cache.insert(1, 0, block(10));
        assert!(cache.get(1, 0).is_none());
        assert_eq!(cache.used(), 0);
    }
}
