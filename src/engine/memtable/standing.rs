//! The entry that a cursor stands on, found in the arena once: a walk asks for its key several times
//! before it moves on.
//!
//! Invariant: the pointers are into an entry of `memtable`. Entries never change or move, and live as
//! long as the memtable, which this owns a share of.

#![expect(unsafe_code, reason = "keeps a pointer to an entry; see the invariant above")]

use std::sync::Arc;

use bytes::Bytes;

use super::arena::Address;
use super::entries::Memtable;
use crate::engine::entry::Tag;

/// A memtable, and an entry of it or none.
#[derive(Debug)]
pub(super) struct Standing {
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

// SAFETY: what the pointers lead to is immutable and owned by the memtable, which may be shared.
unsafe impl Send for Standing {}
// SAFETY: as above.
unsafe impl Sync for Standing {}

impl Standing {
    /// On no entry yet.
    pub(super) fn nowhere(memtable: Arc<Memtable>) -> Self {
        Self { memtable, entry: None }
    }

    pub(super) fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Stands on the entry at an address that the memtable handed out, or on none.
    #[inline]
    pub(super) fn stand_on(&mut self, address: Option<Address>) {
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
    pub(super) fn is_somewhere(&self) -> bool {
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

    /// See [`Memtable::value_bytes`].
    pub(super) fn value_bytes(&self) -> Bytes {
        let found = self.entry.map(|entry| self.memtable.entry(entry.address));
        found.map_or_else(Bytes::new, |found| self.memtable.value_bytes(&found))
    }
}
