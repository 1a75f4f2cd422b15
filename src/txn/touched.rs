//! The keys that a transaction has read or written by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::encoding::keys::{Space, meta_key};
use crate::txn::conflicts::KeyId;

/// Roughly the memory that a key takes beside its bytes.
const KEY_BYTES: usize = 128;

/// The keys that a transaction has read or written.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    keys: HashMap<KeyId, TouchedKey>,
    bytes: usize,
}

/// A key in the state in which the transaction first touched it.
#[derive(Clone, Debug)]
pub(crate) struct TouchedKey {
    pub(crate) database: u32,
    /// The space of the database at that time.
    pub(crate) space: Space,
    pub(crate) key: Box<[u8]>,
    /// The expiry of the record that was read; `None` if there was no record, or none was read.
    pub(crate) expire_ms: Option<u64>,
    pub(crate) written: bool,
}

impl Touched {
    /// Tracks a read of a key's record; `seen` is its expiry.
    pub(super) fn read(&mut self, database: u32, space: Space, key: &[u8], seen: Option<u64>) {
        self.touch(database, space, key, seen);
    }

    /// Tracks a write of a key's record.
    pub(super) fn write(&mut self, database: u32, space: Space, key: &[u8]) {
        self.touch(database, space, key, None).written = true;
    }

    fn touch(
        &mut self,
        database: u32,
        space: Space,
        key: &[u8],
        expire_ms: Option<u64>,
    ) -> &mut TouchedKey {
        match self.keys.entry(KeyId::of(&meta_key(space, key))) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.bytes += KEY_BYTES + key.len();
                let key = key.into();
                entry.insert(TouchedKey { database, space, key, expire_ms, written: false })
            }
        }
    }

    /// The tracked keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (KeyId, &TouchedKey)> + Clone {
        self.keys.iter().map(|(id, key)| (*id, key))
    }

    /// Roughly the bytes that the keys take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
