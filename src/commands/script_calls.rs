//! Scripts and functions as methods of `Db`, and scripts as values.

use std::sync::OnceLock;

use bytes::Bytes;
use smallvec::SmallVec;

use super::reply::Reply;
use super::scripts::NO_SCRIPT;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Db;

/// A Lua script that is compiled once and then run by its digest.
///
/// ```
/// use lsmkv::{Db, Options, Reply, Script};
///
/// let db = Db::open(":memory:", Options::default())?;
/// let take = Script::new(
///     "local left = tonumber(redis.call('GET', KEYS[1]) or 0)
///      if left < tonumber(ARGV[1]) then return false end
///      return redis.call('DECRBY', KEYS[1], ARGV[1])",
/// );
/// db.set(b"stock", b"5")?;
/// assert_eq!(take.run(&db, &[b"stock"], &[b"3"])?, Reply::Int(2));
/// assert_eq!(take.run(&db, &[b"stock"], &[b"3"])?, Reply::Nil);
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Debug)]
pub struct Script {
    source: Vec<u8>,
    /// The digest, once a store has told it.
    sha1: OnceLock<Vec<u8>>,
}

impl Script {
    /// A script of this text. It is compiled when it is first run or loaded.
    pub fn new(source: impl Into<Vec<u8>>) -> Self {
        Self { source: source.into(), sha1: OnceLock::new() }
    }

    /// The text.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Runs the script as one command: EVALSHA, or EVAL where the store does not know it. `keys`
    /// and `args` are its tables KEYS and ARGV.
    pub fn run(&self, db: &Db, keys: &[&[u8]], args: &[&[u8]]) -> Result<Reply> {
        self.run_as(db, [b"EVALSHA", b"EVAL"], keys, args)
    }

    /// Runs a script that only reads: EVALSHA_RO, or EVAL_RO where the store does not know it.
    pub fn run_ro(&self, db: &Db, keys: &[&[u8]], args: &[&[u8]]) -> Result<Reply> {
        self.run_as(db, [b"EVALSHA_RO", b"EVAL_RO"], keys, args)
    }

    /// Compiles the script in a store before its first run, and returns its digest.
    pub fn load(&self, db: &Db) -> Result<String> {
        let sha1 = db.script_load(&self.source)?;
        let _ = self.sha1.set(sha1.as_bytes().to_vec());
        Ok(sha1)
    }

    fn run_as(
        &self,
        db: &Db,
        [by_digest, by_text]: [&[u8]; 2],
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Reply> {
        if self.sha1.get().is_none() {
            self.load(db)?;
        }
        let sha1 = self.sha1.get().map(Vec::as_slice).unwrap_or_default();
        match db.run_script_command(by_digest, sha1, keys, args) {
            // Nothing has run.
            Err(error) if error.message() == NO_SCRIPT => {
                db.run_script_command(by_text, &self.source, keys, args)
            }
            result => result,
        }
    }
}

/// What FUNCTION RESTORE does with the libraries that a store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestorePolicy {
    /// Keeps them. A library of the payload that exists already is an error.
    #[default]
    Append,
    /// Removes all of them.
    Flush,
    /// Keeps those that the payload does not replace.
    Replace,
}

/// Scripts and functions. A script that fails is an `Err`, and nothing that it wrote remains; with
/// the option `script_keeps_writes` its error is a reply, and its writes stay. docs/SCRIPTING.md
/// describes what a script may do.
///
/// ```
/// use lsmkv::{Db, Options, Reply};
///
/// let db = Db::open(":memory:", Options::default())?;
/// let sum = db.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", &[b"n"], &[b"5"])?;
/// assert_eq!(sum, Reply::Int(5));
///
/// db.function_load(
///     "#!lua name=counters
///      redis.register_function('add', function(keys, args)
///          return redis.call('INCRBY', keys[1], args[1])
///      end)",
///     false,
/// )?;
/// assert_eq!(db.fcall("add", &[b"n"], &[b"2"])?, Reply::Int(7));
/// # Ok::<(), lsmkv::Error>(())
/// ```
impl Db {
    /// EVAL: runs a Lua script as one command. `keys` and `args` are its tables KEYS and ARGV.
    pub fn eval(&self, script: impl AsRef<[u8]>, keys: &[&[u8]], args: &[&[u8]]) -> Result<Reply> {
        self.run_script_command(b"EVAL", script.as_ref(), keys, args)
    }

    /// EVAL_RO: runs a Lua script that only reads.
    pub fn eval_ro(
        &self,
        script: impl AsRef<[u8]>,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Reply> {
        self.run_script_command(b"EVAL_RO", script.as_ref(), keys, args)
    }

    /// EVALSHA: runs a script that the store knows, by its digest. [`Script`] loads it by itself.
    pub fn evalsha(&self, sha1: impl AsRef<[u8]>, keys: &[&[u8]], args: &[&[u8]]) -> Result<Reply> {
        self.run_script_command(b"EVALSHA", sha1.as_ref(), keys, args)
    }

    /// EVALSHA_RO: runs a script that only reads, by its digest.
    pub fn evalsha_ro(
        &self,
        sha1: impl AsRef<[u8]>,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Reply> {
        self.run_script_command(b"EVALSHA_RO", sha1.as_ref(), keys, args)
    }

    /// FCALL: runs a function of a library as one command. `keys` and `args` are its arguments.
    pub fn fcall(
        &self,
        function: impl AsRef<[u8]>,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Reply> {
        self.run_script_command(b"FCALL", function.as_ref(), keys, args)
    }

    /// FCALL_RO: runs a function of a library that only reads.
    pub fn fcall_ro(
        &self,
        function: impl AsRef<[u8]>,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Reply> {
        self.run_script_command(b"FCALL_RO", function.as_ref(), keys, args)
    }

    /// SCRIPT LOAD: compiles a script, keeps it while the store is open, and returns its digest.
    pub fn script_load(&self, script: impl AsRef<[u8]>) -> Result<String> {
        text(self.execute(&[b"SCRIPT", b"LOAD", script.as_ref()])?)
    }

    /// SCRIPT EXISTS: tells which of these digests are known.
    pub fn script_exists(&self, digests: &[&str]) -> Result<Vec<bool>> {
        if digests.is_empty() {
            return Ok(Vec::new());
        }
        let mut argv: Vec<&[u8]> = vec![b"SCRIPT", b"EXISTS"];
        argv.extend(digests.iter().map(|digest| digest.as_bytes()));
        let known = |reply: &Reply| *reply == Reply::Int(1);
        match self.execute(&argv)? {
            Reply::Array(items) => Ok(items.iter().map(known).collect()),
            other => Err(unexpected(&other)),
        }
    }

    /// SCRIPT FLUSH: forgets all scripts.
    pub fn script_flush(&self) -> Result<()> {
        self.execute(&[b"SCRIPT", b"FLUSH"]).map(drop)
    }

    /// SCRIPT KILL: ends the script that has run longest.
    pub fn script_kill(&self) -> Result<()> {
        self.execute(&[b"SCRIPT", b"KILL"]).map(drop)
    }

    /// FUNCTION LOAD: stores a library of functions and returns its name. One that exists is an
    /// error, unless `replace` is true.
    pub fn function_load(&self, code: impl AsRef<[u8]>, replace: bool) -> Result<String> {
        let code = code.as_ref();
        text(match replace {
            true => self.execute(&[b"FUNCTION", b"LOAD", b"REPLACE", code]),
            false => self.execute(&[b"FUNCTION", b"LOAD", code]),
        }?)
    }

    /// FUNCTION DELETE: removes a library.
    pub fn function_delete(&self, library: impl AsRef<[u8]>) -> Result<()> {
        self.execute(&[b"FUNCTION", b"DELETE", library.as_ref()]).map(drop)
    }

    /// FUNCTION LIST: the libraries whose names match a pattern, with their code if wanted. Each is
    /// a map, as in Redis.
    pub fn function_list(&self, pattern: impl AsRef<[u8]>, with_code: bool) -> Result<Reply> {
        let mut argv: SmallVec<[&[u8]; 5]> = SmallVec::new();
        argv.extend([b"FUNCTION", b"LIST".as_slice(), b"LIBRARYNAME", pattern.as_ref()]);
        argv.extend(with_code.then_some(b"WITHCODE".as_slice()));
        self.execute(&argv)
    }

    /// FUNCTION DUMP: all libraries as bytes that [`Db::function_restore`] and Redis read.
    pub fn function_dump(&self) -> Result<Bytes> {
        match self.execute(&[b"FUNCTION", b"DUMP"])? {
            Reply::Bulk(payload) => Ok(payload),
            other => Err(unexpected(&other)),
        }
    }

    /// FUNCTION RESTORE: stores the libraries that FUNCTION DUMP returned here or in Redis.
    pub fn function_restore(&self, payload: &[u8], policy: RestorePolicy) -> Result<()> {
        let policy: &[u8] = match policy {
            RestorePolicy::Append => b"APPEND",
            RestorePolicy::Flush => b"FLUSH",
            RestorePolicy::Replace => b"REPLACE",
        };
        self.execute(&[b"FUNCTION", b"RESTORE", payload, policy]).map(drop)
    }

    /// FUNCTION FLUSH: removes all libraries.
    pub fn function_flush(&self) -> Result<()> {
        self.execute(&[b"FUNCTION", b"FLUSH"]).map(drop)
    }

    /// FUNCTION STATS: the numbers of libraries and functions, and the function that has run
    /// longest, as in Redis.
    pub fn function_stats(&self) -> Result<Reply> {
        self.execute(&[b"FUNCTION", b"STATS"])
    }

    /// FUNCTION KILL: ends the function that has run longest.
    pub fn function_kill(&self) -> Result<()> {
        self.execute(&[b"FUNCTION", b"KILL"]).map(drop)
    }

    fn run_script_command(
        &self,
        command: &[u8],
        script: &[u8],
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Reply> {
        let count = keys.len().to_string();
        let mut argv: SmallVec<[&[u8]; 8]> = SmallVec::new();
        argv.extend([command, script, count.as_bytes()]);
        argv.extend(keys.iter().chain(args).copied());
        self.execute(&argv)
    }
}

/// A reply of text.
fn text(reply: Reply) -> Result<String> {
    match reply {
        Reply::Bulk(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(reply: &Reply) -> Error {
    let text = match reply {
        Reply::Error(text) => text.clone(),
        other => format!("an unexpected reply: {other:?}"),
    };
    Error::new(ErrorKind::Invalid, text)
}
