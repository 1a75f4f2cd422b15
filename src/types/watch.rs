//! WATCH: keys of which somebody wants to know whether they were changed.
//!
//! As in a transaction, changes are noted as long as a key is watched. Whoever asks holds the
//! stripes of the keys, and goes on to write with them held.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::encoding::keys::{Space, meta_key};
use crate::engine::Sequence;
use crate::error::Result;
use crate::types::Db;
use crate::types::conflicts::{KeyId, Registered};
use crate::types::store::Store;
use crate::types::txn::TouchedKey;
use crate::types::view::View;

/// What a key takes beside its bytes, about.
const EACH_BYTES: usize = 128;

/// The keys that one connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// By a hash of database number and key.
    keys: HashMap<KeyId, Watched>,
    /// As long as there are any.
    registered: Option<Registered>,
    /// Memory that the keys take, about.
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

    /// Memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The keys with their databases, to lock them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.keys.values().map(|watched| (watched.key.database, &*watched.key.key))
    }

    /// Whether one of the keys was changed, or has expired, since it is watched. The caller holds
    /// their stripes.
    pub(crate) fn changed(&self, store: &Store) -> Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let noted = {
            let changes = store.conflicts().look();
            self.keys.values().any(|Watched { key, since }| {
                let id = KeyId::of(&meta_key(key.space, &key.key));
                changes.changed_after(id, *since) || changes.forgot_after(*since)
            })
        };
        if noted {
            return Ok(true);
        }
        let (reader, now) = (store.engine().reader()?, store.times().now());
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
    /// Watches keys of this database from now on; those that are watched already stay as they
    /// are. A snapshot never changes; a transaction finds changes itself.
    pub(crate) fn watch(&self, watches: &mut Watches, keys: &[&[u8]]) -> Result<()> {
        match self.view() {
            View::Live => {}
            View::Snapshot(_) => return Ok(()),
            View::Transaction(_) => return self.exists(keys).map(drop),
        }
        // Before the moment at which the keys are looked at: see `Conflicts`.
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
