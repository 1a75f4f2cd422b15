//! The cache of data blocks, shared by all tables of a store.
//!
//! Keys are (file number, offset). Numbers are never reused, so the blocks of a deleted table
//! need no removal: nothing asks for them again and they age out. Scan-resistant (quick_cache);
//! its shard locks are the only ones on the read path. The capacity is in bytes, may change at
//! any time, and 0 turns caching off.

use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::engine::counter::Counter;
use crate::engine::files::FileNumber;
use crate::engine::sstable::Block;

type Key = (FileNumber, u64);

/// Used to size the cache's directory of recently evicted keys.
const TYPICAL_BLOCK: u64 = 4096;

#[derive(Clone, Copy, Debug)]
struct Bytes;

impl Weighter<Key, Block> for Bytes {
    fn weight(&self, _key: &Key, block: &Block) -> u64 {
        block.memory() as u64
    }
}

/// Data blocks in memory, within a capacity in bytes.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Cache<Key, Block, Bytes>,
    capacity: AtomicU64,
    hits: Counter,
    misses: Counter,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes; 0 caches nothing.
    pub fn new(capacity: u64) -> Self {
        let items = (capacity / TYPICAL_BLOCK).clamp(1 << 10, 1 << 22);
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        Self {
            blocks: Cache::with_weighter(items, capacity, Bytes),
            capacity: AtomicU64::new(capacity),
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

    /// Caches a block that has been checked. One too large for its share is not kept.
    pub fn insert(&self, number: FileNumber, offset: u64, block: Block) {
        if self.capacity() > 0 {
            self.blocks.insert((number, offset), block);
        }
    }

    /// Bytes the cache may hold.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the capacity; evicts at once what no longer fits.
    pub fn set_capacity(&self, capacity: u64) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.blocks.set_capacity(capacity);
    }

    /// Bytes held.
    pub fn used(&self) -> u64 {
        self.blocks.weight()
    }

    /// Look-ups that found their block.
    pub fn hits(&self) -> u64 {
        self.hits.sum()
    }

    /// Look-ups that did not.
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
    fn capacity_zero_caches_nothing() {
        let cache = BlockCache::new(0);
        cache.insert(1, 0, block(10));
        assert!(cache.get(1, 0).is_none());
        assert_eq!(cache.used(), 0);
    }
}
