//! Commands between MULTI and EXEC, and how EXEC runs them: under the locks of all their keys,
//! over one moment, into one batch.

use super::connection::{self, Connection};
use super::table::Verb;
use crate::commands::args::Args;
use crate::commands::dispatch::{as_reply, finish, run_into};
use crate::commands::generated::dispatch::run;
use crate::commands::plan::{Planned, scope_of};
use crate::commands::reply::Reply;
use crate::commands::sink::{Head, ReplySink};
use crate::commands::spec::Row;
use crate::error::Result;
use crate::types::Db;
use crate::types::store::Scope;
use crate::types::txn::Tx;
use crate::types::watch::Watches;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Queue {
    commands: Vec<(Queued, Vec<Vec<u8>>)>,
    /// A command was refused: EXEC will refuse all.
    pub(super) spoiled: bool,
    /// Memory that the commands take, about.
    pub(super) bytes: usize,
}

/// What is queued.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queued {
    /// A command of the store.
    Command(&'static Row),
    /// A command of the connection.
    Own(Verb),
}

/// Where the replies of the commands go.
pub(super) trait Answers {
    /// So many commands are about to run.
    fn begin(&mut self, len: usize);
    /// Runs a command. Its error is its reply, and it has changed nothing.
    fn run(&mut self, step: &Step<'_>, tx: &mut Tx<'_>, own: &mut Connection) -> Result<()>;
}

impl Answers for Vec<Reply> {
    fn begin(&mut self, _len: usize) {}

    fn run(&mut self, step: &Step<'_>, tx: &mut Tx<'_>, own: &mut Connection) -> Result<()> {
        let reply = match step.what {
            Queued::Command(row) => step.attempt(tx, |tx, args| run(row.name, tx, args)),
            Queued::Own(verb) => step.run_own(verb, tx, own),
        };
        self.push(reply.or_else(as_reply)?);
        Ok(())
    }
}

/// Replies that go to a receiver.
pub(super) struct Into<'s>(pub(super) &'s mut dyn ReplySink);

impl Answers for Into<'_> {
    fn begin(&mut self, len: usize) {
        self.0.head(Head::Array, len);
    }

    fn run(&mut self, step: &Step<'_>, tx: &mut Tx<'_>, own: &mut Connection) -> Result<()> {
        let begin = self.0.position();
        let done = match step.what {
            Queued::Command(row) => step.attempt(tx, |tx, args| run_into(row, tx, args, self.0)),
            Queued::Own(verb) => step.run_own(verb, tx, own).map(|reply| reply.write_to(self.0)),
        };
        finish(done, begin, self.0)
    }
}

/// A command of the queue and the database it is for.
pub(super) struct Step<'a> {
    what: Queued,
    argv: Vec<&'a [u8]>,
    database: u32,
}

impl Queue {
    pub(super) fn push(&mut self, what: Queued, argv: &[&[u8]]) -> Reply {
        const EACH: usize = 48;
        self.bytes += argv.iter().map(|arg| arg.len() + EACH).sum::<usize>() + EACH;
        self.commands.push((what, argv.iter().map(|arg| arg.to_vec()).collect()));
        Reply::Status("QUEUED")
    }

    /// EXEC: the database that is selected afterwards; `None` if a watched key was changed.
    pub(super) fn run(
        &self,
        db: &Db,
        watches: &Watches,
        connection: &mut Connection,
        answers: &mut dyn Answers,
    ) -> Result<Option<u32>> {
        let (steps, database) = self.steps(db);
        let planned: Vec<Planned<'_>> = steps.iter().filter_map(Step::planned).collect();
        let mut run_all = |tx: &mut Tx<'_>| {
            if watches.changed(tx.store())? {
                return Ok(None);
            }
            answers.begin(steps.len());
            steps.iter().try_for_each(|step| answers.run(step, tx, connection))?;
            Ok(Some(database))
        };
        let only_reads = planned.iter().all(|command| !command.writes());
        if only_reads && watches.is_empty() {
            return db.read(&mut run_all);
        }
        let mut scope = scope_of(planned.iter());
        if let Scope::Keys(keys) = &mut scope {
            keys.extend(watches.keys());
        }
        let done = db.write_in(&scope, None, &mut run_all)?;
        db.settled(done)
    }

    /// The commands with their databases, and the database selected after the last.
    fn steps(&self, db: &Db) -> (Vec<Step<'_>>, u32) {
        let mut database = db.database();
        let mut steps = Vec::with_capacity(self.commands.len());
        for (what, argv) in &self.commands {
            let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
            if let Queued::Own(Verb::Select) = what {
                database = selected(db, &argv).unwrap_or(database);
            }
            steps.push(Step { what: *what, argv, database });
        }
        (steps, database)
    }
}

/// What SELECT selects.
fn selected(db: &Db, argv: &[&[u8]]) -> Result<u32> {
    let number = connection::database(&mut Args::new(argv.get(1..).unwrap_or_default()))?;
    db.select(number)?;
    Ok(number)
}

impl<'a> Step<'a> {
    fn planned(&self) -> Option<Planned<'_>> {
        match self.what {
            Queued::Command(row) => {
                Some(Planned { row, argv: &self.argv, database: self.database })
            }
            Queued::Own(_) => None,
        }
    }

    /// Runs a command of the store; if it fails, it has changed nothing.
    fn attempt<T>(
        &self,
        tx: &mut Tx<'_>,
        work: impl FnOnce(&mut Tx<'_>, Args<'_>) -> Result<T>,
    ) -> Result<T> {
        let args = self.args();
        tx.on_database(self.database, |tx| tx.attempt(|tx| work(tx, args)))
    }

    /// Runs a command of the connection.
    fn run_own(&self, verb: Verb, tx: &Tx<'_>, own: &mut Connection) -> Result<Reply> {
        if verb == Verb::Select {
            let number = connection::database(&mut self.args())?;
            return tx.space_of(number).map(|_| Reply::OK);
        }
        own.run(verb, self.args())
    }

    fn args(&self) -> Args<'_> {
        Args::new(self.argv.get(1..).unwrap_or_default())
    }
}
