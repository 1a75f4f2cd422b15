//! The keys that clients may have cached, and by which clients.
//!
//! The table is bounded: by a number of keys and by their bytes. What no longer fits is chosen at
//! random and given up, and its clients are told that it is no longer valid.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use smallvec::SmallVec;

/// The keys of all clients together take at most this many bytes, roughly.
const MAX_BYTES: usize = 256 << 20;
/// Roughly the memory of a key beside its bytes.
const KEY_BYTES: usize = 128;

/// The clients that have read a key.
pub(in crate::messages) type Clients = SmallVec<[u64; 2]>;

#[derive(Debug)]
struct Readers {
    /// The place of the key in `KeyTable::keys`.
    at: usize,
    clients: Clients,
}

/// Clients by key. They choose the keys, so the hash is seeded.
#[derive(Debug, Default)]
pub(in crate::messages) struct KeyTable {
    readers: HashMap<Arc<[u8]>, Readers, RandomState>,
    keys: Vec<Arc<[u8]>>,
    /// The number of pairs of a key and a client.
    items: usize,
    bytes: usize,
    /// The number of keys that were given up: the source of chance.
    given_up: u64,
}

impl KeyTable {
    pub(in crate::messages) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The number of pairs of a key and a client.
    pub(in crate::messages) fn items(&self) -> usize {
        self.items
    }

    /// Notes that a client has read a key.
    pub(in crate::messages) fn remember(&mut self, key: &[u8], client: u64) {
        if let Some(readers) = self.readers.get_mut(key) {
            if !readers.clients.contains(&client) {
                readers.clients.push(client);
                self.items += 1;
            }
            return;
        }
        let key: Arc<[u8]> = key.into();
        let readers = Readers { at: self.keys.len(), clients: SmallVec::from_elem(client, 1) };
        (self.items, self.bytes) = (self.items + 1, self.bytes + KEY_BYTES + key.len());
        self.keys.push(Arc::clone(&key));
        self.readers.insert(key, readers);
    }

    /// Removes a key. Returns the clients that have read it.
    pub(in crate::messages) fn take(&mut self, key: &[u8]) -> Option<(Arc<[u8]>, Clients)> {
        let (key, Readers { at, clients }) = self.readers.remove_entry(key)?;
        self.keys.swap_remove(at);
        if let Some(moved) = self.keys.get(at).and_then(|moved| self.readers.get_mut(moved)) {
            moved.at = at;
        }
        self.items -= clients.len();
        self.bytes = self.bytes.saturating_sub(KEY_BYTES + key.len());
        Some((key, clients))
    }

    /// Removes one client of a key; false if it was not among them.
    pub(in crate::messages) fn forget(&mut self, key: &[u8], client: u64) -> bool {
        let Some(readers) = self.readers.get_mut(key) else { return false };
        let Some(at) = readers.clients.iter().position(|known| *known == client) else {
            return false;
        };
        if readers.clients.len() == 1 {
            return self.take(key).is_some();
        }
        readers.clients.swap_remove(at);
        self.items -= 1;
        true
    }

    /// Removes a key at random if there are more than `most` of them, or if they take too much
    /// memory. Zero is no limit of their number.
    pub(in crate::messages) fn take_excess(&mut self, most: usize) -> Option<(Arc<[u8]>, Clients)> {
        let too_many = most > 0 && self.keys.len() > most;
        if !too_many && self.bytes <= MAX_BYTES {
            return None;
        }
        self.given_up += 1;
        let chance = self.readers.hasher().hash_one(self.given_up);
        let at = usize::try_from(chance).unwrap_or(0).checked_rem(self.keys.len())?;
        let key = Arc::clone(self.keys.get(at)?);
        self.take(&key)
    }

    /// Forgets everything.
    pub(in crate::messages) fn clear(&mut self) {
        let given_up = self.given_up;
        *self = Self { given_up, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_counts_what_it_holds_and_gives_up_what_is_too_much() {
        let mut table = KeyTable::default();
        for n in 0..1000u64 {
            table.remember(format!("key:{n}").as_bytes(), n % 3);
            table.remember(b"shared", n % 3);
            table.remember(b"shared", n % 3);
        }
        assert_eq!((table.len(), table.items()), (1001, 1003));
        assert!(table.forget(b"shared", 1) && !table.forget(b"shared", 1));
        let (key, clients) = table.take(b"shared").unwrap();
        assert_eq!((&*key, clients.len()), (&b"shared"[..], 2));
        let mut given_up = Vec::new();
        while let Some((key, clients)) = table.take_excess(10) {
            assert_eq!(clients.len(), 1);
            given_up.push(key);
        }
        assert_eq!((table.len(), table.items(), given_up.len()), (10, 10, 990));
        given_up.sort();
        given_up.dedup();
        assert_eq!(given_up.len(), 990);
        assert_eq!(table.bytes, table.keys.iter().map(|key| key.len() + KEY_BYTES).sum::<usize>());
        table.clear();
        assert_eq!((table.len(), table.items(), table.bytes), (0, 0, 0));
    }

    #[test]
    fn long_keys_are_bounded_by_their_bytes() {
        let mut table = KeyTable::default();
        for n in 0..300u32 {
            let mut key = vec![b'k'; 1 << 20];
            key.extend(n.to_le_bytes());
            table.remember(&key, 1);
            while table.take_excess(0).is_some() {}
            assert!(table.bytes <= MAX_BYTES);
        }
        assert!(table.len() > 200);
    }
}
