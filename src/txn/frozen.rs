//! What a command sees of the rows of strings, kept for an iterator that outlives the command.

use bytes::Bytes;

use crate::encoding::keys::{Prefix, Space, after_prefix};
use crate::engine::Reader;
use crate::error::Result;
use crate::keyspace::trees::DATA;
use crate::txn::overlay::Overlay;
use crate::txn::store::Store;
use crate::txn::tx::{ReadPoint, Tx};

/// A read point with the pending rows of one database.
#[derive(Debug)]
pub(crate) struct FrozenRows {
    reader: Reader,
    now: u64,
    database: u32,
    space: Space,
    /// The pending writes of the data tree, in order.
    pending: Vec<(Vec<u8>, Option<Bytes>)>,
    spilled: Vec<Prefix>,
}

impl FrozenRows {
    /// Keeps what `tx` sees now of its database.
    pub(crate) fn of(tx: &Tx<'_>) -> Self {
        let (lower, space) = (tx.space().to_bytes(), tx.space());
        let upper = after_prefix(&lower);
        let pending = tx.pending_in(DATA, &lower, upper.as_deref());
        Self {
            pending: pending.map(|(key, write)| (key.to_vec(), write.value.clone())).collect(),
            spilled: tx.spilled().to_vec(),
            reader: tx.reader().clone(),
            now: tx.now(),
            database: tx.database(),
            space,
        }
    }

    /// Runs a read that needs no other rows of the data tree than those that begin with `prefix`.
    pub(crate) fn read<T>(
        &self,
        store: &Store,
        prefix: &[u8],
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self { now, database, space, .. } = *self;
        let reader = self.reader.clone();
        let point = ReadPoint { reader, now, database, space, as_of_reader: true };
        let mut tx = Tx::new(store, point, Overlay::default());
        self.spilled.iter().cloned().for_each(|prefix| tx.note_spilled(prefix));
        let first = self.pending.partition_point(|(key, _)| key.as_slice() < prefix);
        let pending = self.pending.get(first..).unwrap_or_default();
        for (key, value) in pending.iter().take_while(|(key, _)| key.starts_with(prefix)) {
            match value {
                Some(value) => tx.put_row(DATA, key, value.clone()),
                None => tx.remove_row(DATA, key),
            }
        }
        work(&mut tx)
    }
}
