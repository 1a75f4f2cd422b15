//! Commands between MULTI and EXEC, and how EXEC runs them: under the locks of all their keys,
//! over one moment, into one batch.

use super::connection::{self, Connection};
use super::table::Verb;
use crate::commands::args::Args;
use crate::commands::dispatch::as_reply;
use crate::commands::generated::dispatch::run;
use crate::commands::plan::{Planned, scope_of};
use crate::commands::reply::Reply;
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
}

/// What is queued.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queued {
    /// A command of the store.
    Command(&'static Row),
    /// A command of the connection.
    Own(Verb),
}

/// What EXEC leaves.
pub(super) struct Outcome {
    pub(super) reply: Reply,
    /// The selected database.
    pub(super) database: u32,
}

/// A command of the queue and the database it is for.
struct Step<'a> {
    what: Queued,
    argv: Vec<&'a [u8]>,
    database: u32,
}

impl Queue {
    pub(super) fn push(&mut self, what: Queued, argv: &[&[u8]]) -> Reply {
        self.commands.push((what, argv.iter().map(|arg| arg.to_vec()).collect()));
        Reply::Status("QUEUED")
    }

    /// EXEC.
    pub(super) fn run(
        &self,
        db: &Db,
        watches: &Watches,
        connection: &mut Connection,
    ) -> Result<Outcome> {
        let (steps, database) = self.steps(db);
        let planned: Vec<Planned<'_>> = steps.iter().filter_map(Step::planned).collect();
        let mut run_all = |tx: &mut Tx<'_>| {
            if watches.changed(tx.store())? {
                return Ok(None);
            }
            let replies = steps.iter().map(|step| step.run(tx, connection));
            replies.collect::<Result<Vec<_>>>().map(Some)
        };
        let only_reads = planned.iter().all(|command| !command.writes());
        let replies = if only_reads && watches.is_empty() {
            db.read(&mut run_all)?
        } else {
            let mut scope = scope_of(planned.iter());
            if let Scope::Keys(keys) = &mut scope {
                keys.extend(watches.keys());
            }
            let done = db.write_in(&scope, None, &mut run_all)?;
            db.settled(done)?
        };
        Ok(match replies {
            Some(replies) => Outcome { reply: Reply::Array(replies), database },
            None => Outcome { reply: Reply::NilArray, database: db.database() },
        })
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

    /// Runs it. A command's error is its reply, and it has changed nothing.
    fn run(&self, tx: &mut Tx<'_>, connection: &mut Connection) -> Result<Reply> {
        let args = Args::new(self.argv.get(1..).unwrap_or_default());
        let result = match self.what {
            Queued::Command(row) => {
                tx.on_database(self.database, |tx| tx.attempt(|tx| run(row.name, tx, args)))
            }
            Queued::Own(Verb::Select) => {
                let number = connection::database(&mut args.clone());
                number.and_then(|number| tx.space_of(number)).map(|_| Reply::OK)
            }
            Queued::Own(verb) => connection.run(verb, args),
        };
        result.or_else(as_reply)
    }
}
