//! A session: what a connection remembers between commands, such as MULTI, WATCH, the selected
//! database and a name.
//!
//! - `connection`: commands that concern only the connection; `clients`: CLIENT;
//! - `info`, `settings`: INFO and CONFIG, for programs that ask a server for them;
//! - `nowait`: a blocking command for who must not block;
//! - `long_value`: a command whose value arrives in parts;
//! - `subscriptions`: channels that the connection listens to, and their messages;
//! - `tracking`: CLIENT TRACKING, and commands of a session that tracks the keys it reads;
//! - `queue`: the commands between MULTI and EXEC, and how EXEC runs them;
//! - `queue_chunk`: a piece of them;
//! - `abandoned`: those of a transaction that never runs.

mod abandoned;
mod clients;
mod connection;
mod info;
#[cfg(feature = "server")]
mod long_value;
mod nowait;
mod queue;
mod queue_chunk;
mod settings;
mod subscriptions;
mod tracking;

use super::WaitingPop;
use super::args::{Args, wrong_number};
use super::dispatch::{as_reply, find as find_command, finish, fits, name_of, unknown};
use super::reply::Reply;
use super::schema::connection::{CONNECTION, ConnectionCommand};
use super::schema::spec::Command;
use super::sink::ReplySink;
use crate::error::Result;
use crate::txn::Db;
use crate::txn::watch::Watches;
pub use abandoned::AbandonedCommands;
use connection::Connection;
pub(super) use connection::database;
#[cfg(feature = "server")]
pub(crate) use long_value::LongValue;
use queue::{Answers, Into, Queue, Queued};
pub use tracking::SessionTrackingState;

/// A connection command with its entry.
pub(super) type Known = &'static (ConnectionCommand, Command);

/// Finds a connection command by name, in any case.
pub(super) fn find(name: &[u8]) -> Option<Known> {
    CONNECTION.iter().find(|(_, command)| name.eq_ignore_ascii_case(command.name.as_bytes()))
}

/// A connection to the store, as a server has it. It runs commands by name, with MULTI, EXEC,
/// WATCH, SELECT and others that affect later commands.
///
/// EXEC runs its commands as one. It locks all their keys, so without WATCH other writers never
/// make it fail, and it commits once. A command that fails is an error in its place, and the others
/// take effect. If the store fails, none takes effect.
///
/// ```
/// use lsmkv::{Db, Options, Reply};
///
/// let db = Db::open(":memory:", Options::default())?;
/// let mut session = db.session();
/// session.command(&[b"WATCH", b"stock"])?;
/// session.command(&[b"MULTI"])?;
/// assert_eq!(session.command(&[b"DECR", b"stock"])?, Reply::Status("QUEUED"));
/// assert_eq!(session.command(&[b"EXEC"])?, Reply::Array(vec![Reply::Int(-1)]));
///
/// session.command(&[b"WATCH", b"stock"])?;
/// db.set(b"stock", b"100")?;
/// session.command(&[b"MULTI"])?;
/// session.command(&[b"DECR", b"stock"])?;
/// assert_eq!(session.command(&[b"EXEC"])?, Reply::NilArray);
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Debug)]
pub struct Session {
    /// The handle with the selected database.
    db: Db,
    connection: Connection,
    queue: Option<Box<Queue>>,
    watches: Watches,
    /// The keys of which the session wants to know whether they may hold an element.
    noticed: Option<WaitingPop>,
}

impl Db {
    /// Creates a session on this handle.
    pub fn session(&self) -> Session {
        Session {
            db: self.clone(),
            connection: Connection::new(self.clone()),
            queue: None,
            watches: Watches::default(),
            noticed: None,
        }
    }
}

impl Session {
    /// Runs a command, or queues it after MULTI. An error of the command is a reply, as in
    /// [`Db::command`].
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        let name = name_of(argv)?;
        self.end_notice();
        let reply = match find(name) {
            Some(known) => self.own_command(known, argv),
            None if self.queue.is_some() => Ok(self.queue_command(name, argv)),
            None if self.connection.tracking.is_some() => self.run_tracked(argv),
            None => self.db.command(argv),
        };
        if self.connection.tracking.is_some() && self.queue.is_none() {
            self.end_caching(name);
        }
        reply.or_else(as_reply)
    }

    /// Runs a command, or queues it after MULTI, and writes its reply to `sink`. EXEC writes the
    /// replies of all its commands there. All of them run even if the sink is full.
    pub fn command_into(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        self.end_notice();
        match find(name_of(argv)?) {
            None if self.queue.is_none() && self.connection.tracking.is_none() => {
                self.db.command_into(argv, sink)
            }
            Some(known @ (ConnectionCommand::Exec, _)) if self.queue.is_some() => {
                let begin = sink.position();
                let done = self.exec_into(known, argv, sink);
                self.end_caching(b"EXEC");
                finish(done, begin, sink)
            }
            _ => {
                self.command(argv)?.write_to(sink);
                Ok(())
            }
        }
    }

    /// Shows the session in the CLIENT LIST of the store's sessions.
    pub(crate) fn list_as_client(&mut self) {
        self.connection.list();
    }

    /// Lets commands run on another handle of the store from now on.
    pub(crate) fn use_db(&mut self, db: Db) {
        self.connection.note_database(db.database());
        self.db = db;
    }

    /// The handle with the selected database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Whether commands are being queued.
    pub fn in_multi(&self) -> bool {
        self.queue.is_some()
    }

    /// The number of commands queued since MULTI.
    pub fn queued_commands(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.len())
    }

    /// Makes EXEC fail with EXECABORT, as a refused command after MULTI does. Outside MULTI it does
    /// nothing.
    ///
    /// ```
    /// # let db = lsmkv::Db::open(":memory:", lsmkv::Options::default())?;
    /// # let mut session = db.session();
    /// session.command(&[b"MULTI"])?;
    /// session.mark_dirty();
    /// let reply = session.command(&[b"EXEC"])?;
    /// assert!(matches!(reply, lsmkv::Reply::Error(text) if text.starts_with("EXECABORT")));
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn mark_dirty(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.dirty = true;
        }
    }

    /// The approximate memory of the queued commands, the watched keys, the subscriptions and the
    /// messages that wait.
    pub fn held_bytes(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, |queue| queue.memory_bytes());
        queued + self.watches.bytes() + self.connection.held_bytes()
    }

    /// The protocol that HELLO chose, 2 or 3.
    pub fn protocol(&self) -> u8 {
        self.connection.peer().protocol()
    }

    /// Sets the protocol, 2 or 3, as HELLO does: for a server that runs HELLO itself.
    pub fn set_protocol(&self, protocol: u8) {
        self.connection.peer().set_protocol(protocol);
    }

    /// The number that CLIENT ID shows.
    pub fn id(&self) -> u64 {
        self.connection.peer().id
    }

    /// Ends the effect of CLIENT CACHING: it is meant for the next command.
    fn end_caching(&mut self, name: &[u8]) {
        if !name.eq_ignore_ascii_case(b"CLIENT") {
            tracking::end_caching(&mut self.connection.tracking);
        }
    }

    /// Whether the connection should close, because QUIT ran.
    pub fn is_over(&self) -> bool {
        self.connection.over
    }

    fn own_command(&mut self, known: Known, argv: &[&[u8]]) -> Result<Reply> {
        if let Err(error) = connection::check(known, argv) {
            return self.refused(known, error);
        }
        let args = Args::new(argv.get(1..).unwrap_or_default());
        match known.0 {
            ConnectionCommand::Multi => Ok(self.multi()),
            ConnectionCommand::Exec => self.exec(),
            ConnectionCommand::Discard => Ok(self.discard()),
            ConnectionCommand::Watch => self.watch(args),
            ConnectionCommand::Reset => {
                self.connection.reset()?;
                self.use_db(self.connection.home.clone());
                self.end_multi();
                Ok(Reply::Status("RESET"))
            }
            ConnectionCommand::Quit => {
                self.connection.over = true;
                Ok(Reply::OK)
            }
            other => match &mut self.queue {
                Some(queue) => Ok(queue.push(Queued::Own(other), argv)),
                None if other == ConnectionCommand::Unwatch => {
                    self.watches.clear();
                    Ok(Reply::OK)
                }
                None if other == ConnectionCommand::Select => self.select(args),
                None => self.connection.run(other, args),
            },
        }
    }

    /// Handles a refused command. It makes EXEC fail, and a refused EXEC ends MULTI.
    fn refused(&mut self, known: Known, error: crate::error::Error) -> Result<Reply> {
        if known.0 != ConnectionCommand::Exec {
            self.mark_dirty();
            return Err(error);
        }
        self.end_multi();
        let why = error.message().strip_prefix("ERR ").unwrap_or_default();
        Ok(Reply::Error(format!("EXECABORT Transaction discarded because of: {why}")))
    }

    fn queue_command(&mut self, name: &[u8], argv: &[&[u8]]) -> Reply {
        let Some(entry) = find_command(name) else {
            self.mark_dirty();
            return unknown(argv);
        };
        if !fits(entry.command.arity, argv.len()) {
            self.mark_dirty();
            return Reply::Error(wrong_number(entry.command.name).message().to_owned());
        }
        match &mut self.queue {
            Some(queue) => queue.push(Queued::Command(entry), argv),
            None => Reply::Nil,
        }
    }

    fn end_multi(&mut self) {
        self.queue = None;
        self.watches.clear();
    }

    fn multi(&mut self) -> Reply {
        if self.queue.is_some() {
            return Reply::Error("ERR MULTI calls can not be nested".to_owned());
        }
        self.queue = Some(Box::default());
        Reply::OK
    }

    fn discard(&mut self) -> Reply {
        if self.queue.is_none() {
            return Reply::Error("ERR DISCARD without MULTI".to_owned());
        }
        self.end_multi();
        Reply::OK
    }

    fn watch(&mut self, mut args: Args<'_>) -> Result<Reply> {
        if self.queue.is_some() {
            return Ok(Reply::Error("ERR WATCH inside MULTI is not allowed".to_owned()));
        }
        self.db.watch(&mut self.watches, args.all())?;
        Ok(Reply::OK)
    }

    fn select(&mut self, mut args: Args<'_>) -> Result<Reply> {
        self.use_db(self.db.select(connection::database(&mut args)?)?);
        Ok(Reply::OK)
    }

    fn exec(&mut self) -> Result<Reply> {
        let mut replies = Vec::new();
        let refusal = self.run_queue(&mut replies)?;
        Ok(refusal.unwrap_or(Reply::Array(replies)))
    }

    fn exec_into(&mut self, known: Known, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        let refusal = match connection::check(known, argv) {
            Ok(()) => self.run_queue(&mut Into(sink))?,
            Err(error) => Some(self.refused(known, error)?),
        };
        if let Some(reply) = refusal {
            reply.write_to(sink);
        }
        Ok(())
    }

    /// Runs the queue. Returns the reply of EXEC if the queue did not run.
    fn run_queue(&mut self, answers: &mut dyn Answers) -> Result<Option<Reply>> {
        let Some(queue) = self.queue.take() else {
            return Ok(Some(Reply::Error("ERR EXEC without MULTI".to_owned())));
        };
        let watches = std::mem::take(&mut self.watches);
        if queue.dirty {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Ok(Some(Reply::Error(text.to_owned())));
        }
        let database = queue.run(&self.db, &watches, &mut self.connection, answers)?;
        drop(watches);
        let Some(database) = database else { return Ok(Some(Reply::NilArray)) };
        self.use_db(self.db.select(database)?);
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
