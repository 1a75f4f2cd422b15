//! The entries of a memtable, in an arena.
//!
//! ```text
//! entry, at an 8-byte boundary:
//!   0  next   u32   newest entry of the next key of the same bucket, 0 at the end; atomic
//!   4  hash   u32   lower half of the key's hash
//!   8  tag    u64   sequence << 8 | kind
//!  16  klen   u32   length of the key; the top bit is set if an older version follows the header
//!  20  vlen   u32
//!  24  older  u32   the version of the same key before this one        only with the top bit
//!  28  jump   u32   an older version, see below                        only with the top bit
//!  32  length u32   how many versions older that one is                only with the top bit
//!   .  key, value
//! ```
//! Invariant: an entry is complete before its address is handed out. After that no byte of it
//! changes except `next`, which leads to a newer version of the same key later on.
//!
//! The versions of a key form a list with jump pointers in skew-binary numbers: from any version, a
//! version `n` further is found in `O(log n)` steps. A first version, which has no pointers, jumps
//! to itself. A new version on top of `v` jumps to `jump(jump(v))` if the jumps of `v` and of
//! `jump(v)` are equally long, and otherwise to `v`.

#![expect(unsafe_code, reason = "reads entries in place; see the invariant above")]

use std::sync::Arc;

use super::arena::{Address, Arena, Chunk, Tail};
use crate::engine::entry::{Sequence, Tag};
use crate::sync::Witness;
use crate::sync::atomic::AtomicU32;

const HEADER: usize = size_of::<Header>();
const VERSIONS: usize = size_of::<OlderVersions>();
/// The bit of `klen` that tells that an older version follows the header.
const HAS_OLDER: u32 = 1 << 31;

/// The longest key that an entry can hold.
pub(super) const MAX_KEY_BYTES: usize = (HAS_OLDER - 1) as usize;

/// The fixed part of an entry.
#[repr(C)]
struct Header {
    next: AtomicU32,
    hash: u32,
    tag: u64,
    klen: u32,
    vlen: u32,
    /// Of the whole entry.
    witness: Witness,
}

/// The part that only an entry with an older version has.
#[repr(C)]
#[derive(Clone, Copy)]
struct OlderVersions {
    older: Address,
    jump: Address,
    jump_length: u32,
}

/// An entry to be written.
pub(super) struct NewEntry<'a> {
    /// The next key of the bucket.
    pub(super) next: Address,
    /// The version of the same key before this one.
    pub(super) older: Option<Address>,
    pub(super) hash: u32,
    pub(super) tag: Tag,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// One entry, borrowed from its memtable. Only `Entries` creates one, so its slices are known
/// to lie in the arena of those entries.
#[derive(Clone, Copy)]
pub struct MemtableEntry<'a> {
    tag: Tag,
    key: &'a [u8],
    value: &'a [u8],
    entries: &'a Entries,
    address: Address,
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

    /// The chunk of memory that the entry is in.
    pub(super) fn chunk(&self) -> Option<&'a Arc<Chunk>> {
        self.entries.arena.chunk(self.address)
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

    /// Writes an entry and returns its address; `None` when memory or addresses run out, or the key
    /// or value is too long.
    pub(super) fn push(&self, tail: &mut Tail, entry: &NewEntry<'_>) -> Option<Address> {
        let (key, value) = (entry.key, entry.value);
        let klen = u32::try_from(key.len()).ok().filter(|klen| *klen < HAS_OLDER)?;
        let vlen = u32::try_from(value.len()).ok()?;
        let versions = entry.older.map(|older| self.versions_above(older));
        let (flag, fixed) =
            if versions.is_some() { (HAS_OLDER, HEADER + VERSIONS) } else { (0, HEADER) };
        let header = Header {
            next: AtomicU32::new(entry.next),
            hash: entry.hash,
            tag: entry.tag.raw(),
            klen: klen | flag,
            vlen,
            witness: Witness::new(),
        };
        let (address, memory) = self.arena.allocate(tail, fixed + key.len() + value.len())?;
        // SAFETY: `memory` has as many bytes as the parts written here have together, at an 8-byte
        // boundary, and no other thread knows of them yet.
        unsafe {
            memory.cast::<Header>().write(header);
            if let Some(versions) = versions {
                memory.add(HEADER).cast::<OlderVersions>().write(versions);
            }
            memory.add(fixed).copy_from_nonoverlapping(key.as_ptr(), key.len());
            memory.add(fixed + key.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
            (*memory.cast::<Header>()).witness.wrote();
        }
        Some(address)
    }

    #[inline]
    fn header(&self, address: Address) -> &Header {
        // SAFETY: the entry was complete before its address was published (a Release store or a
        // lock), and it lives as long as the arena. Only `next` changes, which is atomic.
        let header = unsafe { &*self.arena.at(address).cast::<Header>() };
        header.witness.reads();
        header
    }

    /// The pointers to older versions; `None` if the entry is the first version of its key.
    #[inline]
    fn versions(&self, address: Address) -> Option<OlderVersions> {
        let has_older = self.header(address).klen & HAS_OLDER != 0;
        // SAFETY: as in `header`; an entry with this bit has these fields after its header.
        has_older.then(|| unsafe { *self.arena.at(address).add(HEADER).cast::<OlderVersions>() })
    }

    /// The pointers of a new version on top of `older`.
    fn versions_above(&self, older: Address) -> OlderVersions {
        let jump_of = |address| match self.versions(address) {
            Some(versions) => (versions.jump, versions.jump_length),
            None => (address, 0),
        };
        let (jump, length) = jump_of(older);
        let (second_jump, second_length) = jump_of(jump);
        match length == second_length {
            true => {
                OlderVersions { older, jump: second_jump, jump_length: length + second_length + 1 }
            }
            false => OlderVersions { older, jump: older, jump_length: 1 },
        }
    }

    /// The link to the next key of the bucket of an entry.
    #[inline]
    pub(super) fn next(&self, address: Address) -> &AtomicU32 {
        &self.header(address).next
    }

    /// The entry at `address`, if the lower half of its hash is `hash` and its key is `key`, and
    /// otherwise the link to the next key of the bucket.
    #[inline]
    pub(super) fn entry_of(
        &self,
        address: Address,
        hash: u32,
        key: &[u8],
    ) -> Result<MemtableEntry<'_>, &AtomicU32> {
        let header = self.header(address);
        if header.hash == hash {
            let found = self.entry(address);
            if found.key == key {
                return Ok(found);
            }
        }
        Err(&header.next)
    }

    /// The lower half of the hash of an entry's key.
    #[inline]
    pub(super) fn hash(&self, address: Address) -> u32 {
        self.header(address).hash
    }

    /// The newest version at or before `sequence` among that at `address` and those older.
    pub(super) fn version_at(
        &self,
        mut address: Address,
        sequence: Sequence,
    ) -> Option<MemtableEntry<'_>> {
        while self.is_later(address, sequence) {
            address = self.step_to(address, sequence)?;
        }
        Some(self.entry(address))
    }

    #[inline]
    fn is_later(&self, address: Address, sequence: Sequence) -> bool {
        self.header(address).tag > Tag::newest_at(sequence).raw()
    }

    /// The next version on the way from a later one to `sequence`.
    fn step_to(&self, address: Address, sequence: Sequence) -> Option<Address> {
        let versions = self.versions(address)?;
        let jumps = self.is_later(versions.jump, sequence);
        Some(if jumps { versions.jump } else { versions.older })
    }

    /// The key, the tag and the lower half of the key's hash of an entry.
    #[inline]
    pub(super) fn place(&self, address: Address) -> (&[u8], Tag, u32) {
        let memory = self.arena.at(address);
        // SAFETY: as in `header` and `entry`.
        let (header, key) = unsafe {
            let header = &*memory.cast::<Header>();
            let fixed = if header.klen & HAS_OLDER == 0 { HEADER } else { HEADER + VERSIONS };
            let klen = (header.klen & !HAS_OLDER) as usize;
            (header, std::slice::from_raw_parts(memory.add(fixed), klen))
        };
        header.witness.reads();
        (key, stored_tag(header.tag), header.hash)
    }

    /// The entry at an address that [`Entries::push`] returned.
    #[inline]
    pub(super) fn entry(&self, address: Address) -> MemtableEntry<'_> {
        let header = self.header(address);
        let (klen, vlen) = ((header.klen & !HAS_OLDER) as usize, header.vlen as usize);
        let fixed = if header.klen & HAS_OLDER == 0 { HEADER } else { HEADER + VERSIONS };
        // SAFETY: as in `header`; key and value follow the fixed part within the same allocation.
        let (key, value) = unsafe {
            let data = self.arena.at(address).add(fixed);
            (
                std::slice::from_raw_parts(data, klen),
                std::slice::from_raw_parts(data.add(klen), vlen),
            )
        };
        let tag = stored_tag(header.tag);
        MemtableEntry { tag, key, value, entries: self, address }
    }
}

/// The tag that an entry stores. Only tags made by `Tag::new` are ever stored.
#[inline]
fn stored_tag(raw: u64) -> Tag {
    Tag::from_raw(raw).unwrap_or(Tag::newest_at(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::EntryKind;

    #[test]
    fn the_way_to_an_old_version_is_logarithmic() {
        let (entries, mut tail) = (Entries::new(), Tail::default());
        let mut newest = None;
        let versions = if cfg!(miri) { 100 } else { 200_000 };
        for sequence in 1..=versions {
            let tag = Tag::new(sequence, EntryKind::Put);
            let entry = NewEntry { next: 0, older: newest, hash: 0, tag, key: b"k", value: b"" };
            newest = entries.push(&mut tail, &entry);
        }
        let newest = newest.unwrap();
        for sequence in (0..=versions).step_by(97) {
            let (mut at, mut steps) = (Some(newest), 0);
            while let Some(address) = at.filter(|at| entries.is_later(*at, sequence)) {
                (at, steps) = (entries.step_to(address, sequence), steps + 1);
            }
            assert_eq!(at.map_or(0, |at| entries.entry(at).tag().sequence()), sequence);
            assert!(steps <= 60, "{steps} steps to {sequence}");
        }
    }
}
