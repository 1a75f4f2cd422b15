//! A session: what a connection remembers between commands. MULTI and WATCH, the selected
//! database, a name.
//!
//! - `table`: the commands that only a session knows;
//! - `connection`: those that concern nothing but the connection;
//! - `queue`: commands between MULTI and EXEC, and how EXEC runs them.

mod connection;
mod queue;
pub(crate) mod table;

use super::args::{Args, wrong_number};
use super::dispatch::{as_reply, find as find_command, finish, fits, name_of, unknown};
use super::reply::Reply;
use super::sink::ReplySink;
use crate::error::Result;
use crate::types::Db;
use crate::types::watch::Watches;
use connection::Connection;
use queue::{Answers, Into, Queue, Queued};
use table::{SESSION_ROWS, SessionRow, Verb};

/// The row of a command of a connection, in whatever case its name is given.
pub(super) fn find(name: &[u8]) -> Option<&'static SessionRow> {
    SESSION_ROWS.iter().find(|row| name.eq_ignore_ascii_case(row.name.as_bytes()))
}

/// What a connection is to a server: commands by name, with MULTI, EXEC, WATCH, SELECT and the
/// like, which concern the commands that follow.
///
/// EXEC runs its commands as one: it holds the locks of all their keys, so that without WATCH it
/// never fails because of others, and commits all in one batch. A command that fails is an error
/// in its place, and the others take effect; if the store fails, none does.
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
    /// As it was at first.
    home: Db,
    /// With the selected database.
    db: Db,
    connection: Connection,
    queue: Option<Queue>,
    watches: Watches,
}

impl Db {
    /// A session on this handle.
    pub fn session(&self) -> Session {
        Session {
            home: self.clone(),
            db: self.clone(),
            connection: Connection::new(),
            queue: None,
            watches: Watches::default(),
        }
    }
}

impl Session {
    /// Runs a command, or queues it after MULTI. An error of the command is a reply, as in
    /// [`Db::command`].
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        let name = name_of(argv)?;
        let reply = match find(name) {
            Some(row) => self.own_command(row, argv),
            None if self.queue.is_some() => Ok(self.queue_command(name, argv)),
            None => self.db.command(argv),
        };
        reply.or_else(as_reply)
    }

    /// [`Session::command`], whose reply goes to a receiver as by [`Db::command_into`]. So do the
    /// replies of EXEC; all of its commands run, also when the receiver is full.
    pub fn command_into(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        match find(name_of(argv)?) {
            None if self.queue.is_none() => self.db.command_into(argv, sink),
            Some(row) if row.verb == Verb::Exec && self.queue.is_some() => {
                let begin = sink.position();
                let done = self.exec_into(row, argv, sink);
                finish(done, begin, sink)
            }
            _ => {
                self.command(argv)?.write_to(sink);
                Ok(())
            }
        }
    }

    /// The handle with the selected database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Whether commands are being queued.
    pub fn in_multi(&self) -> bool {
        self.queue.is_some()
    }

    /// Memory that the commands queued after MULTI and the watched keys take, about.
    pub fn held_bytes(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.bytes) + self.watches.bytes()
    }

    /// The protocol that HELLO has chosen, 2 or 3.
    pub fn protocol(&self) -> u8 {
        self.connection.protocol
    }

    /// Whether the connection is to be closed: QUIT was said.
    pub fn is_over(&self) -> bool {
        self.connection.over
    }

    fn own_command(&mut self, row: &'static SessionRow, argv: &[&[u8]]) -> Result<Reply> {
        if let Err(error) = connection::check(row, argv) {
            return self.refused(row, error);
        }
        let args = Args::new(argv.get(1..).unwrap_or_default());
        match row.verb {
            Verb::Multi => Ok(self.multi()),
            Verb::Exec => self.exec(),
            Verb::Discard => Ok(self.discard()),
            Verb::Watch => self.watch(args),
            Verb::Reset => {
                *self = Session { connection: self.connection.reset(), ..self.home.session() };
                Ok(Reply::Status("RESET"))
            }
            Verb::Quit => {
                self.connection.over = true;
                Ok(Reply::OK)
            }
            verb => match &mut self.queue {
                Some(queue) => Ok(queue.push(Queued::Own(verb), argv)),
                None if verb == Verb::Unwatch => {
                    self.watches.clear();
                    Ok(Reply::OK)
                }
                None if verb == Verb::Select => self.select(args),
                None => self.connection.run(verb, args),
            },
        }
    }

    /// A command that is refused spoils what is queued; EXEC itself ends it.
    fn refused(&mut self, row: &SessionRow, error: crate::error::Error) -> Result<Reply> {
        if row.verb != Verb::Exec {
            self.spoil();
            return Err(error);
        }
        self.end_multi();
        let why = error.message().strip_prefix("ERR ").unwrap_or_default();
        Ok(Reply::Error(format!("EXECABORT Transaction discarded because of: {why}")))
    }

    fn queue_command(&mut self, name: &[u8], argv: &[&[u8]]) -> Reply {
        let Some(row) = find_command(name) else {
            self.spoil();
            return unknown(argv);
        };
        if !fits(row.arity, argv.len()) {
            self.spoil();
            return Reply::Error(wrong_number(row.name).message().to_owned());
        }
        match &mut self.queue {
            Some(queue) => queue.push(Queued::Command(row), argv),
            None => Reply::Nil,
        }
    }

    fn spoil(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.spoiled = true;
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
        self.queue = Some(Queue::default());
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
        self.db = self.db.select(connection::database(&mut args)?)?;
        Ok(Reply::OK)
    }

    fn exec(&mut self) -> Result<Reply> {
        let mut replies = Vec::new();
        let refusal = self.run_queue(&mut replies)?;
        Ok(refusal.unwrap_or(Reply::Array(replies)))
    }

    fn exec_into(
        &mut self,
        row: &SessionRow,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        let refusal = match connection::check(row, argv) {
            Ok(()) => self.run_queue(&mut Into(sink))?,
            Err(error) => Some(self.refused(row, error)?),
        };
        if let Some(reply) = refusal {
            reply.write_to(sink);
        }
        Ok(())
    }

    /// Runs what is queued; what EXEC replies instead of the answers, if it did not run.
    fn run_queue(&mut self, answers: &mut dyn Answers) -> Result<Option<Reply>> {
        let Some(queue) = self.queue.take() else {
            return Ok(Some(Reply::Error("ERR EXEC without MULTI".to_owned())));
        };
        let watches = std::mem::take(&mut self.watches);
        if queue.spoiled {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Ok(Some(Reply::Error(text.to_owned())));
        }
        let database = queue.run(&self.db, &watches, &mut self.connection, answers)?;
        drop(watches);
        let Some(database) = database else { return Ok(Some(Reply::NilArray)) };
        self.db = self.db.select(database)?;
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
