//! The keys that a transaction has read or written, by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::encoding::keys::{Space, meta_key};
use crate::types::conflicts::KeyId;

/// What a key takes in memory beside its bytes, about.
const KEY_BYTES: usize = 128;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    keys: HashMap<KeyId, TouchedKey>,
    bytes: usize,
}

/// A key as it was when it was first touched.
#[derive(Clone, Debug)]
pub(crate) struct TouchedKey {
    pub(crate) database: u32,
    /// What the database stood for.
    pub(crate) space: Space,
    pub(crate) key: Box<[u8]>,
    /// When the record that was seen expires; `None` if none was seen, or nobody looked.
    pub(crate) expire_ms: Option<u64>,
    pub(crate) written: bool,
}

impl Touched {
    /// Somebody has looked at the record of a key.
    pub(super) fn read(&mut self, database: u32, space: Space, key: &[u8], seen: Option<u64>) {
        self.touch(database, space, key, seen);
    }

    /// Somebody has written the record of a key.
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

    /// The keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (KeyId, &TouchedKey)> + Clone {
        self.keys.iter().map(|(id, key)| (*id, key))
    }

    /// Bytes they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
