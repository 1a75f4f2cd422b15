//! Pending writes: what a command, a transaction or EXEC has written and nobody else sees yet.
//!
//! An overlay outlives the `Tx` that fills it: a transaction lends it to one command after another.
//! A command that fails leaves no trace: while a savepoint is set, every write notes what it
//! replaced, and a rollback to the savepoint restores that.

use std::cell::{Ref, RefCell};

use bytes::Bytes;

use crate::encoding::keys::{Prefix, Space, meta_key, split_row_key};
use crate::encoding::meta::Header;
use crate::engine::{Batch, ReservedNumber, TreeId};
use crate::keyspace::trees::{DATA, META, SCORE};
use crate::txn::outgoing::{ExpiredKey, Origin, Outbox, Outgoing};
use crate::txn::pending_write::PendingWrite;
use crate::txn::touched::Touched;
use crate::txn::write_filter::WriteFilter;
use crate::txn::writes::Writes;

/// The pending writes of a command or transaction.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// The writes by tree; `None` for a tree that nothing was written to. A read drops its overlay
    /// unused, and dropping an empty map is not free.
    writes: [Option<Writes>; 3],
    /// Tells which keys each tree's writes may hold.
    filters: [WriteFilter; 3],
    /// Versions of collections made here. Compactions keep their rows until the record that names
    /// them is visible.
    pub(super) building: Vec<ReservedNumber>,
    /// Prefixes of rows of such versions that were written to the store already: see
    /// `collection_builder`.
    pub(super) spilled: Vec<Prefix>,
    /// Whether the set of keys or an expiry may change: something else was written to the meta tree
    /// than a record that replaces one with the same expiry.
    changes_keys: bool,
    /// Whether the current command, or one before it, frees space.
    pub(super) frees_space: bool,
    /// Whether a command has written without freeing space.
    pub(super) takes_space: bool,
    /// Databases that these writes empty or swap, in order. Others see it after the commit.
    pub(super) assignments: Vec<(u32, Space)>,
    /// Spaces from this id on were first used here: nobody else can change a key in them.
    pub(super) own_spaces_from: u32,
    /// What is said to others after the commit.
    outbox: RefCell<Option<Box<Outbox>>>,
    /// The keys read and written, if the transaction tracks them.
    pub(super) touched: Option<Box<RefCell<Touched>>>,
    /// What was replaced since the first savepoint.
    undo: Vec<UndoEntry>,
    /// The keys of the undo entries, one after the other.
    undo_keys: Vec<u8>,
    savepoints: u32,
    bytes: usize,
    most_bytes: usize,
    /// The option that sets the limit.
    limited_by: &'static str,
    /// Some writes did not fit and are missing.
    overflowed: bool,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            writes: Default::default(),
            filters: Default::default(),
            building: Vec::new(),
            spilled: Vec::new(),
            changes_keys: false,
            frees_space: false,
            takes_space: false,
            assignments: Vec::new(),
            own_spaces_from: u32::MAX,
            outbox: RefCell::new(None),
            touched: None,
            undo: Vec::new(),
            undo_keys: Vec::new(),
            savepoints: 0,
            bytes: 0,
            most_bytes: usize::MAX,
            limited_by: "txn_max_bytes",
            overflowed: false,
        }
    }
}

#[derive(Debug)]
struct UndoEntry {
    tree: TreeId,
    /// Where the key begins in `undo_keys`; it ends where the next one begins.
    key_at: usize,
    /// The pending write that was replaced; `None` if the key had none.
    by: Option<PendingWrite>,
}

/// A state that a rollback can restore.
#[derive(Debug)]
pub(super) struct Savepoint {
    undo: usize,
    building: usize,
    assignments: usize,
    outbox: usize,
    changes_keys: bool,
    frees_space: bool,
    takes_space: bool,
    bytes: usize,
    overflowed: bool,
}

impl Overlay {
    /// Makes an overlay that tracks the keys read and written, and holds at most about this many
    /// bytes.
    pub(crate) fn tracking(most_bytes: usize) -> Self {
        Self { touched: Some(Box::default()), most_bytes, ..Self::default() }
    }

    /// Makes an overlay for a script, which holds at most about this many bytes. It tracks keys if
    /// others may change them meanwhile.
    pub(crate) fn of_script(most_bytes: usize, tracks: bool) -> Self {
        let touched = tracks.then(Box::default);
        Self { touched, most_bytes, limited_by: "script_max_bytes", ..Self::default() }
    }

    pub(super) fn of(&self, tree: TreeId) -> Option<&Writes> {
        self.writes.get(tree.index())?.as_ref()
    }

    /// The pending write of a physical key; a removal is `Some(None)`.
    #[inline]
    pub(super) fn get(&self, tree: TreeId, key: &[u8]) -> Option<&Option<Bytes>> {
        let (writes, filter) = (self.of(tree)?, self.filters.get(tree.index())?);
        if !filter.may_hold(key, writes.len()) {
            return None;
        }
        writes.get(key).map(|write| &write.value)
    }

    /// Sets or removes a physical key that is not counted. Past the limit nothing more is stored:
    /// the command that writes so much is going to fail.
    pub(super) fn write(&mut self, tree: TreeId, key: &[u8], value: Option<Bytes>) {
        self.changes_keys |= tree == META;
        self.add_pending(tree, key, PendingWrite { value, weight: 0 });
    }

    /// Sets or removes a row, which changes the number of rows by `weight`.
    pub(super) fn write_counted(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value: Option<Bytes>,
        weight: i8,
    ) {
        self.add_pending(tree, key, PendingWrite { value, weight });
    }

    /// Replaces the record of a key by one with the same expiry.
    pub(super) fn replace_record(&mut self, key: &[u8], record: Bytes) {
        self.add_pending(META, key, PendingWrite { value: Some(record), weight: 0 });
    }

    fn add_pending(&mut self, tree: TreeId, key: &[u8], write: PendingWrite) {
        let cost_of_new = write.cost(key);
        let trees = (self.writes.get_mut(tree.index()), self.filters.get_mut(tree.index()));
        let (Some(writes), Some(filter)) = trees else { return };
        if self.bytes.saturating_add(cost_of_new) > self.most_bytes {
            self.overflowed = true;
            return;
        }
        let writes = writes.get_or_insert_default();
        let may_hold = filter.may_hold(key, writes.len());
        let old = writes.add(key, write, may_hold);
        if old.is_none() {
            filter.note(key, writes.len() - 1, writes.keys());
        }
        let cost_of_old = old.as_ref().map_or(0, |old| old.cost(key));
        self.bytes = (self.bytes + cost_of_new).saturating_sub(cost_of_old);
        if self.savepoints > 0 {
            self.undo.push(UndoEntry { tree, key_at: self.undo_keys.len(), by: old });
            self.undo_keys.extend_from_slice(key);
        }
    }

    /// Whether the writes and the tracked keys exceed the limit.
    pub(super) fn is_too_large(&self) -> bool {
        let touched = self.touched.as_ref().map_or(0, |touched| touched.borrow().bytes());
        self.overflowed || self.bytes.saturating_add(touched) > self.most_bytes
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// The option that sets the limit.
    pub(super) fn limited_by(&self) -> &'static str {
        self.limited_by
    }

    /// Sets a savepoint. Until it is released or rolled back to, the overlay remembers what is
    /// replaced.
    pub(super) fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint {
            undo: self.undo.len(),
            building: self.building.len(),
            assignments: self.assignments.len(),
            outbox: self.outbox.get_mut().as_ref().map_or(0, |it| it.outgoing.len()),
            changes_keys: self.changes_keys,
            frees_space: std::mem::take(&mut self.frees_space),
            takes_space: self.takes_space,
            bytes: self.bytes,
            overflowed: self.overflowed,
        }
    }

    /// Keeps what was written since the savepoint.
    pub(super) fn release(&mut self, savepoint: &Savepoint) {
        let wrote = self.undo.len() > savepoint.undo;
        self.takes_space |= wrote && !self.frees_space;
        self.frees_space |= savepoint.frees_space;
        self.drop_savepoint();
    }

    fn drop_savepoint(&mut self) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.undo.clear();
            self.undo_keys.clear();
        }
    }

    /// Restores the state at the savepoint. The keys touched since remain tracked: the command has
    /// seen what they held.
    pub(super) fn rollback_to(&mut self, savepoint: &Savepoint) {
        while self.undo.len() > savepoint.undo {
            let Some(UndoEntry { tree, key_at, by }) = self.undo.pop() else { break };
            let key = self.undo_keys.split_off(key_at);
            let Some(Some(writes)) = self.writes.get_mut(tree.index()) else { continue };
            match by {
                Some(old) => writes.restore(key, old),
                None => writes.remove(&key),
            }
        }
        self.building.truncate(savepoint.building);
        self.assignments.truncate(savepoint.assignments);
        self.drop_claims(savepoint.outbox);
        (self.frees_space, self.takes_space) = (savepoint.frees_space, savepoint.takes_space);
        self.changes_keys = savepoint.changes_keys;
        self.bytes = savepoint.bytes;
        self.overflowed = savepoint.overflowed;
        self.drop_savepoint();
    }

    /// Roughly the bytes of the pending writes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds something to say after the commit.
    pub(super) fn say(&mut self, outgoing: Outgoing) {
        self.bytes = self.bytes.saturating_add(outgoing.bytes());
        self.say_found(outgoing);
    }

    /// Adds something that a lookup has found.
    pub(super) fn say_found(&self, outgoing: Outgoing) {
        self.outbox.borrow_mut().get_or_insert_default().outgoing.push(outgoing);
    }

    /// Takes out what is said to others after the commit.
    pub(super) fn take_outbox(&self) -> Outbox {
        self.outbox.take().map_or_else(Outbox::default, |outbox| *outbox)
    }

    /// Keeps of what a failed command has said only what it has found, not what it has done.
    fn drop_claims(&mut self, since: usize) {
        if let Some(outbox) = self.outbox.get_mut() {
            outbox.drop_claims(since);
        }
    }

    /// Whether there is something to say, or an expired key was met.
    #[inline]
    pub(super) fn has_said(&self) -> bool {
        self.outbox.borrow().is_some()
    }

    /// Tells which client runs the next command, if it tracks keys.
    pub(super) fn set_origin(&mut self, origin: Option<Origin>) {
        if origin.is_some() || self.outbox.get_mut().is_some() {
            self.outbox.get_mut().get_or_insert_default().origin = origin;
        }
    }

    /// The number of the client that runs the commands, if it tracks keys; else zero.
    pub(super) fn client(&self) -> u64 {
        self.outbox.borrow().as_ref().map_or(0, |outbox| outbox.client())
    }

    /// Notes that the command of a client that tracks keys has read.
    pub(super) fn note_read(&mut self) {
        if let Some(outbox) = self.outbox.get_mut() {
            outbox.note_read();
        }
    }

    /// Notes that a command has met an expired key. Returns false if it is known already.
    pub(super) fn meet_expired(&self, space: Space, key: &[u8]) -> bool {
        let mut outbox = self.outbox.borrow_mut();
        let expired = &mut outbox.get_or_insert_default().expired;
        let known = expired.iter().any(|(in_space, met)| *in_space == space && **met == *key);
        if !known {
            expired.push((space, key.into()));
        }
        !known
    }

    /// Removes the records of expired keys that were met and not written, so that each is announced
    /// once. Returns those whose stripe is not held: they may change, so they are left alone and
    /// not announced.
    #[cold]
    pub(super) fn remove_expired(
        &mut self,
        is_held: impl Fn(Space, &[u8]) -> bool,
    ) -> Vec<ExpiredKey> {
        let Some(outbox) = self.outbox.get_mut() else { return Vec::new() };
        let expired = std::mem::take(&mut outbox.expired);
        let (held, left): (Vec<_>, Vec<_>) =
            expired.into_iter().partition(|(space, key)| is_held(*space, key));
        for (_, key) in &left {
            outbox.outgoing.retain(|outgoing| !outgoing.is_expiry_of(key));
        }
        for (space, key) in held {
            let meta = meta_key(space, &key);
            if self.get(META, &meta).is_none() {
                self.write(META, &meta, None);
            }
        }
        left
    }

    /// Whether there is anything to commit.
    pub(crate) fn is_dirty(&self) -> bool {
        self.writes.iter().flatten().any(|writes| !writes.is_empty())
    }

    /// Whether the commit may use the space reserved for a full disk: all commands that write must
    /// free space.
    pub(crate) fn frees_space(&self) -> bool {
        self.frees_space && !self.takes_space
    }

    /// The databases that are emptied or swapped, in order.
    pub(crate) fn assignments(&self) -> &[(u32, Space)] {
        &self.assignments
    }

    /// The keys read and written, if they are tracked.
    pub(crate) fn touched(&self) -> Option<Ref<'_, Touched>> {
        self.touched.as_ref().map(|touched| touched.borrow())
    }

    /// The earliest expiry of the records written.
    pub(crate) fn soonest_expiry(&self) -> Option<u64> {
        let records = self.of(META)?.iter().filter_map(|(_, write)| write.value.as_ref());
        let headers = records.filter_map(|record| Header::decode(record).ok());
        headers.map(|header| header.expire_ms).filter(|expire_ms| *expire_ms != 0).min()
    }

    /// The writes as a batch.
    pub(crate) fn batch(&self) -> Batch {
        let mut batch = Batch::with_capacity(self.bytes);
        for (tree, writes) in (0u8..).zip(&self.writes) {
            let Some(writes) = writes else { continue };
            for (key, write) in writes.iter() {
                write.add_to(&mut batch, TreeId(tree), key);
            }
        }
        if !self.changes_keys {
            batch.only_replaces(META);
        }
        batch
    }

    /// Visits the meta key of every user key that is changed, some more than once. Records of the
    /// store itself are left out.
    pub(crate) fn changed_keys(&self, mut visit: impl FnMut(&[u8])) {
        let reserved = Space::RESERVED.to_bytes();
        let records = self.of(META).into_iter().flat_map(Writes::keys);
        records.filter(|key| !key.starts_with(&reserved)).for_each(&mut visit);
        for tree in [DATA, SCORE] {
            // Rows of one collection are neighbours.
            let mut last: &[u8] = &[];
            for key in self.of(tree).into_iter().flat_map(Writes::keys) {
                if !last.is_empty() && key.starts_with(last) {
                    continue;
                }
                if let Some(row) = split_row_key(key) {
                    last = key.get(..key.len() - row.sub_key.len()).unwrap_or_default();
                    visit(&meta_key(row.space, &row.user_key));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
