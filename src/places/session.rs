//! Sessions on a shared store: a session of this process, or a connection to the holder.
//!
//! What a session was told about itself, as by SELECT, moves with it to another holder. MULTI, WATCH
//! and subscriptions do not: the next call fails and says so, and the session begins anew.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::store::{Seat, SharedStore, refuse_private};
use crate::commands::entry::Entry;
use crate::commands::{
    Reply, ReplyBuilder, ReplySink, Session, SessionCommands, by_entry_outside_multi, find,
};
use crate::error::{Error, ErrorKind, Result};
use crate::messages::Inbox;
use crate::remote::{RemoteSession, Unanswered, Waits};
use crate::txn::Db;

/// What a connection remembers between commands, such as MULTI, WATCH and subscriptions.
#[derive(Debug)]
pub struct SharedSession {
    store: SharedStore,
    live: Option<Live>,
    /// Commands that a new connection is told, such as SELECT, each with what it sets.
    told: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Whether keys are watched or tracked, or commands of others are shown.
    watches: bool,
    end: Arc<SessionEnd>,
}

#[derive(Debug)]
enum Live {
    Here(Box<Session>),
    There(Box<RemoteSession>),
}

/// Where commands that belong together run.
pub(crate) enum Together<'a> {
    Here(&'a mut Session),
    There(&'a mut RemoteSession),
}

/// By which another thread ends the waits of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionEnd(Mutex<EndState>);

#[derive(Debug, Default)]
struct EndState {
    closed: bool,
    waits: Option<SessionWaits>,
}

#[derive(Debug)]
enum SessionWaits {
    Here(Db, Arc<Inbox>),
    There(Arc<Waits>),
}

impl SessionEnd {
    /// Ends waits, now and later.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        match &state.waits {
            Some(SessionWaits::Here(db, inbox)) => {
                inbox.close();
                db.end_own_waits();
            }
            Some(SessionWaits::There(waits)) => waits.close(),
            None => {}
        }
    }

    fn set(&self, waits: SessionWaits) -> Result<()> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::new(ErrorKind::Closed, "the session was closed"));
        }
        state.waits = Some(waits);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, EndState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionCommands for SharedSession {
    fn call(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        by_entry_outside_multi(self.in_multi(), argv, |entry, sink| {
            self.run_entry(entry, argv, sink)
        })
    }
}

impl SharedSession {
    pub(super) fn new(store: SharedStore) -> Self {
        Self { store, live: None, told: Vec::new(), watches: false, end: Arc::default() }
    }

    /// Whether commands are being queued.
    pub fn in_multi(&self) -> bool {
        match &self.live {
            None => false,
            Some(Live::Here(session)) => session.in_multi(),
            Some(Live::There(session)) => session.in_multi(),
        }
    }

    /// Runs a command. An error of the command is a reply.
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        ReplyBuilder::collect(|reply| self.command_into(argv, reply))
    }

    /// Runs a command and writes its reply to `sink`. An error of the command is a reply.
    pub fn command_into(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        refuse_private(argv)?;
        let only_reads = argv.first().and_then(|name| find(name)).is_some_and(Entry::only_reads);
        self.together(only_reads, |place| match place {
            Together::Here(session) => session.command_into(argv, sink),
            Together::There(session) => {
                let begin = sink.position();
                session.command_into(argv, sink).inspect_err(|_| sink.rollback_to(begin))
            }
        })?;
        self.note(argv);
        Ok(())
    }

    /// Runs a command whose entry is known. An error of the command is an `Err`.
    pub(crate) fn run_entry(
        &mut self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.together(entry.only_reads(), |place| match place {
            Together::Here(session) => session.db().run_entry_into(entry, argv, sink),
            Together::There(session) => session.run_entry(entry, argv, sink),
        })
    }

    /// Calls `run` where the session is. It is called again elsewhere if the holder is gone and
    /// nothing was sent, or if it `only_reads`.
    pub(crate) fn together<T>(
        &mut self,
        only_reads: bool,
        mut run: impl FnMut(Together<'_>) -> Result<T>,
    ) -> Result<T> {
        loop {
            match self.live()? {
                Live::Here(session) => return run(Together::Here(session)),
                Live::There(session) => match run(Together::There(session)) {
                    Err(error) if error.kind() == ErrorKind::Io && session.is_ended() => {
                        let again = !session.has_sent() || only_reads;
                        self.forget_connection()?;
                        if !again {
                            return Err(error);
                        }
                    }
                    outcome => return outcome,
                },
            }
        }
    }

    /// The store with the database that the session has selected.
    pub(crate) fn selected(&self) -> Result<SharedStore> {
        let told = self.told.iter().find(|(what, _)| what == b"SELECT");
        let number = told.and_then(|(_, words)| std::str::from_utf8(words.get(1)?).ok());
        match number.and_then(|number| number.parse().ok()) {
            Some(number) => self.store.select(number),
            None => Ok(self.store.clone()),
        }
    }

    /// Waits until a message arrives, at most until the deadline; `None` if it passed.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Reply>> {
        match self.live()? {
            Live::Here(session) => session.wait(deadline),
            Live::There(session) => {
                let waited = session.wait(deadline);
                if waited.as_ref().is_err_and(|e| e.kind() == ErrorKind::Io) && session.is_ended() {
                    self.forget_connection()?;
                }
                waited
            }
        }
    }

    /// A descriptor that is readable when a message arrives. It belongs to the session.
    pub fn message_descriptor(&mut self) -> Result<RawFd> {
        match self.live()? {
            Live::Here(session) => session.message_descriptor(),
            Live::There(session) => session.message_descriptor(),
        }
    }

    /// The session in this process, if it is here.
    pub(crate) fn here(&mut self) -> Result<Option<&mut Session>> {
        Ok(match self.live()? {
            Live::Here(session) => Some(session),
            Live::There(_) => None,
        })
    }

    /// By which another thread ends the waits of this session.
    pub(crate) fn end(&self) -> Arc<SessionEnd> {
        Arc::clone(&self.end)
    }

    /// Notes what a command changes about the session.
    pub(crate) fn note(&mut self, argv: &[&[u8]]) {
        let word =
            |at: usize| argv.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        let name = word(0);
        match name.as_slice() {
            b"WATCH" | b"MONITOR" => self.watches = true,
            b"EXEC" | b"DISCARD" | b"UNWATCH" => self.watches = false,
            b"RESET" => (self.watches, self.told) = (false, Vec::new()),
            b"SELECT" => self.tell(name, argv),
            b"CLIENT" => match word(1).as_slice() {
                b"SETNAME" => self.tell(b"SETNAME".to_vec(), argv),
                b"SETINFO" => self.tell([word(1), word(2)].concat(), argv),
                b"TRACKING" => self.watches = word(2) == b"ON",
                _ => {}
            },
            _ => {}
        }
    }

    fn tell(&mut self, what: Vec<u8>, argv: &[&[u8]]) {
        self.told.retain(|(known, _)| *known != what);
        self.told.push((what, argv.iter().map(|word| word.to_vec()).collect()));
    }

    /// The session where the store is now.
    fn live(&mut self) -> Result<&mut Live> {
        if matches!(&self.live, Some(Live::There(session)) if session.is_ended()) {
            self.forget_connection()?;
        }
        if self.live.is_none() {
            let mut live = self.store.run(|seat| match seat {
                Seat::Here(db) => Ok(here(db)),
                Seat::There(remote) => {
                    let mut session = remote.session().map_err(Unanswered::Failed)?;
                    session.connect_now()?;
                    let waits = SessionWaits::There(session.waits());
                    Ok((Live::There(Box::new(session)), waits))
                }
            })?;
            for (_, words) in &self.told {
                let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                match &mut live.0 {
                    Live::Here(session) => session.command(&argv)?,
                    Live::There(session) => session.command(&argv)?,
                };
            }
            self.end.set(live.1)?;
            self.live = Some(live.0);
        }
        let gone = || Error::new(ErrorKind::Closed, "the session has no connection");
        self.live.as_mut().ok_or_else(gone)
    }

    /// Leaves a connection that has ended. Fails if more than the connection is lost.
    fn forget_connection(&mut self) -> Result<()> {
        let Some(Live::There(session)) = self.live.take() else { return Ok(()) };
        let lost = session.in_multi() || session.is_subscribed() || self.watches;
        self.watches = false;
        if !lost {
            return Ok(());
        }
        let text = "the process that held the store ended, and with it what this session had begun \
                    (MULTI, WATCH, CLIENT TRACKING, subscriptions): begin it again";
        Err(Error::new(ErrorKind::Io, text))
    }
}

/// A session of this process, with what ends its waits.
fn here(db: &Db) -> (Live, SessionWaits) {
    let (db, session, inbox) = Session::of_handle(db);
    (Live::Here(Box::new(session)), SessionWaits::Here(db, inbox))
}
