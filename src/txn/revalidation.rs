//! Whether a key is still what a transaction or watch saw, as far as `conflicts` cannot tell.
//!
//! The table of changes does not note that a key has expired and was deleted for it. And an emptied
//! or swapped database changes what its number means, not its keys.

use crate::encoding::keys::meta_key;
use crate::encoding::meta::Header;
use crate::engine::{Reader, Sequence};
use crate::error::Result;
use crate::keyspace::trees::META;
use crate::txn::conflicts::KeyId;
use crate::txn::store::Store;
use crate::txn::touched::TouchedKey;

impl Store {
    /// Whether a key that had an expiry is gone.
    pub(super) fn is_lost(&self, key: &TouchedKey, reader: &Reader, now: u64) -> Result<bool> {
        match key.expire_ms {
            Some(expire_ms) if expire_ms != 0 => {
                Ok(!is_alive(reader, &meta_key(key.space, &key.key), now)?)
            }
            _ => Ok(false),
        }
    }

    /// Whether the key's database number means another space now.
    pub(super) fn has_moved(&self, key: &TouchedKey) -> bool {
        self.spaces().of(key.database).ok() != Some(key.space)
    }

    /// Whether it makes a difference for the key that its database number means another space now.
    /// The caller holds the key's stripe in that space.
    pub(super) fn differs_elsewhere(
        &self,
        key: &TouchedKey,
        since: Sequence,
        reader: &Reader,
        now: u64,
    ) -> Result<bool> {
        if key.written || key.expire_ms.is_some() {
            return Ok(true);
        }
        let there = meta_key(self.spaces().of(key.database)?, &key.key);
        let changed = self.conflicts().changes().changed_after(KeyId::of(&there), since);
        Ok(changed || is_alive(reader, &there, now)?)
    }
}

/// Whether this record exists and has not expired.
fn is_alive(reader: &Reader, meta_key: &[u8], now: u64) -> Result<bool> {
    let header = reader.get(META, meta_key)?.and_then(|record| Header::decode(&record).ok());
    Ok(header.is_some_and(|header| !header.expired(now)))
}
