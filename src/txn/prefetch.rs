//! Prefetches what commands are about to look up. In a large memtable each lookup waits for memory,
//! and those of many commands can wait together.
//!
//! Prefetching changes no result: it only makes later lookups faster.

use crate::encoding::keys::{Prefix, meta_key, prefix, row_key};
use crate::encoding::meta::{Body, Header, Type};
use crate::keyspace::trees::{DATA, META};
use crate::txn::tx::Tx;

impl Tx<'_> {
    /// Prefetches the records of these keys.
    pub(crate) fn prefetch_keys<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        self.reader().prefetch(META, keys.map(|key| meta_key(self.space(), key)));
    }

    /// Prefetches the rows of these members of the collection at `key`.
    pub(crate) fn prefetch_members<'m>(&self, key: &[u8], members: impl Iterator<Item = &'m [u8]>) {
        let Some(prefix) = self.prefix_now(key) else { return };
        self.reader().prefetch(DATA, members.map(|member| row_key(&prefix, member)));
    }

    /// The prefix of the rows of the hash, set or sorted set at `key`, if it has rows.
    fn prefix_now(&self, key: &[u8]) -> Option<Prefix> {
        let record = self.row(META, &meta_key(self.space(), key)).ok()??;
        let kind = Header::decode(&record).ok()?.kind;
        if !matches!(kind, Type::Hash | Type::Set | Type::ZSet) {
            return None;
        }
        match Body::decode(kind, &record).ok()? {
            Body::Members { version, .. } => Some(prefix(self.space(), key, version)),
            Body::Span { .. } | Body::Packed(_) => None,
        }
    }
}
