//! [`Db`]: a handle on an open store, and how commands run on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::{FileSystem, MemFs, RealFs, Stats};
use crate::error::{Error, ErrorKind, Result};
use crate::io::clock::{Clock, RealClock};
use crate::options::{Options, SyncMode};
use crate::types::cleaner::{Cleaner, Pace};
use crate::types::limits::Limits;
use crate::types::stats::Stat;
use crate::types::store::{Counts, Done, Scope, Store};
use crate::types::txn::Tx;
use crate::types::view::{Past, View, read_only};

/// A handle on an open store, with one of its databases selected.
///
/// Every command is a method. Any number of threads use one handle at once.
///
/// ```
/// use lsmkv::{Db, Options};
///
/// let db = Db::open(":memory:", Options::default())?;
/// db.set(b"greeting", b"hello")?;
/// assert_eq!(db.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// assert_eq!(db.del(&[b"greeting"])?, 1);
/// assert_eq!(db.get(b"greeting")?, None);
/// db.close()?;
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    store: Arc<Store>,
    database: u32,
    /// Instead of the store's.
    sync: Option<SyncMode>,
    view: View,
}

impl Db {
    /// Opens the store in directory `path`, or an empty one in memory for `:memory:`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let clock = Arc::new(RealClock);
        if path.as_os_str() == ":memory:" {
            let fs = Arc::new(MemFs::untracked());
            return Self::open_on(fs, Path::new("/memory"), options, clock);
        }
        Self::open_on(Arc::new(RealFs), path, options, clock)
    }

    /// Opens the store in directory `dir` of any file system, with any clock.
    pub fn open_on(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let store = Arc::new(Store::open(fs, dir, options, clock)?);
        Cleaner::start(&store)?;
        Ok(Self { store, database: 0, sync: None, view: View::Live })
    }

    /// The same with database `number` selected: on a snapshot at its moment, on a transaction
    /// within it.
    pub fn select(&self, number: u32) -> Result<Self> {
        self.store.spaces().of(number)?;
        let view = match &self.view {
            View::Snapshot(past) => View::Snapshot(past.select(&self.store, number)?),
            other => other.clone(),
        };
        Ok(Self { database: number, ..self.on(view) })
    }

    /// The store as it is now, to be read as often as one likes: every command that reads works on
    /// it, one that writes is [`crate::ErrorKind::ReadOnly`]. It costs little to make, and keeps
    /// what is deleted later from being reclaimed until it is dropped.
    ///
    /// ```
    /// # use lsmkv::{Db, ErrorKind, Options};
    /// # let db = Db::open(":memory:", Options::default())?;
    /// db.set(b"k", b"before")?;
    /// let then = db.snapshot()?;
    /// db.set(b"k", b"after")?;
    /// assert_eq!(then.get(b"k")?.as_deref(), Some(&b"before"[..]));
    /// assert_eq!(then.del(&[b"k"]).unwrap_err().kind(), ErrorKind::ReadOnly);
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<Self> {
        match &self.view {
            View::Live => Ok(self.on(View::Snapshot(Past::take(&self.store, self.database)?))),
            View::Snapshot(_) => Ok(self.clone()),
            View::Transaction(_) => {
                let text = "a transaction has no snapshots: take one of the database";
                Err(Error::new(ErrorKind::Unsupported, text))
            }
        }
    }

    /// The same, but its writes are flushed to the device as `mode` says, not as the store's
    /// options do. `Interval` makes the store flush in the background from now on, whatever its
    /// own mode.
    pub fn with_sync(&self, mode: SyncMode) -> Self {
        Self { sync: Some(mode), ..self.clone() }
    }

    /// The same with another view.
    pub(crate) fn on(&self, view: View) -> Self {
        Self { store: Arc::clone(&self.store), database: self.database, sync: self.sync, view }
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn sync_mode(&self) -> Option<SyncMode> {
        self.sync
    }

    /// The number of the selected database.
    pub fn database(&self) -> u32 {
        self.database
    }

    /// Stops background work, flushes, and releases the directory. The error is that of the last
    /// flush; the store is closed either way, for all handles.
    pub fn close(&self) -> Result<()> {
        self.store.close()
    }

    /// Ends what waits for a ticket ([`Db::wait`]) and nothing else: for who is about to close and
    /// first lets the calls under way end.
    pub(crate) fn announce_close(&self) {
        self.store.engine().announce_close();
    }

    /// Makes every earlier write durable, whatever the sync mode.
    pub fn sync(&self) -> Result<()> {
        self.store.engine().sync()
    }

    /// Writes the memtables to tables.
    pub fn flush(&self) -> Result<()> {
        self.store.engine().flush()
    }

    /// Flushes and merges everything, and returns when the old files are gone.
    pub fn compact(&self) -> Result<()> {
        self.store.engine().compact()
    }

    /// Takes up writing again after [`crate::ErrorKind::Full`], once there is space.
    pub fn resume(&self) -> Result<()> {
        self.store.engine().resume()
    }

    /// What the engine holds and has done.
    pub fn engine_stats(&self) -> Stats {
        self.store.engine().stats()
    }

    /// Deletes every key that has expired by now, and returns how many there were. A background
    /// thread does the same every [`Options::ttl_cleaner_interval_s`].
    pub fn clean_expired(&self) -> Result<u64> {
        self.store.clean(Pace::Full)
    }

    /// Gives back the space of what was deleted or has expired where that is worth it, and returns
    /// when it is back: tables that hold nothing else are dropped unread, those that hold mostly
    /// that are rewritten. Background threads do the same within
    /// [`Options::reclaim_interval_s`]; [`Db::compact`] rewrites everything.
    pub fn reclaim(&self) -> Result<()> {
        self.store.engine().reclaim()
    }

    /// Whether everything stored fits together: the problems found, none in a sound store. Reads
    /// the whole store, as of one moment; other threads go on.
    pub fn check(&self) -> Result<Vec<String>> {
        self.store.check()
    }

    /// What the store holds and has done, by name.
    pub fn stats(&self) -> Result<Vec<Stat>> {
        self.store.stats()
    }

    /// Turns writes off until the store is opened again; reads go on.
    pub fn degrade(&self, cause: &Error) {
        self.store.engine().degrade(cause);
    }

    /// In a forked child: closes the descriptor of the directory lock, so that the child does
    /// not keep the store locked after its parent has gone. Safe in a `pthread_atfork` handler.
    pub fn abandon_in_child(&self) {
        self.store.engine().abandon_lock();
    }

    /// An error once the store was closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        self.store.engine().check_open()
    }

    /// The longest key and value accepted.
    pub fn limits(&self) -> Limits {
        self.store.limits()
    }

    pub(crate) fn shared_store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Runs a read at one moment.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        match &self.view {
            View::Live => self.store.read(self.database, work),
            View::Snapshot(past) => past.read(&self.store, self.database, work),
            View::Transaction(running) => running.run(&self.store, self.database, work),
        }
    }

    /// Runs a write that depends on these keys and no others; all of it is committed or nothing.
    pub(crate) fn write<T>(
        &self,
        keys: &[&[u8]],
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        match &self.view {
            View::Live => {
                let done = self.store.write(self.database, keys, Counts::AsChange, work)?;
                self.settled(done)
            }
            View::Snapshot(_) => Err(read_only()),
            View::Transaction(running) => running.run(&self.store, self.database, work),
        }
    }

    /// Runs a write that may touch any key of any database.
    pub(crate) fn write_alone<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let done = self.write_in(&Scope::Every, None, work)?;
        self.settled(done)
    }

    /// Runs a write that may touch what `scope` says, and does not wait for the device.
    pub(crate) fn write_in<T>(
        &self,
        scope: &Scope<'_>,
        deadline: Option<Instant>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        match &self.view {
            View::Live => self.store.write_in(self.database, scope, deadline, work),
            View::Snapshot(_) => Err(read_only()),
            View::Transaction(running) => {
                Ok((running.run(&self.store, self.database, work)?, None))
            }
        }
    }

    /// The answer of a write once it is as durable as it is to be.
    pub(crate) fn settled<T>(&self, (answer, commit): Done<T>) -> Result<T> {
        self.store.settle(commit, self.sync)?;
        Ok(answer)
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = match &self.view {
            View::Live => "live",
            View::Snapshot(_) => "snapshot",
            View::Transaction(_) => "transaction",
        };
        let mut shown = f.debug_struct("Db");
        shown.field("database", &self.database).field("view", &view).finish_non_exhaustive()
    }
}

/// Methods of [`Db`] that run the command of the same name on a [`Tx`]: `read` at one moment,
/// `write` under the locks of the keys in brackets.
macro_rules! commands {
    ($($(#[$doc:meta])* $how:ident $([$($key:expr),*])? fn $name:ident(
        $($arg:ident: $type:ty),* $(,)?
    ) -> $answer:ty;)*) => {
        impl $crate::types::Db {
            $($(#[$doc])*
            pub fn $name(&self, $($arg: $type),*) -> $crate::error::Result<$answer> {
                $crate::types::db::commands!(@run self, $how, [$($($key),*)?], |tx| tx.$name($($arg),*))
            })*
        }
    };
    (@run $db:ident, read, [], $work:expr) => { $db.read($work) };
    (@run $db:ident, alone, [], $work:expr) => { $db.write_alone($work) };
    (@run $db:ident, write, [$($key:expr),*], $work:expr) => { $db.write(&[$($key),*], $work) };
    (@run $db:ident, write_keys, [$keys:expr], $work:expr) => { $db.write($keys, $work) };
}
pub(crate) use commands;
