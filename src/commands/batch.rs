//! Batches: write commands that are stored first and run together at the commit.
//!
//! Unlike a transaction, a batch reads nothing before its commit, so it cannot conflict. The commit
//! locks the keys of all commands, runs them at one read point, and writes once. The first command
//! that fails ends the commit, and nothing changes.

use std::time::{Duration, Instant};

use super::args::{Args, wrong_number};
use super::bound::{BoundCommand, scope_of};
use super::dispatch::{find, fits, keys_of, name_of, refuse_session, unknown};
use super::entry::Entry;
use super::reply::Reply;
use super::schema::spec::{Access, Flags};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::txn::execution::deadline_in;
use crate::txn::{Db, Done, Ticket};

/// Write commands that are stored first and applied together: all of them, or none if one fails.
///
/// ```
/// use std::time::Duration;
/// use lsmkv::{Db, Options};
///
/// let db = Db::open(":memory:", Options::default())?;
/// let mut batch = db.batch();
/// batch.put(b"user:1", b"ada")?;
/// batch.put_with_ttl(b"session:1", b"token", Duration::from_secs(60))?;
/// batch.command(&[b"SADD", b"users", b"1"])?;
/// batch.delete(b"user:0")?;
/// assert_eq!(db.dbsize()?, 0);
/// batch.commit()?;
/// assert_eq!(db.dbsize()?, 3);
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Debug)]
pub struct Batch {
    db: Db,
    operations: Vec<Operation>,
    strict: bool,
    /// The priority of the commands that follow.
    priority: i32,
    committed: bool,
}

#[derive(Debug)]
struct Operation {
    entry: &'static Entry,
    argv: Vec<Vec<u8>>,
    priority: i32,
    /// The position among the stored commands, from 1.
    number: usize,
}

impl Db {
    /// Creates an empty batch for this database.
    pub fn batch(&self) -> Batch {
        Batch {
            db: self.clone(),
            operations: Vec::new(),
            strict: false,
            priority: 0,
            committed: false,
        }
    }
}

impl Batch {
    /// Makes the batch strict: DEL, UNLINK, PERSIST and every form of EXPIRE fail the whole batch
    /// if one of their keys is missing.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Stores a command. A command that does not write is [`ErrorKind::Unsupported`]. An unknown
    /// command, or a wrong number of arguments, is refused at once. Any other error appears at the
    /// commit.
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<()> {
        let entry = writing_command(argv)?;
        self.record(entry, argv)
    }

    /// Stores a write command whose entry is known and whose number of arguments is right.
    pub(crate) fn record(&mut self, entry: &'static Entry, argv: &[&[u8]]) -> Result<()> {
        if self.committed {
            return Err(used_up());
        }
        let limits = self.db.limits();
        keys_of(entry, argv).into_iter().try_for_each(|key| limits.check_key(key))?;
        argv.iter().try_for_each(|arg| limits.check_value(arg))?;
        self.operations.push(Operation {
            entry,
            argv: argv.iter().map(|arg| arg.to_vec()).collect(),
            priority: self.priority,
            number: self.operations.len() + 1,
        });
        Ok(())
    }

    /// Stores a SET of `key`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.command(&[b"SET", key, value])
    }

    /// Stores a SET with PX: the key expires after `ttl`, rounded up to milliseconds.
    pub fn put_with_ttl(&mut self, key: &[u8], value: &[u8], ttl: Duration) -> Result<()> {
        if ttl.is_zero() {
            return Err(Error::new(ErrorKind::Invalid, "a time to live must be longer than zero"));
        }
        self.command(&[b"SET", key, value, b"PX", &milliseconds(ttl)])
    }

    /// Stores a DEL of `key`.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.command(&[b"DEL", key])
    }

    /// Stores a PEXPIRE: the key expires after `ttl`, rounded up to milliseconds.
    pub fn expire(&mut self, key: &[u8], ttl: Duration) -> Result<()> {
        self.command(&[b"PEXPIRE", key, &milliseconds(ttl)])
    }

    /// Stores a PERSIST of `key`.
    pub fn persist(&mut self, key: &[u8]) -> Result<()> {
        self.command(&[b"PERSIST", key])
    }

    /// Sets the priority of the commands that follow; a new batch has 0. Commands of a higher
    /// priority run first. Commands of equal priority run in the order in which they were stored.
    pub fn priority(&mut self, priority: i32) {
        self.priority = priority;
    }

    /// The number of stored commands.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether the batch stores no command.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Removes all commands. A committed batch can be used again afterwards.
    pub fn clear(&mut self) {
        self.operations.clear();
        (self.priority, self.committed) = (0, false);
    }

    /// Runs all commands and makes their writes visible at once, and durable as the sync mode says.
    /// If one fails, nothing changes, and the error names it. A second commit without
    /// [`Batch::clear`] is [`ErrorKind::Misuse`].
    pub fn commit(&mut self) -> Result<()> {
        let done = self.execute(None)?;
        self.db.settled(done)
    }

    /// Commits like [`Batch::commit`], but waits at most `limit` for other writers of its keys.
    /// After [`ErrorKind::Timeout`] nothing has changed and the batch can be committed again.
    pub fn commit_timeout(&mut self, limit: Duration) -> Result<()> {
        let done = self.execute(deadline_in(limit))?;
        self.db.settled(done)
    }

    /// Commits like [`Batch::commit`], but does not wait for the device. [`Db::wait`] waits for the
    /// ticket.
    pub fn commit_async(&mut self) -> Result<Ticket> {
        let ((), commit) = self.execute(None)?;
        Ok(Ticket::of(commit))
    }

    fn execute(&mut self, deadline: Option<Instant>) -> Result<Done<()>> {
        if self.committed {
            return Err(used_up());
        }
        let mut ordered: Vec<&Operation> = self.operations.iter().collect();
        ordered.sort_by_key(|operation| std::cmp::Reverse(operation.priority));
        let argvs: Vec<Vec<&[u8]>> = ordered.iter().map(|operation| operation.argv()).collect();
        let database = self.db.database();
        let bound = ordered.iter().zip(&argvs).map(|(operation, argv)| BoundCommand {
            entry: operation.entry,
            argv,
            database,
        });
        let scope = scope_of(bound.collect::<Vec<_>>().iter());
        let (strict, of) = (self.strict, ordered.len());
        let done = self.db.write_in(&scope, deadline, |tx| {
            let mut all = ordered.iter().zip(&argvs);
            all.try_for_each(|(operation, argv)| {
                let result = tx.attempt(|tx| operation.run(tx, argv, strict));
                result.map_err(|error| operation.blame(of, &error))
            })
        });
        let too_late = |error: &Error| error.kind() == ErrorKind::Timeout;
        self.committed = !done.as_ref().is_err_and(too_late);
        done
    }
}

impl Operation {
    fn argv(&self) -> Vec<&[u8]> {
        self.argv.iter().map(Vec::as_slice).collect()
    }

    fn run(&self, tx: &mut Tx<'_>, argv: &[&[u8]], strict: bool) -> Result<()> {
        if strict && self.entry.command.flags.has(Flags::STRICT) {
            for key in keys_of(self.entry, argv) {
                if tx.exists(&[key])? == 0 {
                    return Err(Error::new(ErrorKind::NoSuchKey, "ERR no such key"));
                }
            }
        }
        let args = Args::new(argv.get(1..).unwrap_or_default());
        match self.entry.run(tx, args)? {
            Reply::Error(text) => Err(Error::new(ErrorKind::Invalid, text)),
            _ => Ok(()),
        }
    }

    fn blame(&self, of: usize, error: &Error) -> Error {
        let context = format!("operation {} of {of}, {}", self.number, self.entry.command.name);
        error.wrap(error.kind(), context)
    }
}

pub(super) fn writing_command(argv: &[&[u8]]) -> Result<&'static Entry> {
    let name = name_of(argv)?;
    let Some(entry) = find(name) else {
        refuse_session(name)?;
        let text = match unknown(argv) {
            Reply::Error(text) => text,
            _ => String::new(),
        };
        return Err(Error::new(ErrorKind::Invalid, text));
    };
    let command = entry.command;
    if command.access == Access::Read {
        let text = format!("{} reads: a batch takes only writes", command.name);
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    if !fits(command.arity, argv.len()) {
        return Err(wrong_number(command.name));
    }
    Ok(entry)
}

/// The error for a batch that was committed and not cleared.
pub(crate) fn used_up() -> Error {
    Error::new(ErrorKind::Misuse, "the batch was committed: clear it to use it again")
}

fn milliseconds(time: Duration) -> Vec<u8> {
    let rounded = time.as_nanos().div_ceil(1_000_000).min(i64::MAX.unsigned_abs().into());
    rounded.to_string().into_bytes()
}

#[cfg(test)]
mod tests;
