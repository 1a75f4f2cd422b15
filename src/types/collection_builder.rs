//! Builds a collection of any size in bounded memory and replaces a key by it atomically.
//!
//! Nobody can see rows of a version that no record names, and compaction removes them. So RENAME,
//! COPY, MOVE and the commands that store their result write rows as they come, in commits of at
//! most [`SPILL_BYTES`], and the record that names them with the last rows: before that commit
//! nothing of the collection exists, after it everything. A command that fails in between leaves
//! garbage, but no visible trace. While it runs, its version is reserved (`Tx::new_version`), so
//! compactions keep the rows, and its stripes are held. A string that comes in parts is built without
//! locks, before its command runs: see `string::staged`.
//!
//! A collection smaller than one commit stays pending with the other writes of the [`Tx`]. Spilled
//! rows are newer than the read point of the `Tx`; it knows their prefix and reads their latest
//! state: no one else writes them. A transaction that has emptied or swapped databases spills
//! nothing: its rows may be in a space that no database maps to yet, which compactions take for
//! dead.

#[cfg(feature = "server")]
mod resting;

use bytes::Bytes;

use crate::encoding::keys::{Prefix, prefix, row_key, score_key};
use crate::encoding::meta::{Body, Header, Type, encode_collection};
use crate::encoding::packed::Packed;
use crate::encoding::tombstones::TombstoneStats;
use crate::engine::{Batch, EntryKind, TreeId, WriteOptions};
use crate::error::Result;
use crate::keyspace::trees::{DATA, SCORE};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::store::Store;
#[cfg(feature = "server")]
pub(crate) use resting::RestingBuild;

/// The most bytes of rows in one spill; a longer row has one to itself.
const SPILL_BYTES: usize = 1 << 20;
/// The most bytes that a row takes in a batch beside its key and value.
const FRAME_BYTES: usize = 11;

/// The rows of a version that no record names yet.
pub(crate) struct CollectionBuilder<'s> {
    store: &'s Store,
    version: u64,
    prefix: Prefix,
    /// Whether rows of hashes, sets and sorted sets are counted.
    is_counted: bool,
    rows: Batch,
    may_spill: bool,
    spilled: bool,
}

impl<'s> Tx<'s> {
    /// Begins a collection that will replace whatever `key` holds.
    pub(crate) fn build_collection(&mut self, key: &[u8]) -> Result<CollectionBuilder<'s>> {
        self.store().limits().check_key(key)?;
        let version = self.new_version();
        let prefix = prefix(self.space(), key, version);
        let (store, may_spill) = (self.store(), self.may_spill());
        Ok(CollectionBuilder {
            store,
            version,
            prefix,
            is_counted: self.is_counted(version),
            rows: Batch::new(),
            may_spill,
            spilled: false,
        })
    }

    /// Replaces whatever `key` holds by what was built: `size` members of that type. Without
    /// members the key is deleted. Returns the size for the reply.
    pub(crate) fn store_built(
        &mut self,
        name: &'static str,
        key: &[u8],
        build: CollectionBuilder<'s>,
        kind: Type,
        size: u64,
    ) -> Result<i64> {
        if size > 0 {
            self.meet(key)?;
            build.finish_members(self, key, Header { kind, expire_ms: 0 }, size)?;
            let class = if kind == Type::Set { Classes::SET } else { Classes::ZSET };
            self.notify(class, name, key);
        } else if self.record(key)?.is_some() {
            self.delete_record(key);
            self.notify(Classes::GENERIC, "del", key);
        }
        Ok(i64::try_from(size).unwrap_or(i64::MAX))
    }
}

impl<'s> CollectionBuilder<'s> {
    /// The version of the rows.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The bytes of the rows that are not spilled.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// Writes a row that is not counted: an element of a list, or a chunk of a string.
    pub(crate) fn put_plain(&mut self, index: &[u8], value: &[u8]) -> Result<()> {
        let row = row_key(&self.prefix, index);
        self.make_room(&row, value)?;
        self.rows.put(DATA, &row, value);
        Ok(())
    }

    /// Writes a row of a hash, set or sorted set. Each row may come only once: it is counted.
    pub(crate) fn put(&mut self, tree: TreeId, sub_key: &[u8], value: &[u8]) -> Result<()> {
        self.put_row(tree, &row_key(&self.prefix, sub_key), value)
    }

    /// Writes the row of a member. Each member may come only once.
    pub(crate) fn put_member(&mut self, member: &[u8], value: &[u8]) -> Result<()> {
        self.store.limits().check_value(member)?;
        self.store.limits().check_value(value)?;
        self.put(DATA, member, value)
    }

    /// Writes both rows of a member of a sorted set. Each member may come only once.
    pub(crate) fn put_scored(&mut self, member: &[u8], score: f64) -> Result<()> {
        self.put_member(member, &score.to_bits().to_le_bytes())?;
        self.put_row(SCORE, &score_key(&self.prefix, score, member), b"")
    }

    fn put_row(&mut self, tree: TreeId, row: &[u8], value: &[u8]) -> Result<()> {
        self.make_room(row, value)?;
        match self.is_counted {
            true => self.rows.put_absent(tree, row, value),
            false => self.rows.put(tree, row, value),
        }
        Ok(())
    }

    /// Commits the rows so far if another one does not fit beside them.
    fn make_room(&mut self, row: &[u8], value: &[u8]) -> Result<()> {
        let bytes = row.len() + value.len() + FRAME_BYTES;
        let full = !self.rows.is_empty() && self.rows.bytes() + bytes > spill_bytes(self.store);
        if full && self.may_spill {
            self.spill()?;
        }
        Ok(())
    }

    /// Commits the rows so far. The command's own commit comes later in the log: it is not durable
    /// before these are.
    fn spill(&mut self) -> Result<()> {
        self.store.engine().commit(&mut self.rows, WriteOptions::default())?;
        self.spilled = true;
        #[cfg(test)]
        self.store.spills().spilled();
        Ok(())
    }

    /// Makes `key` a hash, set or sorted set of the `size` members written, once the transaction is
    /// committed.
    pub(crate) fn finish_members(
        self,
        tx: &mut Tx<'s>,
        key: &[u8],
        header: Header,
        size: u64,
    ) -> Result<()> {
        if let Some(packed) = self.packed(size)? {
            return tx.put_record(key, encode_collection(header, &Body::Packed(packed)));
        }
        let body =
            Body::Members { version: self.version, size, tombstones: TombstoneStats::default() };
        self.finish(tx, key, header, &body)
    }

    /// The members in packed form, if they fit into a record.
    fn packed(&self, size: u64) -> Result<Option<Packed>> {
        let packing = self.store.packing();
        if self.spilled || size > packing.members {
            return Ok(None);
        }
        let mut packed = Packed::default();
        for row in self.rows.operations() {
            let row = row?;
            let member = row.key.get(self.prefix.len()..).unwrap_or_default();
            let fits = row.tree != DATA
                || packed.put(member, row.value, packing.bytes).is_ok_and(|fits| fits);
            if !fits {
                return Ok(None);
            }
        }
        // A wrong number of rows is damage, which must stay visible.
        Ok(Some(packed).filter(|packed| packed.size() == size))
    }

    /// Makes `key` the collection that was built, once the transaction is committed.
    pub(crate) fn finish(
        self,
        tx: &mut Tx<'s>,
        key: &[u8],
        header: Header,
        body: &Body,
    ) -> Result<()> {
        self.finish_rows(tx)?;
        tx.put_record(key, encode_collection(header, body))
    }

    /// Leaves the rows to the transaction. A record that it writes has to name them.
    pub(crate) fn finish_rows(self, tx: &mut Tx<'s>) -> Result<()> {
        for row in self.rows.operations() {
            let row = row?;
            let value = Bytes::copy_from_slice(row.value);
            match row.kind {
                EntryKind::PutAbsent => tx.put_counted(row.tree, row.key, value, false),
                _ => tx.put_row(row.tree, row.key, value),
            }
        }
        if self.spilled {
            tx.note_spilled(self.prefix);
        }
        Ok(())
    }
}

#[cfg(not(test))]
fn spill_bytes(_: &Store) -> usize {
    SPILL_BYTES
}

#[cfg(test)]
fn spill_bytes(store: &Store) -> usize {
    store.spills().threshold().unwrap_or(SPILL_BYTES)
}

#[cfg(test)]
mod tests;
