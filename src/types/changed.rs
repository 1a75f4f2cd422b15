//! Whether a key is still what somebody saw: what the table of changes does not tell.
//!
//! That a key has expired, and was taken away for it, is noted nowhere; and an emptied or swapped
//! database changes what its number stands for, not the keys.

use crate::encoding::keys::meta_key;
use crate::encoding::meta::Header;
use crate::engine::{Reader, Sequence};
use crate::error::Result;
use crate::types::conflicts::KeyId;
use crate::types::store::Store;
use crate::types::txn::{META, TouchedKey};

impl Store {
    /// Whether a key with an expiry that was there is no more.
    pub(super) fn is_lost(&self, key: &TouchedKey, reader: &Reader, now: u64) -> Result<bool> {
        match key.expire_ms {
            Some(expire_ms) if expire_ms != 0 => {
                Ok(!is_alive(reader, &meta_key(key.space, &key.key), now)?)
            }
            _ => Ok(false),
        }
    }

    /// Whether the key's database stands for another space by now.
    pub(super) fn has_moved(&self, key: &TouchedKey) -> bool {
        self.spaces().of(key.database).ok() != Some(key.space)
    }

    /// For a key whose database stands for another space by now: whether that makes a difference.
    /// The caller holds its stripe in the other space.
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
        let changed = self.conflicts().look().changed_after(KeyId::of(&there), since);
        Ok(changed || is_alive(reader, &there, now)?)
    }
}

/// Whether the record with this key exists now.
fn is_alive(reader: &Reader, meta_key: &[u8], now: u64) -> Result<bool> {
    let header = reader.get(META, meta_key)?.and_then(|record| Header::decode(&record).ok());
    Ok(header.is_some_and(|header| !header.expired(now)))
}
