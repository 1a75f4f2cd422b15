//! WATCH: whether keys have changed since they were watched.
//!
//! Changes are noted as long as a key is watched. Whoever asks holds the stripes of the keys, and
//! writes with them held.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::encoding::keys::{Space, meta_key};
use crate::engine::Sequence;
use crate::error::Result;
use crate::txn::conflicts::{ConflictObserver, KeyId};
use crate::txn::db::Db;
use crate::txn::store::Store;
use crate::txn::touched::TouchedKey;
use crate::txn::view::View;

/// Roughly the memory that a key takes beside its bytes.
const EACH_BYTES: usize = 128;

/// The keys that one connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// The keys, by a hash of database number and key.
    keys: HashMap<KeyId, Watched>,
    /// Keeps changes noted while there are any keys.
    registered: Option<ConflictObserver>,
    /// Roughly the memory that the keys take.
    bytes: usize,
}

#[derive(Debug)]
struct Watched {
    key: TouchedKey,
    since: Sequence,
}

impl Watches {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Roughly the memory that the keys take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The keys with their databases, for locking them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.keys.values().map(|watched| (watched.key.database, &*watched.key.key))
    }

    /// Whether one of the keys has changed or expired since it was watched. The caller holds their
    /// stripes.
    pub(crate) fn changed(&self, store: &Store) -> Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let noted = {
            let changes = store.conflicts().changes();
            self.keys.values().any(|Watched { key, since }| {
                let id = KeyId::of(&meta_key(key.space, &key.key));
                changes.changed_after(id, *since) || changes.forgot_after(*since)
            })
        };
        if noted {
            return Ok(true);
        }
        let (reader, now) = (store.engine().reader()?, store.clock().now());
        for Watched { key, since } in self.keys.values() {
            let moved = store.has_moved(key);
            if store.is_lost(key, &reader, now)?
                || (moved && store.differs_elsewhere(key, *since, &reader, now)?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Db {
    /// Watches keys of this database from now on. Keys that are watched already keep their state.
    /// On a snapshot there is nothing to watch; a transaction tracks the keys itself.
    pub(crate) fn watch(&self, watches: &mut Watches, keys: &[&[u8]]) -> Result<()> {
        match self.view() {
            View::Live => {}
            View::Snapshot(_) => return Ok(()),
            View::Transaction(_) => return self.exists(keys).map(drop),
        }
        // Before the keys are read: see `Conflicts`.
        let (store, engine) = (self.store(), self.store().engine());
        let registered = || store.conflicts().register(engine.sequence());
        watches.registered.get_or_insert_with(registered);
        self.read(|tx| {
            for key in keys {
                let expire_ms = tx.record(key)?.map(|record| record.header.expire_ms);
                let watched = Watched {
                    key: TouchedKey {
                        database: tx.database(),
                        space: tx.space(),
                        key: (*key).into(),
                        expire_ms,
                        written: false,
                    },
                    since: tx.sequence(),
                };
                let by_number = meta_key(Space::from_id(tx.database()), key);
                if let Entry::Vacant(place) = watches.keys.entry(KeyId::of(&by_number)) {
                    place.insert(watched);
                    watches.bytes += key.len() + EACH_BYTES;
                }
            }
            Ok(())
        })
    }
}
