//! The entries of a memtable, in an arena.
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
//! Invariant: an entry is complete before its address is handed out. After that no byte of it
//! changes.

#![expect(unsafe_code, reason = "reads entries in place; see the invariant above")]

use super::arena::{Address, Arena, Tail};
use crate::engine::entry::Tag;

const HEADER: usize = 24;

/// The fixed part of an entry.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) next: Address,
    pub(super) hash: u32,
    pub(super) tag: u64,
    pub(super) klen: u32,
    pub(super) vlen: u32,
}

/// One entry, borrowed from its memtable. Only `Entries` creates one, so its slices are known
/// to lie in the arena of those entries.
#[derive(Clone, Copy)]
pub struct MemtableEntry<'a> {
    tag: Tag,
    key: &'a [u8],
    value: &'a [u8],
    entries: &'a Entries,
}

impl<'a> MemtableEntry<'a> {
    /// Sequence number and kind.
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

    /// Whether the entry is one of `entries`.
    pub(super) fn is_of(&self, entries: &Entries) -> bool {
        std::ptr::eq(self.entries, entries)
    }
}

impl std::fmt::Debug for MemtableEntry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("MemtableEntry");
        shown.field("tag", &self.tag).field("key", &self.key).field("value", &self.value).finish()
    }
}

/// The entries of one memtable.
pub(super) struct Entries {
    arena: Arena,
}

impl Entries {
    pub(super) fn new() -> Self {
        Self { arena: Arena::new() }
    }

    /// Writes an entry and returns its address; `None` when memory or addresses run out. The
    /// lengths in `header` must be those of `key` and `value`.
    pub(super) fn push(
        &self,
        tail: &mut Tail,
        header: Header,
        key: &[u8],
        value: &[u8],
    ) -> Option<Address> {
        debug_assert_eq!((header.klen as usize, header.vlen as usize), (key.len(), value.len()));
        let size = HEADER + key.len() + value.len();
        let (address, memory) = self.arena.allocate(tail, size)?;
        // SAFETY: `memory` has `size` bytes at an 8-byte boundary, and no other thread knows of
        // them yet.
        unsafe {
            memory.cast::<Header>().write(header);
            memory.add(HEADER).copy_from_nonoverlapping(key.as_ptr(), key.len());
            memory.add(HEADER + key.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        Some(address)
    }

    /// The header of the entry at an address that [`Entries::push`] returned.
    #[inline]
    pub(super) fn header(&self, address: Address) -> Header {
        // SAFETY: the entry was complete before its address was published (a Release store or a
        // lock), and it lives as long as the arena.
        unsafe { *self.arena.at(address).cast::<Header>() }
    }

    /// The entry at an address that [`Entries::push`] returned.
    #[inline]
    pub(super) fn entry(&self, address: Address) -> MemtableEntry<'_> {
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
        MemtableEntry { tag, key, value, entries: self }
    }
}
