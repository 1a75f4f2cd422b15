//! What commands are about to look for is brought near: in a large memtable each look-up waits for
//! memory, and those of many commands can wait together.
//!
//! Nothing here is seen by anybody: it only makes what follows faster.

use super::{DATA, META, Tx};
use crate::encoding::keys::{Prefix, meta_key, prefix, row_key};
use crate::encoding::meta::{Body, Header, Type};
use crate::engine::hash_key;

impl Tx<'_> {
    /// Commands on these keys follow.
    pub(crate) fn expect_keys<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let hash = |key| hash_key(&meta_key(self.space, key));
        self.reader.bring_near(META, &keys.map(hash).collect::<Vec<u64>>());
    }

    /// Commands follow that look for a member each, of the collection at `key`.
    pub(crate) fn expect_members<'m>(&self, key: &[u8], members: impl Iterator<Item = &'m [u8]>) {
        let Some(prefix) = self.prefix_now(key) else { return };
        let hash = |member| hash_key(&row_key(&prefix, member));
        self.reader.bring_near(DATA, &members.map(hash).collect::<Vec<u64>>());
    }

    /// What the rows of the hash, set or sorted set at `key` begin with, if it has rows.
    fn prefix_now(&self, key: &[u8]) -> Option<Prefix> {
        let record = self.row(META, &meta_key(self.space, key)).ok()??;
        let kind = Header::decode(&record).ok()?.kind;
        if !matches!(kind, Type::Hash | Type::Set | Type::ZSet) {
            return None;
        }
        match Body::decode(kind, &record).ok()? {
            Body::Members { version, .. } => Some(prefix(self.space, key, version)),
            Body::Span { .. } | Body::Packed(_) => None,
        }
    }
}
