//! The commands between MULTI and EXEC. EXEC runs them under the locks of all their keys, at one
//! read point, and commits once.

use super::connection::{self, Connection};
use super::queue_chunk::Chunk;
use crate::commands::args::Args;
use crate::commands::bound::{BoundCommand, scope_of};
use crate::commands::dispatch::{as_reply, finish};
use crate::commands::entry::Entry;
use crate::commands::reply::Reply;
use crate::commands::schema::connection::ConnectionCommand;
use crate::commands::sink::{Head, ReplySink};
use crate::error::Result;
use crate::txn::Db;
use crate::txn::Tx;
use crate::txn::execution::Scope;
use crate::txn::watch::Watches;

/// The commands queued after MULTI, in chunks: a long queue grows without being copied, takes little
/// more memory than its arguments, and can be freed piece by piece.
#[derive(Debug, Default)]
pub(super) struct Queue {
    chunks: Vec<Chunk>,
    /// The number of commands in all chunks.
    len: usize,
    /// The memory of all chunks but the last.
    full_bytes: usize,
    /// Whether a command was refused, so that EXEC fails.
    pub(super) dirty: bool,
}

/// A queued command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queued {
    /// A command of the store.
    Command(&'static Entry),
    /// A command of the connection.
    Own(ConnectionCommand),
}

/// Receives the replies of the commands.
pub(super) trait Answers {
    /// Announces that `len` commands are about to run.
    fn begin(&mut self, len: usize);
    /// Runs a command. An error of the command becomes its reply and changes nothing.
    fn run(&mut self, step: &Step<'_>, tx: &mut Tx<'_>, own: &mut Connection) -> Result<()>;
}

impl Answers for Vec<Reply> {
    fn begin(&mut self, _len: usize) {}

    fn run(&mut self, step: &Step<'_>, tx: &mut Tx<'_>, own: &mut Connection) -> Result<()> {
        let reply = match step.what {
            Queued::Command(entry) => step.attempt(tx, |tx, args| entry.run(tx, args)),
            Queued::Own(own_command) => step.run_own(own_command, tx, own),
        };
        self.push(reply.or_else(as_reply)?);
        Ok(())
    }
}

/// Writes the replies to a sink.
pub(super) struct Into<'s>(pub(super) &'s mut dyn ReplySink);

impl Answers for Into<'_> {
    fn begin(&mut self, len: usize) {
        self.0.head(Head::Array, len);
    }

    fn run(&mut self, step: &Step<'_>, tx: &mut Tx<'_>, own: &mut Connection) -> Result<()> {
        let begin = self.0.position();
        let done = match step.what {
            Queued::Command(entry) => step.attempt(tx, |tx, args| entry.run_into(tx, args, self.0)),
            Queued::Own(own_command) => {
                step.run_own(own_command, tx, own).map(|reply| reply.write_to(self.0))
            }
        };
        finish(done, begin, self.0)
    }
}

/// A queued command and its database.
pub(super) struct Step<'a> {
    pub(super) what: Queued,
    pub(super) argv: Vec<&'a [u8]>,
    database: u32,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, what: Queued, argv: &[&[u8]]) -> Reply {
        if self.chunks.last().is_none_or(|chunk| !chunk.has_room(argv)) {
            self.full_bytes += self.chunks.last().map_or(0, Chunk::memory_bytes);
            self.chunks.push(Chunk::default());
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(what, argv);
            self.len += 1;
        }
        Reply::Status("QUEUED")
    }

    /// The memory of the commands.
    pub(super) fn memory_bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Chunk::memory_bytes);
        self.chunks.capacity() * size_of::<Chunk>() + self.full_bytes + last
    }

    /// Removes one chunk; `None` if there is none.
    pub(super) fn pop_chunk(&mut self) -> Option<Chunk> {
        self.chunks.pop()
    }

    /// Runs EXEC. Returns the database selected afterwards, or `None` if a watched key has changed.
    pub(super) fn run(
        &self,
        db: &Db,
        watches: &Watches,
        connection: &mut Connection,
        answers: &mut dyn Answers,
    ) -> Result<Option<u32>> {
        let (steps, database) = self.steps(db);
        let keys = match connection.tracking.is_some() {
            true => steps.iter().flat_map(Step::tracked_keys).collect(),
            false => Vec::new(),
        };
        let run = |connection: &mut Connection| {
            Self::run_steps(&steps, database, db, watches, connection, answers)
        };
        connection.reading(keys, run)
    }

    fn run_steps(
        steps: &[Step<'_>],
        database: u32,
        db: &Db,
        watches: &Watches,
        connection: &mut Connection,
        answers: &mut dyn Answers,
    ) -> Result<Option<u32>> {
        let bound: Vec<BoundCommand<'_>> = steps.iter().filter_map(Step::bound).collect();
        let mut run_all = |tx: &mut Tx<'_>| {
            if watches.changed(tx.store())? {
                return Ok(None);
            }
            answers.begin(steps.len());
            for step in steps {
                if connection.tracking.is_none() {
                    answers.run(step, tx, connection)?;
                    continue;
                }
                step.begin_tracked(tx, connection);
                answers.run(step, tx, connection)?;
                step.end_tracked(tx);
            }
            Ok(Some(database))
        };
        let only_reads = bound.iter().all(|command| !command.writes());
        if only_reads && watches.is_empty() {
            return db.read(&mut run_all);
        }
        let mut scope = scope_of(bound.iter());
        if let Scope::Keys(keys) = &mut scope {
            keys.extend(watches.keys());
        }
        let done = db.write_in(&scope, None, &mut run_all)?;
        db.settled(done)
    }

    /// The commands with their databases, and the database selected after the last one.
    fn steps(&self, db: &Db) -> (Vec<Step<'_>>, u32) {
        let mut database = db.database();
        let mut steps = Vec::with_capacity(self.len);
        for (what, argv) in self.chunks.iter().flat_map(Chunk::calls) {
            if let Queued::Own(ConnectionCommand::Select) = what {
                database = selected(db, &argv).unwrap_or(database);
            }
            steps.push(Step { what, argv, database });
        }
        (steps, database)
    }
}

/// The database that a SELECT selects.
fn selected(db: &Db, argv: &[&[u8]]) -> Result<u32> {
    let number = connection::database(&mut Args::new(argv.get(1..).unwrap_or_default()))?;
    db.select(number)?;
    Ok(number)
}

impl<'a> Step<'a> {
    fn bound(&self) -> Option<BoundCommand<'_>> {
        match self.what {
            Queued::Command(entry) => {
                Some(BoundCommand { entry, argv: &self.argv, database: self.database })
            }
            Queued::Own(_) => None,
        }
    }

    /// Runs a command of the store. If it fails, it changes nothing.
    fn attempt<T>(
        &self,
        tx: &mut Tx<'_>,
        work: impl FnOnce(&mut Tx<'_>, Args<'_>) -> Result<T>,
    ) -> Result<T> {
        let args = self.args();
        tx.on_database(self.database, |tx| tx.attempt(|tx| work(tx, args)))
    }

    /// Runs a command of the connection.
    fn run_own(
        &self,
        command: ConnectionCommand,
        tx: &Tx<'_>,
        own: &mut Connection,
    ) -> Result<Reply> {
        if command == ConnectionCommand::Select {
            let number = connection::database(&mut self.args())?;
            return tx.space_of(number).map(|_| Reply::OK);
        }
        // As in Redis, where EXEC may subscribe to channels and patterns only.
        if command == ConnectionCommand::Ssubscribe {
            let text = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client";
            return Err(connection::invalid(text));
        }
        own.run(command, self.args())
    }

    fn args(&self) -> Args<'_> {
        Args::new(self.argv.get(1..).unwrap_or_default())
    }
}
