//! How commands run on a store: a read at one read point, a write under the locks of its keys.
//!
//! A write holds the stripes of its keys while it reads what it depends on and until its batch is
//! visible, and waits for durability only after that: waiting with a stripe held would cost a
//! device flush for every write of a hot key. So a write may be seen before it is durable.
//! Reads take no lock.

use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::encoding::keys::{Space, meta_key};
use crate::engine::{Commit, Reader, WriteOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::options::SyncMode;
use crate::txn::conflicts::KeyId;
use crate::txn::overlay::Overlay;
use crate::txn::store::Store;
use crate::txn::stripes::{Held, LockFailure, Stripes};
use crate::txn::tx::{ReadPoint, Tx};

/// What a write may touch.
#[derive(Debug)]
pub(crate) enum Scope<'k> {
    /// Only these keys of these databases.
    Keys(Vec<(u32, &'k [u8])>),
    /// Any key of any database.
    Every,
}

/// The result of a write, and its commit if it changed something. The commit is visible but may not
/// be durable yet.
pub(crate) type Done<T> = (T, Option<Commit>);

/// Whether transactions and watches see a commit as a change of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeTracking {
    Noted,
    /// For the deletion of expired keys: nobody could see them before either.
    Ignored,
}

impl Store {
    /// Runs a read at one read point.
    pub(crate) fn read<T>(
        &self,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.read_by(self.space_and_reader(database)?, database, work)
    }

    /// Runs a read whose result goes on to read: an iterator.
    pub(crate) fn read_for_long<T>(
        &self,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let pair = self.space_and(database, || self.engine().lasting_reader())?;
        self.read_by(pair, database, work)
    }

    #[inline]
    fn read_by<T>(
        &self,
        (space, reader): (Space, Reader),
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let now = self.clock().now();
        let point = ReadPoint { reader, now, database, space, as_of_reader: false };
        let mut tx = Tx::new(self, point, Overlay::default());
        tx.only_reads();
        let answer = work(&mut tx);
        if tx.has_said() {
            self.deliver_read(database, &tx.take_outbox());
        }
        answer
    }

    /// Runs a write that depends on these keys of `database` only, and commits all of it or
    /// nothing.
    pub(crate) fn write<T>(
        &self,
        database: u32,
        keys: &[&[u8]],
        tracking: ChangeTracking,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let held = self.lock_keys(&keys.iter().map(|key| (database, *key)), None)?;
        let is_held = |space, key: &[u8]| {
            let hashes = keys.iter().map(|key| self.hash_of(space, key));
            self.shares_stripe(space, key, hashes)
        };
        self.write_locked(database, held, tracking, is_held, work)
    }

    /// Runs a write that may touch what `scope` says, and commits all of it or nothing. Fails if
    /// the locks are not free before the deadline.
    pub(crate) fn write_in<T>(
        &self,
        database: u32,
        scope: &Scope<'_>,
        deadline: Option<Instant>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let held = match scope {
            Scope::Keys(keys) => self.lock_keys(&keys.iter().copied(), deadline)?,
            Scope::Every => self.lock_every(deadline)?,
        };
        let is_held = |space, key: &[u8]| match scope {
            Scope::Every => true,
            Scope::Keys(keys) => {
                let space_of = |database: &u32| self.spaces().of(*database).ok();
                let hash = |(database, key): &(u32, &[u8])| {
                    space_of(database).map(|space| self.hash_of(space, key))
                };
                self.shares_stripe(space, key, keys.iter().filter_map(hash))
            }
        };
        self.write_locked(database, held, ChangeTracking::Noted, is_held, work)
    }

    /// Locks these keys of these databases.
    pub(super) fn lock_keys<'k>(
        &self,
        keys: &(impl Iterator<Item = (u32, &'k [u8])> + Clone),
        deadline: Option<Instant>,
    ) -> Result<Held<'_>> {
        loop {
            let changes = self.spaces().changes();
            let hash =
                |(database, key)| self.spaces().of(database).map(|space| self.hash_of(space, key));
            let hashes = keys.clone().map(hash).collect::<Result<SmallVec<[u64; 4]>>>()?;
            let held = self.lock_hashes(hashes.into_iter(), deadline)?;
            // A database was emptied or swapped while we waited: we hold the locks of other keys.
            if self.spaces().changes() == changes {
                return Ok(held);
            }
        }
    }

    /// The hash of a key, by which it is locked.
    pub(super) fn hash_of(&self, space: Space, key: &[u8]) -> u64 {
        self.engine().hash_seed().hash(&meta_key(space, key))
    }

    /// Locks the keys with these hashes.
    pub(super) fn lock_hashes(
        &self,
        hashes: impl Iterator<Item = u64>,
        deadline: Option<Instant>,
    ) -> Result<Held<'_>> {
        self.stripes().lock_all(hashes, deadline).map_err(refused)
    }

    /// Locks every key.
    pub(super) fn lock_every(&self, deadline: Option<Instant>) -> Result<Held<'_>> {
        self.stripes().lock_every(deadline).map_err(refused)
    }

    fn write_locked<T>(
        &self,
        database: u32,
        held: Held<'_>,
        tracking: ChangeTracking,
        is_held: impl Fn(Space, &[u8]) -> bool,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let time = self.clock().register();
        let (reader, space) = (self.engine().reader()?, self.spaces().of(database)?);
        let point = ReadPoint { reader, now: time.now(), database, space, as_of_reader: false };
        let mut tx = Tx::new(self, point, Overlay::default());
        let answer = work(&mut tx);
        let mut overlay = tx.into_overlay();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                drop((time, held));
                if overlay.has_said() {
                    self.deliver_findings(database, overlay.take_outbox());
                }
                return Err(error);
            }
        };
        let (mut expired, mut client) = (Vec::new(), 0);
        if overlay.has_said() {
            (expired, client) = (overlay.remove_expired(is_held), overlay.client());
        }
        let commit = self.commit(&overlay, tracking)?;
        drop((overlay, time, held));
        if !expired.is_empty() {
            self.expire_met(database, &expired, client);
        }
        self.serve_waiters();
        Ok((answer, commit))
    }

    /// Whether the stripe of a key is that of one of these hashes.
    fn shares_stripe(
        &self,
        space: Space,
        key: &[u8],
        mut hashes: impl Iterator<Item = u64>,
    ) -> bool {
        let stripe = Stripes::index(self.hash_of(space, key));
        hashes.any(|hash| Stripes::index(hash) == stripe)
    }

    /// Orders keys by their stripes, so that neighbours share locks.
    pub(crate) fn sort_by_stripe(&self, space: Space, keys: &mut [&[u8]]) {
        keys.sort_by_cached_key(|key| Stripes::index(self.hash_of(space, key)));
    }

    /// Makes all pending writes visible at once; `None` if there are none. The caller holds the
    /// stripes of all keys in them, and keeps the overlay until this returns: until then no visible
    /// record names the versions built in it.
    pub(super) fn commit(
        &self,
        overlay: &Overlay,
        tracking: ChangeTracking,
    ) -> Result<Option<Commit>> {
        let commit = match overlay.is_dirty() {
            true => Some(self.commit_writes(overlay, tracking)?),
            false => None,
        };
        // After the commit is visible, under its stripes: see `Hub::wait_for`.
        if self.hub().wants_any() || overlay.has_said() {
            self.deliver(overlay);
        }
        Ok(commit)
    }

    fn commit_writes(&self, overlay: &Overlay, tracking: ChangeTracking) -> Result<Commit> {
        let mut batch = overlay.batch();
        let changing = (!overlay.assignments().is_empty()).then(|| self.spaces().change());
        let options = WriteOptions { sync: None, frees_space: overlay.frees_space() };
        let commit = self.engine().commit(&mut batch, options)?;
        for (number, space) in overlay.assignments() {
            self.spaces().assign(*number, *space);
        }
        drop(changing);
        // After the commit is visible: see `Conflicts` and `CleanerState::note_expiry`.
        if tracking == ChangeTracking::Noted && self.conflicts().anyone() {
            let mut keys = Vec::new();
            overlay.changed_keys(|key| keys.push(KeyId::of(key)));
            self.conflicts().note(&keys, commit.sequence);
        }
        self.cleaner().note_expiry(overlay.soonest_expiry());
        Ok(commit)
    }

    /// Waits until a visible write is as durable as `sync` promises, or else the store's sync mode.
    /// The caller holds no lock.
    pub(crate) fn settle(&self, commit: Option<Commit>, sync: Option<SyncMode>) -> Result<()> {
        let Some(commit) = commit else { return Ok(()) };
        if sync.unwrap_or(self.sync_mode()) == SyncMode::Always {
            self.engine().wait_durable(commit, None)?;
        } else if sync == Some(SyncMode::Interval) {
            self.engine().sync_at_intervals();
        }
        Ok(())
    }
}

#[cold]
fn refused(failure: LockFailure) -> Error {
    match failure {
        LockFailure::TooLate => Error::new(
            ErrorKind::Timeout,
            "other writers held the keys for too long; nothing was changed",
        ),
        LockFailure::SlowScript => Error::new(
            ErrorKind::Busy,
            "BUSY a slow script holds the keys; nothing was changed. SCRIPT KILL ends it.",
        ),
    }
}

/// The deadline of a wait for locks.
pub(crate) fn deadline_in(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}
