//! How a script runs on a store: at one read point, with one commit.
//!
//! 1. The script runs under the locks of the keys that it declares. All keys that it touches are
//!    tracked.
//! 2. If it touched only keys whose stripes it holds, it commits.
//! 3. Otherwise it gives its locks up, takes those of all touched keys, and commits if none of them
//!    has changed since its read point, as a transaction does.
//! 4. If one has, or if the script asked for it, the script starts again alone: under all locks.
//!    Nothing of the first run was visible.

use crate::error::{ErrorKind, Result};
use crate::txn::db::Db;
use crate::txn::execution::{ChangeTracking, Done};
use crate::txn::overlay::Overlay;
use crate::txn::snapshot::read_only;
use crate::txn::store::Store;
use crate::txn::stripe_set::StripeSet;
use crate::txn::stripes::{Held, Stripes};
use crate::txn::tx::{ReadPoint, ScriptBudget, ScriptStart, Tx};
use crate::txn::view::View;

/// The result of a run under the locks of declared keys.
enum FirstRun<T> {
    Done(Done<T>),
    /// The script must run alone.
    Again,
}

impl Db {
    /// Runs a script that declares these keys, and commits all of it or nothing. A transaction runs
    /// it like any other command: it has no locks of its own then, and no second run.
    pub(crate) fn write_script<T>(
        &self,
        keys: &[&[u8]],
        mut work: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.view() {
            View::Live => {
                let budget = self.script_budget();
                let done = self.store().run_script(self.database(), keys, budget, &mut work)?;
                self.settled(done)
            }
            View::Snapshot(_) => Err(read_only()),
            View::Transaction(running) => running.run(self.store(), self.database(), work),
        }
    }
}

impl Store {
    fn run_script<T>(
        &self,
        database: u32,
        keys: &[&[u8]],
        budget: Option<ScriptBudget>,
        work: &mut dyn FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let start = ScriptStart { seed: self.random_seed(), now: self.clock().now(), budget };
        let done = match self.run_under_locks(database, keys, start, work)? {
            FirstRun::Done(done) => done,
            FirstRun::Again => self.run_alone(database, start, work)?,
        };
        self.serve_waiters();
        Ok(done)
    }

    fn run_under_locks<T>(
        &self,
        database: u32,
        keys: &[&[u8]],
        start: ScriptStart,
        work: &mut dyn FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<FirstRun<T>> {
        // Before the read point is taken: see `Conflicts`.
        let _registered = self.conflicts().register(self.engine().sequence());
        let held = self.lock_keys(&keys.iter().map(|key| (database, *key)), None)?;
        let time = self.clock().register();
        let (mapping, space, reader) = loop {
            let mapping = self.spaces().changes();
            let (space, reader) = self.space_and_reader(database)?;
            // Without keys no lock keeps databases from being emptied or swapped.
            if self.spaces().changes() == mapping {
                break (mapping, space, reader);
            }
        };
        let mut stripes = StripeSet::default();
        keys.iter().for_each(|key| stripes.add(Stripes::index(self.hash_of(space, key))));
        let noted = self.stripes().scripts().note(stripes);
        let since = reader.sequence();
        let point = ReadPoint { reader, now: time.now(), database, space, as_of_reader: true };
        let overlay = Overlay::of_script(self.script_limits().max_bytes, true);
        let mut tx = Tx::new(self, point, overlay);
        tx.start_script(start, true);
        let answer = work(&mut tx);
        if tx.wants_alone() {
            return Ok(FirstRun::Again);
        }
        let (answer, mut overlay) = (answer?, tx.into_overlay());
        let mut holds_touched = false;
        let is_held = |hash: u64| stripes.has(Stripes::index(hash));
        let mut held: Option<Held<'_>> = Some(held);
        if let Some(touched) = overlay.touched().filter(|_| overlay.is_dirty()) {
            let hashes = || touched.keys().map(|(_, key)| self.hash_of(key.space, &key.key));
            if !hashes().all(is_held) {
                drop((held.take(), noted));
                let mut all = self.lock_hashes(hashes(), None)?;
                if touched.keys().any(|(_, key)| self.has_moved(key)) {
                    drop(all);
                    all = self.lock_every(None)?;
                }
                match self.validate(since, mapping, &touched, false) {
                    Ok(()) => (held, holds_touched) = (Some(all), true),
                    Err(error) if error.kind() == ErrorKind::Conflict => {
                        return Ok(FirstRun::Again);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let (mut expired, mut client) = (Vec::new(), 0);
        if overlay.has_said() {
            client = overlay.client();
            expired = overlay
                .remove_expired(|space, key| holds_touched || is_held(self.hash_of(space, key)));
        }
        let commit = self.commit(&overlay, ChangeTracking::Noted)?;
        drop((overlay, time, held));
        if !expired.is_empty() {
            self.expire_met(database, &expired, client);
        }
        Ok(FirstRun::Done((answer, commit)))
    }

    fn run_alone<T>(
        &self,
        database: u32,
        start: ScriptStart,
        work: &mut dyn FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let held = self.lock_every(None)?;
        let noted = self.stripes().scripts().note(StripeSet::ALL);
        let time = self.clock().register();
        let (reader, space) = (self.engine().reader()?, self.spaces().of(database)?);
        let point = ReadPoint { reader, now: time.now(), database, space, as_of_reader: false };
        let overlay = Overlay::of_script(self.script_limits().max_bytes, false);
        let mut tx = Tx::new(self, point, overlay);
        tx.start_script(start, false);
        let answer = work(&mut tx)?;
        let mut overlay = tx.into_overlay();
        if overlay.has_said() {
            // Every stripe is held.
            overlay.remove_expired(|_, _| true);
        }
        let commit = self.commit(&overlay, ChangeTracking::Noted)?;
        drop((overlay, time, noted, held));
        Ok((answer, commit))
    }
}
