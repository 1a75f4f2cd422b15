//! Memory for memtable entries. Entries are appended, never move, and are freed with the whole
//! arena, or with the last pin of their chunk.
//!
//! Large chunks are mapped and unmapped: pages that are never written take no memory, and a freed
//! chunk goes back to the system at once, which `free` does not promise. A large entry has a chunk
//! of its own size, so that a pin of it keeps nothing else.
//!
//! An address has 32 bits: the index of the chunk in the upper 15, and the offset within it, in
//! units of eight bytes, in the lower 17. Addresses grow with every allocation, so comparing two of
//! them tells which entry was written later. Address 0 is never handed out.
//!
//! Threads: one thread allocates at a time (`allocate` takes the guard of the memtable's writer
//! lock as proof); any number read what has been published to them.

#![expect(unsafe_code, reason = "entries are read without locks while later ones are appended")]

use std::alloc::{Layout, alloc, dealloc};
use std::sync::{Arc, OnceLock};

use super::mapped::{MAPPED_FROM, map, unmap};

/// The position of an entry in its arena.
pub(super) type Address = u32;

const OFFSET_BITS: u32 = 17;
const UNIT: usize = 8;
const LARGEST_CHUNK: usize = UNIT << OFFSET_BITS;
const SMALLEST_CHUNK: usize = 4096;
/// Entries of at least this size have a chunk of their own.
const LARGE_ENTRY: usize = LARGEST_CHUNK / 8;
/// A directory of pages leads to the chunks, so that an empty arena costs little.
const PAGE_BITS: u32 = 7;
const PAGES: usize = 1 << (32 - OFFSET_BITS - PAGE_BITS);

/// Memory of entries that were written one after another.
pub(super) struct Chunk {
    memory: *mut u8,
    layout: Layout,
}

/// A chunk, and its address without a detour.
struct Slot {
    memory: *mut u8,
    chunk: Arc<Chunk>,
}

// SAFETY: a chunk is plain memory; the arena controls who may write which part of it.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}
// SAFETY: as above; the pointer is that of the chunk, which the slot owns a share of.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated or mapped in `Chunk::new` with this very size, and freed only here.
        unsafe {
            if is_mapped(self.layout) {
                unmap(self.memory, self.layout.size());
            } else {
                dealloc(self.memory, self.layout);
            }
        }
    }
}

fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_FROM
}

impl Chunk {
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, UNIT).ok()?;
        let memory = match is_mapped(layout) {
            true => map(layout.size())?,
            // SAFETY: the layout's size is at least SMALLEST_CHUNK, so not zero.
            false => unsafe { alloc(layout) },
        };
        (!memory.is_null()).then_some(Self { memory, layout })
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> usize {
        self.layout.size()
    }
}

/// Memory in chunks. The writer calls `allocate`, readers call `at`.
pub(super) struct Arena {
    pages: Box<[OnceLock<Page>]>,
}

type Page = Box<[OnceLock<Slot>]>;

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
    fn slot(&self, index: usize) -> Option<&Slot> {
        self.pages.get(index >> PAGE_BITS)?.get()?.get(index & ((1 << PAGE_BITS) - 1))?.get()
    }

    /// Allocates `bytes` bytes, aligned to eight; `None` when memory or addresses run out.
    pub(super) fn allocate(&self, tail: &mut Tail, bytes: usize) -> Option<(Address, *mut u8)> {
        let rounded = bytes.checked_next_multiple_of(UNIT)?;
        if tail.capacity - tail.used < rounded || rounded >= LARGE_ENTRY {
            self.grow(tail, rounded)?;
        }
        let offset = tail.used;
        tail.used += rounded;
        tail.allocated += rounded;
        let chunk = self.slot(tail.chunk)?;
        let address = u32::try_from((tail.chunk << OFFSET_BITS) | (offset / UNIT)).ok()?;
        // SAFETY: offset + rounded <= capacity, the chunk's size.
        Some((address, unsafe { chunk.memory.add(offset) }))
    }

    /// Begins a new chunk. The rest of the old one stays unused, so that addresses only grow.
    fn grow(&self, tail: &mut Tail, needed: usize) -> Option<()> {
        let index = tail.chunks;
        let usual = if needed >= LARGE_ENTRY { 0 } else { SMALLEST_CHUNK << index.min(8) };
        // The first unit of the first chunk stays unused: address 0 means 'none'.
        let reserved = if index == 0 { UNIT } else { 0 };
        let capacity = usual.min(LARGEST_CHUNK).max(needed.checked_add(reserved)?);
        let page = self.pages.get(index >> PAGE_BITS)?.get_or_init(|| empty_slots(1 << PAGE_BITS));
        let chunk = Arc::new(Chunk::new(capacity)?);
        let slot = Slot { memory: chunk.memory, chunk };
        page.get(index & ((1 << PAGE_BITS) - 1))?.set(slot).ok()?;
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
        match self.slot(index) {
            // SAFETY: the offset was inside the chunk when the address was made.
            Some(slot) => unsafe { slot.memory.add(offset) },
            None => std::ptr::null(),
        }
    }

    /// The chunk of an address that `allocate` returned.
    pub(super) fn chunk(&self, address: Address) -> Option<&Arc<Chunk>> {
        self.slot((address >> OFFSET_BITS) as usize).map(|slot| &slot.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_grow_and_large_entries_fit() {
        let (arena, mut tail) = (Arena::new(), Tail::default());
        let mut last = 0;
        for size in [1, 8, 4096, 100, 3 << 20, 24, 5000, 300 << 10, 200 << 10, 8] {
            let (address, memory) = arena.allocate(&mut tail, size).unwrap();
            assert!(address > last, "address {address} after {last}");
            assert_eq!(arena.at(address), memory.cast_const());
            // SAFETY: `size` bytes were just allocated there.
            unsafe { memory.write_bytes(0xab, size) };
            let alone = arena.chunk(address).unwrap().size() == size;
            assert_eq!(alone, size >= LARGE_ENTRY, "a large entry has a chunk of its size");
            last = address;
        }
    }
}
