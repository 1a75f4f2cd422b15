//! Memory for memtable entries. Entries are appended, never move, and are freed with the whole
//! arena.
//!
//! An address has 32 bits: the index of the chunk in the upper 15, and the offset within it, in
//! units of eight bytes, in the lower 17. Addresses grow with every allocation, so comparing two of
//! them tells which entry was written later. Address 0 is never handed out.
//!
//! Threads: one thread allocates at a time (`allocate` takes the guard of the memtable's writer
//! lock as proof); any number read what has been published to them.

#![expect(unsafe_code, reason = "entries are read without locks while later ones are appended")]

use std::alloc::{Layout, alloc, dealloc};
use std::sync::OnceLock;

/// The position of an entry in its arena.
pub(super) type Address = u32;

const OFFSET_BITS: u32 = 17;
const UNIT: usize = 8;
const LARGEST_CHUNK: usize = UNIT << OFFSET_BITS;
const SMALLEST_CHUNK: usize = 4096;
/// A directory of pages leads to the chunks, so that an empty arena costs little.
const PAGE_BITS: u32 = 7;
const PAGES: usize = 1 << (32 - OFFSET_BITS - PAGE_BITS);

struct Chunk {
    memory: *mut u8,
    layout: Layout,
}

// SAFETY: a chunk is plain memory; the arena controls who may write which part of it.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `Chunk::new` with this very layout and freed only here.
        unsafe { dealloc(self.memory, self.layout) }
    }
}

impl Chunk {
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, UNIT).ok()?;
        // SAFETY: the layout's size is at least SMALLEST_CHUNK, so not zero.
        let memory = unsafe { alloc(layout) };
        (!memory.is_null()).then_some(Self { memory, layout })
    }
}

/// Memory in chunks. The writer calls `allocate`, readers call `at`.
pub(super) struct Arena {
    pages: Box<[OnceLock<Page>]>,
}

type Page = Box<[OnceLock<Chunk>]>;

fn empty_slots<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

/// Where the next allocation goes. The writer lock of the memtable guards it.
#[derive(Default)]
pub(super) struct Tail {
    chunk: usize,
    used: usize,
    capacity: usize,
    chunks: usize,
    allocated: usize,
}

impl Tail {
    /// Bytes handed out so far.
    pub(super) fn allocated(&self) -> usize {
        self.allocated
    }
}

impl Arena {
    pub(super) fn new() -> Self {
        Self { pages: empty_slots(PAGES) }
    }

    #[inline]
    fn chunk(&self, index: usize) -> Option<&Chunk> {
        self.pages.get(index >> PAGE_BITS)?.get()?.get(index & ((1 << PAGE_BITS) - 1))?.get()
    }

    /// Allocates `bytes` bytes, aligned to eight; `None` when memory or addresses run out.
    pub(super) fn allocate(&self, tail: &mut Tail, bytes: usize) -> Option<(Address, *mut u8)> {
        let rounded = bytes.checked_next_multiple_of(UNIT)?;
        if tail.capacity - tail.used < rounded {
            self.grow(tail, rounded)?;
        }
        let offset = tail.used;
        tail.used += rounded;
        tail.allocated += rounded;
        let chunk = self.chunk(tail.chunk)?;
        let address = u32::try_from((tail.chunk << OFFSET_BITS) | (offset / UNIT)).ok()?;
        // SAFETY: offset + rounded <= capacity, the chunk's size.
        Some((address, unsafe { chunk.memory.add(offset) }))
    }

    /// Begins a new chunk. The rest of the old one stays unused, so that addresses only grow.
    fn grow(&self, tail: &mut Tail, needed: usize) -> Option<()> {
        let index = tail.chunks;
        let doubled = SMALLEST_CHUNK << index.min(8);
        // The first unit of the first chunk stays unused: address 0 means 'none'.
        let reserved = if index == 0 { UNIT } else { 0 };
        let capacity = doubled.min(LARGEST_CHUNK).max(needed.checked_add(reserved)?);
        let page = self.pages.get(index >> PAGE_BITS)?.get_or_init(|| empty_slots(1 << PAGE_BITS));
        page.get(index & ((1 << PAGE_BITS) - 1))?.set(Chunk::new(capacity)?).ok()?;
        *tail = Tail {
            chunk: index,
            used: reserved,
            capacity,
            chunks: index + 1,
            allocated: tail.allocated,
        };
        Some(())
    }

    /// The memory at an address that `allocate` returned.
    #[inline]
    pub(super) fn at(&self, address: Address) -> *const u8 {
        let index = (address >> OFFSET_BITS) as usize;
        let offset = (address as usize & ((1 << OFFSET_BITS) - 1)) * UNIT;
        match self.chunk(index) {
            // SAFETY: the offset was inside the chunk when the address was made.
            Some(chunk) => unsafe { chunk.memory.add(offset) },
            None => std::ptr::null(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_grow_and_large_entries_fit() {
        let (arena, mut tail) = (Arena::new(), Tail::default());
        let mut last = 0;
        for size in [1, 8, 4096, 100, 3 << 20, 24, 5000] {
            let (address, memory) = arena.allocate(&mut tail, size).unwrap();
            assert!(address > last, "address {address} after {last}");
            assert_eq!(arena.at(address), memory.cast_const());
            // SAFETY: `size` bytes were just allocated there.
            unsafe { memory.write_bytes(0xab, size) };
            last = address;
        }
    }
}
