//! [`SharedStore`]: who holds the store, and how another process takes over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::batch::SharedBatch;
use super::session::SharedSession;
use crate::commands::entry::Entry;
use crate::commands::{
    Commands, Reply, ReplyBuilder, ReplySink, by_entry, name_of, refuse_session,
};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::limits::Limits;
use crate::options::Options;
use crate::remote::{Remote, Unanswered, Wait};
use crate::server::{RunningServer, socket_in, upkeep_reply};
use crate::sync::transit::Transit;
use crate::txn::Db;

/// The pauses between attempts to find the holder: the first one, and the longest.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The longest search where calls have no limit: a day.
const LONGEST_SEARCH_MS: u64 = 86_400_000;

/// A store that several processes have open. Commands run in the process that holds it: this one or
/// another, which takes over when the holder ends.
///
/// ```
/// use lsmkv::{Commands, Options, SharedStore};
///
/// # let dir = tempfile::tempdir()?;
/// let first = SharedStore::open(dir.path(), &Options::default())?;
/// let second = SharedStore::open(dir.path(), &Options::default())?; // also in another process
/// first.set(b"greeting", b"hello")?;
/// first.close()?;
/// assert_eq!(second.get(b"greeting")?, Some("hello".into()));
/// second.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedStore {
    sharing: Arc<Sharing>,
    number: u32,
    /// The database, while this process holds the store.
    here: OnceLock<Db>,
    /// The database at the holder.
    there: Remote,
}

#[derive(Debug)]
struct Sharing {
    dir: PathBuf,
    options: Options,
    /// Whether this process may hold the store. One that was forked while a store was open may not.
    may_hold: bool,
    held: OnceLock<Held>,
    /// Held by the thread that tries to take over. Whether the handle was closed.
    closed: Mutex<bool>,
}

#[derive(Debug)]
struct Held {
    db: Db,
    _server: RunningServer,
    /// How long the open took, with the recovery.
    opened_in: Duration,
}

/// Where a store is at the moment.
pub(crate) enum Seat<'a> {
    Here(&'a Db),
    There(&'a Remote),
}

impl Commands for SharedStore {
    fn call(&self, argv: &[&[u8]]) -> Result<Reply> {
        by_entry(argv, |entry, sink| self.run_entry(entry, argv, sink))
    }
}

impl SharedStore {
    /// Opens the store in a directory, and creates it if necessary. If another process holds it, this
    /// one connects to it.
    pub fn open(dir: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::open_as(dir.as_ref(), options, true)
    }

    /// Opens a store in a process that must not hold it: it was forked while a store was open.
    pub(crate) fn open_as_client(dir: &Path, options: &Options) -> Result<Self> {
        Self::open_as(dir, options, false)
    }

    fn open_as(dir: &Path, options: &Options, may_hold: bool) -> Result<Self> {
        let options = Options { shared: true, ..options.clone() };
        options.validate()?;
        if dir.as_os_str() == ":memory:" {
            let text = "a store in memory cannot be shared: name a directory";
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        // A later change of the working directory must not lead elsewhere.
        let dir = std::path::absolute(dir).map_err(|e| Error::io("look for", dir, &e))?;
        let socket = socket_in(&dir);
        let Some(socket) = socket.to_str() else {
            let text = format!("the path of a shared store must be UTF-8: {}", dir.display());
            return Err(Error::new(ErrorKind::Invalid, text));
        };
        let there = Remote::of_holder(socket, &options)?;
        // What this process itself opens is a plain store.
        let options = Options { shared: false, ..options };
        let (held, closed) = (OnceLock::new(), Mutex::new(false));
        let sharing = Arc::new(Sharing { dir, options, may_hold, held, closed });
        let store = Self { sharing, number: 0, here: OnceLock::new(), there };
        if !store.sharing.try_to_hold()? {
            store.find_holder()?;
        }
        Ok(store)
    }

    /// Another database of the same store.
    pub fn select(&self, number: u32) -> Result<Self> {
        let there = self.there.select_later(number)?;
        let sharing = Arc::clone(&self.sharing);
        let store = Self { sharing, number, here: OnceLock::new(), there };
        store.find_holder()?;
        Ok(store)
    }

    fn find_holder(&self) -> Result<()> {
        self.run_within(self.sharing.options.connect_timeout_ms, |seat| match seat {
            Seat::Here(_) => Ok(()),
            Seat::There(remote) => remote.attempt_greeting(),
        })
    }

    /// Runs any command by name. An error of the command is a reply.
    pub fn command(&self, argv: &[&[u8]]) -> Result<Reply> {
        ReplyBuilder::collect(|reply| self.command_into(argv, reply))
    }

    /// Runs any command by name and writes its reply to `sink`. An error of the command is a reply.
    pub fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        refuse_session(name_of(argv)?)?;
        refuse_private(argv)?;
        self.run(|seat| match seat {
            Seat::Here(db) => db.command_into(argv, sink).map_err(Unanswered::Failed),
            Seat::There(remote) => remote.attempt(None, argv, sink),
        })
    }

    /// Runs a command whose entry is known. An error of the command is an `Err`.
    pub(crate) fn run_entry(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.run(|seat| match seat {
            Seat::Here(db) => db.run_entry_into(entry, argv, sink).map_err(Unanswered::Failed),
            Seat::There(remote) => remote.attempt(Some(entry), argv, sink),
        })
    }

    /// The statistics of the store, of whatever process: a map of names to figures, as [`Db::stats`]
    /// has them.
    pub fn stats(&self) -> Result<Reply> {
        self.upkeep("STATS", b"")
    }

    /// Makes all writes of all processes so far durable.
    pub fn sync(&self) -> Result<()> {
        self.upkeep("SYNC", b"").map(drop)
    }

    /// Does upkeep at the holder: SYNC, FLUSH, COMPACT, RESUME, STATS, CHECK, or CHECKPOINT with a
    /// directory.
    pub(crate) fn upkeep(&self, what: &str, argument: &[u8]) -> Result<Reply> {
        self.run(|seat| match seat {
            Seat::Here(db) => upkeep_reply(db, what, argument).map_err(Unanswered::Failed),
            Seat::There(remote) => {
                let argv: [&[u8]; 4] = [b"LSMKV.SHARED", b"UPKEEP", what.as_bytes(), argument];
                // It takes as long as it takes.
                remote.attempt_private(&argv, Some(Wait::Forever))?.map_err(Unanswered::Failed)
            }
        })
    }

    /// Fails once the store was closed here.
    pub(super) fn check_open(&self) -> Result<()> {
        self.there.check_store_open()
    }

    /// The number of the selected database.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// A session: what a connection remembers, such as MULTI, WATCH and subscriptions.
    pub fn session(&self) -> SharedSession {
        SharedSession::new(self.clone())
    }

    /// Write commands that run together.
    pub fn batch(&self) -> SharedBatch {
        SharedBatch::new(self.clone(), false)
    }

    /// Closes the store for this process. If it was the holder, another process takes over at its
    /// next call.
    pub fn close(&self) -> Result<()> {
        self.announce_close();
        *self.sharing.closed() = true;
        match self.sharing.held.get() {
            Some(held) => held.db.close(),
            None => Ok(()),
        }
    }

    /// Whether this process holds the store.
    pub fn is_holder(&self) -> bool {
        self.sharing.held.get().is_some()
    }

    /// How long the open and the recovery of the store took, if this process holds it.
    pub fn opened_in(&self) -> Option<Duration> {
        self.sharing.held.get().map(|held| held.opened_in)
    }

    /// The process that holds the store, as far as this one knows.
    pub fn holder(&self) -> Option<u32> {
        match self.is_holder() {
            true => Some(std::process::id()),
            false => self.there.holder().map(|holder| holder.process),
        }
    }

    /// The limits of keys and values.
    pub(crate) fn limits(&self) -> Limits {
        self.there.limits()
    }

    /// Ends calls that wait.
    pub(crate) fn announce_close(&self) {
        self.there.close();
        if let Some(held) = self.sharing.held.get() {
            held.db.announce_close();
        }
    }

    /// Ends calls that wait on this handle, which is not the one that was opened.
    pub(crate) fn end_own_waits(&self) {
        self.there.close();
        if let Some(db) = self.here.get() {
            db.end_own_waits();
        }
    }

    /// Leaves the lock of the store to the parent, in a forked child. Returns whether the parent holds
    /// the store. It takes no lock.
    pub(crate) fn abandon_in_child(&self) -> bool {
        let held = self.sharing.held.get();
        if let Some(held) = held {
            held.db.abandon_in_child();
        }
        held.is_some()
    }

    /// The database in this process, if it holds the store.
    pub(crate) fn here(&self) -> Result<Option<&Db>> {
        if let Some(db) = self.here.get() {
            return Ok(Some(db));
        }
        let Some(held) = self.sharing.held.get() else { return Ok(None) };
        let db = held.db.select(self.number)?.with_waits(Arc::default());
        Ok(Some(self.here.get_or_init(|| db)))
    }

    /// Calls `attempt` where the store is, and again elsewhere while the holder is gone.
    pub(crate) fn run<T>(
        &self,
        attempt: impl FnMut(Seat<'_>) -> std::result::Result<T, Unanswered>,
    ) -> Result<T> {
        self.run_within(self.sharing.call_limit_ms(), attempt)
    }

    /// Calls `attempt` as [`SharedStore::run`] does, and looks for a holder for at most `limit`
    /// milliseconds.
    fn run_within<T>(
        &self,
        limit: u64,
        mut attempt: impl FnMut(Seat<'_>) -> std::result::Result<T, Unanswered>,
    ) -> Result<T> {
        let mut search: Option<Search> = None;
        loop {
            let outcome = match self.here()? {
                Some(db) => attempt(Seat::Here(db)),
                None => attempt(Seat::There(&self.there)),
            };
            match outcome {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Failed(error)) => return Err(self.told(error)),
                Err(Unanswered::Gone(error)) => {
                    let search = search.get_or_insert_with(|| Search::begin(limit));
                    if !self.sharing.try_to_hold()? {
                        search.pause().map_err(|()| self.sharing.nobody(limit, &error))?;
                    }
                }
            }
        }
    }

    /// Adds to a time-out which process did not answer.
    pub(super) fn told(&self, error: Error) -> Error {
        match self.there.holder() {
            Some(holder) if error.kind() == ErrorKind::Timeout && !self.is_holder() => error.wrap(
                ErrorKind::Timeout,
                format_args!("process {} holds the store and is silent", holder.process),
            ),
            _ => error,
        }
    }
}

impl Sharing {
    /// Opens and serves the store if no other process holds it. Returns whether this one does now.
    fn try_to_hold(&self) -> Result<bool> {
        if !self.may_hold {
            return Ok(false);
        }
        let closed = self.closed();
        if self.held.get().is_some() {
            return Ok(true);
        }
        if *closed {
            return Err(Error::new(ErrorKind::Closed, "the handle of the shared store was closed"));
        }
        let _transit = Transit::begin();
        let begun = Instant::now();
        let db = match Db::open(&self.dir, self.options.clone()) {
            Err(error) if error.kind() == ErrorKind::Busy => return Ok(false),
            opened => opened?,
        };
        let opened_in = begun.elapsed();
        match RunningServer::share(&db, &self.dir, &self.options) {
            Ok(_server) => {
                // The lock above makes this the only thread that sets it.
                let _ = self.held.set(Held { db, _server, opened_in });
                Ok(true)
            }
            Err(error) => {
                let _ = db.close();
                Err(error)
            }
        }
    }

    /// The milliseconds that a call looks for a holder. Another process that has the lock may be
    /// recovering a large store. One that cannot hold it waits for others to do so, which may be
    /// nobody.
    fn call_limit_ms(&self) -> u64 {
        match (self.may_hold, self.options.reply_timeout_ms) {
            (false, _) => self.options.connect_timeout_ms,
            (true, 0) => LONGEST_SEARCH_MS,
            (true, limit) => limit.max(self.options.connect_timeout_ms),
        }
    }

    fn closed(&self) -> std::sync::MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error when no holder was found in time.
    fn nobody(&self, limit: u64, error: &Error) -> Error {
        if self.may_hold {
            let text = format!(
                "another process has the store open and served it to nobody within {limit} ms: it did not \
                 open it with shared=on, or still recovers it"
            );
            return error.wrap(ErrorKind::Busy, text);
        }
        let text = "no process holds the store, and this one cannot: it was forked while a store was \
                    open; open the store in a process that was not, or after an exec";
        error.wrap(ErrorKind::Busy, text)
    }
}

/// Fails for what only the library says to a holder.
pub(crate) fn refuse_private(argv: &[&[u8]]) -> Result<()> {
    match argv.first() {
        Some(name) if name.eq_ignore_ascii_case(b"LSMKV.SHARED") => {
            let text = "LSMKV.SHARED is for the library itself";
            Err(Error::new(ErrorKind::Unsupported, text))
        }
        _ => Ok(()),
    }
}

/// A search for the holder, for a limited time.
struct Search {
    deadline: Instant,
    pause: Duration,
}

impl Search {
    fn begin(limit_ms: u64) -> Self {
        let deadline = Instant::now() + Duration::from_millis(limit_ms);
        Self { deadline, pause: FIRST_PAUSE }
    }

    /// Waits a moment; fails if the time has passed.
    fn pause(&mut self) -> std::result::Result<(), ()> {
        if Instant::now() >= self.deadline {
            return Err(());
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
