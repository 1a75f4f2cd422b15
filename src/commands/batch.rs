//! Batches: write commands that are stored, and run together at the commit.
//!
//! Unlike a transaction a batch reads nothing before its commit, so it cannot conflict: the commit
//! locks the keys of all operations, runs them over one moment, and writes once. The first that
//! fails ends it, and nothing was changed.

use std::time::{Duration, Instant};

use super::args::{Args, wrong_number};
use super::dispatch::{find, fits, keys_of, name_of, refuse_session, unknown};
use super::generated::dispatch::run;
use super::plan::{Planned, scope_of};
use super::reply::Reply;
use super::spec::{Access, Row};
use crate::error::{Error, ErrorKind, Result};
use crate::types::store::deadline_in;
use crate::types::txn::Tx;
use crate::types::{Db, Done, Ticket};

/// Operations that a strict batch runs only if their keys exist.
const NEED_THEIR_KEYS: [&str; 7] =
    ["DEL", "EXPIRE", "EXPIREAT", "PERSIST", "PEXPIRE", "PEXPIREAT", "UNLINK"];

/// Writes that are stored and applied together: all or, if one fails, none.
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
    /// Of the operations that follow.
    priority: i32,
    committed: bool,
}

#[derive(Debug)]
struct Operation {
    row: &'static Row,
    argv: Vec<Vec<u8>>,
    priority: i32,
    /// Its place among those stored, from 1.
    number: usize,
}

impl Db {
    /// An empty batch for this database.
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
    /// From now on DEL, UNLINK, PERSIST and EXPIRE in all its forms fail the whole batch if a key
    /// of theirs is missing.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Stores a command. A command that does not write is [`ErrorKind::Unsupported`]; an unknown
    /// one, or one with the wrong number of arguments, is refused at once; what else is wrong with
    /// it comes out at the commit.
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<()> {
        let row = writing_command(argv)?;
        if self.committed {
            return Err(used_up());
        }
        let limits = self.db.limits();
        keys_of(row, argv).into_iter().try_for_each(|key| limits.check_key(key))?;
        argv.iter().try_for_each(|arg| limits.check_value(arg))?;
        self.operations.push(Operation {
            row,
            argv: argv.iter().map(|arg| arg.to_vec()).collect(),
            priority: self.priority,
            number: self.operations.len() + 1,
        });
        Ok(())
    }

    /// SET.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.command(&[b"SET", key, value])
    }

    /// SET with PX: the key expires after `ttl`, which is rounded up to milliseconds.
    pub fn put_with_ttl(&mut self, key: &[u8], value: &[u8], ttl: Duration) -> Result<()> {
        if ttl.is_zero() {
            return Err(Error::new(ErrorKind::Invalid, "a time to live must be longer than zero"));
        }
        self.command(&[b"SET", key, value, b"PX", &milliseconds(ttl)])
    }

    /// DEL.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.command(&[b"DEL", key])
    }

    /// PEXPIRE: the key expires after `ttl`, which is rounded up to milliseconds.
    pub fn expire(&mut self, key: &[u8], ttl: Duration) -> Result<()> {
        self.command(&[b"PEXPIRE", key, &milliseconds(ttl)])
    }

    /// PERSIST.
    pub fn persist(&mut self, key: &[u8]) -> Result<()> {
        self.command(&[b"PERSIST", key])
    }

    /// The priority of the operations that follow, 0 at first: higher ones run before lower ones,
    /// equal ones in the order in which they were stored.
    pub fn priority(&mut self, priority: i32) {
        self.priority = priority;
    }

    /// How many operations are stored.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether none is stored.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Forgets all operations. A batch that was committed can be used again.
    pub fn clear(&mut self) {
        self.operations.clear();
        (self.priority, self.committed) = (0, false);
    }

    /// Runs all operations and makes what they wrote visible at once, and durable as the sync mode
    /// says. If one fails nothing is changed, and the error names it. A second commit without
    /// [`Batch::clear`] is [`ErrorKind::Misuse`].
    pub fn commit(&mut self) -> Result<()> {
        let done = self.execute(None)?;
        self.db.settled(done)
    }

    /// As `commit`, but waits for other writers of its keys no longer than `limit`. After
    /// [`ErrorKind::Timeout`] nothing was changed and it can be committed again.
    pub fn commit_timeout(&mut self, limit: Duration) -> Result<()> {
        let done = self.execute(deadline_in(limit))?;
        self.db.settled(done)
    }

    /// As `commit`, but does not wait for the device: see [`Db::wait`].
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
        let planned = ordered.iter().zip(&argvs).map(|(operation, argv)| Planned {
            row: operation.row,
            argv,
            database,
        });
        let scope = scope_of(planned.collect::<Vec<_>>().iter());
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
        if strict && NEED_THEIR_KEYS.contains(&self.row.name) {
            for key in keys_of(self.row, argv) {
                if tx.exists(&[key])? == 0 {
                    return Err(Error::new(ErrorKind::NoSuchKey, "ERR no such key"));
                }
            }
        }
        let args = Args::new(argv.get(1..).unwrap_or_default());
        match run(self.row.name, tx, args)? {
            Reply::Error(text) => Err(Error::new(ErrorKind::Invalid, text)),
            _ => Ok(()),
        }
    }

    fn blame(&self, of: usize, error: &Error) -> Error {
        let context = format!("operation {} of {of}, {}", self.number, self.row.name);
        error.wrap(error.kind(), context)
    }
}

fn writing_command(argv: &[&[u8]]) -> Result<&'static Row> {
    let name = name_of(argv)?;
    let Some(row) = find(name) else {
        refuse_session(name)?;
        let text = match unknown(argv) {
            Reply::Error(text) => text,
            _ => String::new(),
        };
        return Err(Error::new(ErrorKind::Invalid, text));
    };
    if row.access == Access::Read {
        let text = format!("{} reads: a batch takes only writes", row.name);
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    if !fits(row.arity, argv.len()) {
        return Err(wrong_number(row.name));
    }
    Ok(row)
}

fn used_up() -> Error {
    Error::new(ErrorKind::Misuse, "the batch was committed: clear it to use it again")
}

fn milliseconds(time: Duration) -> Vec<u8> {
    let rounded = time.as_nanos().div_ceil(1_000_000).min(i64::MAX.unsigned_abs().into());
    rounded.to_string().into_bytes()
}

#[cfg(test)]
mod tests;
