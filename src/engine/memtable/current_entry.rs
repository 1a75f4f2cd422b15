//! The current entry of a cursor. It is looked up in the arena once, since a walk asks for its key
//! several times before it moves on.
//!
//! Invariant: the pointers lead into an entry of `memtable`. Entries never change or move, and live
//! as long as the memtable, which this owns a share of.

#![expect(unsafe_code, reason = "keeps a pointer to an entry; see the invariant above")]

use std::sync::Arc;

use bytes::Bytes;

use super::arena::Address;
use super::table::Memtable;
use crate::engine::entry::Tag;

/// A memtable and, if there is one, the current entry.
#[derive(Debug)]
pub(super) struct CurrentEntry {
    memtable: Arc<Memtable>,
    entry: Option<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    tag: Tag,
    address: Address,
}

// SAFETY: the pointers lead to immutable bytes owned by the memtable, which may be shared.
unsafe impl Send for CurrentEntry {}
// SAFETY: as above.
unsafe impl Sync for CurrentEntry {}

impl CurrentEntry {
    /// A memtable without a current entry.
    pub(super) fn unpositioned(memtable: Arc<Memtable>) -> Self {
        Self { memtable, entry: None }
    }

    pub(super) fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Makes the entry at `address`, which the memtable handed out, the current one; `None` for
    /// no entry.
    #[inline]
    pub(super) fn move_to(&mut self, address: Option<Address>) {
        self.entry = address.map(|address| {
            let found = self.memtable.entry(address);
            let (key, value) = (found.key(), found.value());
            Entry {
                key: key.as_ptr(),
                key_len: key.len(),
                value: value.as_ptr(),
                value_len: value.len(),
                tag: found.tag(),
                address,
            }
        });
    }

    #[inline]
    pub(super) fn is_valid(&self) -> bool {
        self.entry.is_some()
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        match &self.entry {
            // SAFETY: the invariant above.
            Some(entry) => unsafe { std::slice::from_raw_parts(entry.key, entry.key_len) },
            None => &[],
        }
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        match &self.entry {
            // SAFETY: the invariant above.
            Some(entry) => unsafe { std::slice::from_raw_parts(entry.value, entry.value_len) },
            None => &[],
        }
    }

    #[inline]
    pub(super) fn tag(&self) -> Tag {
        self.entry.map_or(Tag::newest_at(0), |entry| entry.tag)
    }

    /// The value as bytes of its own. What they keep in memory is at most twice their length.
    pub(super) fn value_bytes(&self) -> Bytes {
        let found = self.entry.map(|entry| self.memtable.entry(entry.address));
        found.map_or_else(Bytes::new, |found| found.value_bytes())
    }
}
