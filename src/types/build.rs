//! A collection made anew, of any size, in bounded memory and still at once.
//!
//! Rows of a version that no record names cannot be observed, and compaction takes them away. So
//! RENAME, COPY, MOVE and the commands that store their result write rows as they come, in commits
//! of at most [`SPILL_BYTES`], and the record that names them with the last of them: before that
//! commit nothing of it exists, after it everything. A command that fails or dies in between leaves
//! garbage and no trace. While it runs its version is reserved (`Tx::new_version`), so compactions
//! leave the rows alone, and its stripes are held.
//!
//! What is smaller than a commit is kept aside with the other writes of the [`Tx`], like any write.
//! Rows that were spilled are newer than the moment the `Tx` reads at; it knows their prefix and
//! reads them as they are now: no one else writes them. A transaction that has emptied or swapped
//! databases spills nothing: its rows may be in a space that no database stands for yet, which
//! compactions hold for dead.

use bytes::Bytes;

use crate::encoding::keys::{Prefix, prefix, row_key, score_key};
use crate::encoding::meta::{Body, Header, Type, encode_collection};
use crate::encoding::packed::Packed;
use crate::encoding::wear::Wear;
use crate::engine::{Batch, TreeId, WriteOptions};
use crate::error::Result;
use crate::types::store::Store;
use crate::types::txn::{DATA, SCORE, Tx};

/// Most bytes of rows in a commit of their own; a longer row has one to itself.
const SPILL_BYTES: usize = 1 << 20;
/// What a row takes in a batch beside its key and value, at most.
const FRAME_BYTES: usize = 11;

/// Rows of a version that no record names yet.
pub(crate) struct Build<'s> {
    store: &'s Store,
    version: u64,
    prefix: Prefix,
    rows: Batch,
    may_spill: bool,
    spilled: bool,
}

impl<'s> Tx<'s> {
    /// Begins a collection that will take the place of whatever `key` is.
    pub(crate) fn build(&mut self, key: &[u8]) -> Result<Build<'s>> {
        self.store().limits().check_key(key)?;
        let version = self.new_version();
        let prefix = prefix(self.space(), key, version);
        let (store, may_spill) = (self.store(), self.may_spill());
        Ok(Build { store, version, prefix, rows: Batch::new(), may_spill, spilled: false })
    }

    /// Replaces whatever is at `key` by what was built: `size` members of that type. Without any,
    /// the key ceases to exist. The size, as commands reply it.
    pub(crate) fn store_built(
        &mut self,
        key: &[u8],
        build: Build<'s>,
        kind: Type,
        size: u64,
    ) -> Result<i64> {
        if size > 0 {
            build.finish_members(self, key, Header { kind, expire_ms: 0 }, size)?;
        } else if self.record(key)?.is_some() {
            self.delete_record(key);
        }
        Ok(i64::try_from(size).unwrap_or(i64::MAX))
    }
}

impl<'s> Build<'s> {
    /// What names the rows.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Bytes of the rows in hand.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// Writes a row.
    pub(crate) fn put(&mut self, tree: TreeId, sub_key: &[u8], value: &[u8]) -> Result<()> {
        self.put_row(tree, &row_key(&self.prefix, sub_key), value)
    }

    /// Writes the row of a member, which must not come twice.
    pub(crate) fn put_member(&mut self, member: &[u8], value: &[u8]) -> Result<()> {
        self.store.limits().check_value(member)?;
        self.store.limits().check_value(value)?;
        self.put(DATA, member, value)
    }

    /// Writes both rows of a member of a sorted set, which must not come twice.
    pub(crate) fn put_scored(&mut self, member: &[u8], score: f64) -> Result<()> {
        self.put_member(member, &score.to_bits().to_le_bytes())?;
        self.put_row(SCORE, &score_key(&self.prefix, score, member), b"")
    }

    fn put_row(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let bytes = key.len() + value.len() + FRAME_BYTES;
        let full = !self.rows.is_empty() && self.rows.bytes() + bytes > spill_bytes(self.store);
        if full && self.may_spill {
            self.spill()?;
        }
        self.rows.put(tree, key, value);
        Ok(())
    }

    /// Commits the rows in hand. The command's own commit comes later in the log: it is not
    /// durable before these are.
    fn spill(&mut self) -> Result<()> {
        self.store.engine().commit(&mut self.rows, WriteOptions::default())?;
        self.spilled = true;
        #[cfg(test)]
        self.store.builds().spilled();
        Ok(())
    }

    /// Makes `key` a hash, set or sorted set of the `size` members that were written, once the
    /// transaction is committed.
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
        let body = Body::Members { version: self.version, size, wear: Wear::default() };
        self.finish(tx, key, header, &body)
    }

    /// The members as they are in a record, if they fit into one.
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
        // Rows that are not as many as they should be are damage: it must stay to be seen.
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
        for row in self.rows.operations() {
            let row = row?;
            tx.put_row(row.tree, row.key, Bytes::copy_from_slice(row.value));
        }
        if self.spilled {
            tx.note_spilled(self.prefix);
        }
        tx.put_record(key, encode_collection(header, body))
    }
}

#[cfg(not(test))]
fn spill_bytes(_: &Store) -> usize {
    SPILL_BYTES
}

#[cfg(test)]
fn spill_bytes(store: &Store) -> usize {
    store.builds().spill_bytes()
}

#[cfg(test)]
pub(crate) use watched::Builds;

#[cfg(test)]
mod watched {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::Mutex;

    type Interlude = Box<dyn FnMut(usize) + Send>;

    /// The builds of a store, as a test wants them.
    pub(crate) struct Builds {
        spill_bytes: AtomicUsize,
        spills: AtomicUsize,
        interlude: Mutex<Option<Interlude>>,
    }

    impl Default for Builds {
        fn default() -> Self {
            Self {
                spill_bytes: AtomicUsize::new(super::SPILL_BYTES),
                spills: AtomicUsize::new(0),
                interlude: Mutex::default(),
            }
        }
    }

    impl Builds {
        pub(super) fn spill_bytes(&self) -> usize {
            self.spill_bytes.load(Ordering::Relaxed)
        }

        /// Lets rows be spilled when there are so many bytes of them.
        pub(crate) fn spill_at(&self, bytes: usize) {
            self.spill_bytes.store(bytes, Ordering::Relaxed);
        }

        /// Runs after every spill from now on, with their number so far.
        pub(crate) fn after_spills(&self, interlude: impl FnMut(usize) + Send + 'static) {
            *self.interlude.lock() = Some(Box::new(interlude));
        }

        /// How often rows were spilled.
        pub(crate) fn spills(&self) -> usize {
            self.spills.load(Ordering::Relaxed)
        }

        pub(super) fn spilled(&self) {
            let spills = self.spills.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(interlude) = &mut *self.interlude.lock() {
                interlude(spills);
            }
        }
    }
}

#[cfg(test)]
mod tests;
