//! Finds a command by name, checks its number of arguments, locks its keys and runs it.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::args::{Args, quoted, until_zero, wrong_number};
use super::entry::Entry;
use super::generated::dispatch::ENTRIES;
use super::reply::Reply;
use super::schema::spec::{Access, Flags, KeyPositions};
use super::session;
use super::sink::ReplySink;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Db;
use crate::txn::Tx;
use crate::types::number::parse_integer;

/// Every command, by the length of its name, then by name. Not a map: memory checkers of host
/// programs report a map's interior pointer as a leak.
static BY_NAME: LazyLock<Vec<Vec<&'static Entry>>> = LazyLock::new(|| {
    let mut by_length = vec![Vec::new(); LONGEST_NAME + 1];
    for entry in ENTRIES {
        if let Some(entries) = by_length.get_mut(entry.command.name.len()) {
            entries.push(entry);
        }
    }
    by_length.iter_mut().for_each(|entries| entries.sort_unstable_by_key(|it| it.command.name));
    by_length
});

/// The length of the longest name. A test checks it.
const LONGEST_NAME: usize = 24;

impl Db {
    /// Runs any command by name. An error of the command is a reply, as a server sends it. An error
    /// of the store, such as a full disk or damage, is an `Err`.
    pub fn command(&self, argv: &[&[u8]]) -> Result<Reply> {
        name_of(argv)?;
        self.execute(argv).or_else(as_reply)
    }

    /// Runs any command by name and writes its reply to `sink`. The elements of a collection are
    /// written one by one and never held together. If the command fails, the sink is as before.
    ///
    /// The walk over a collection ends early when the sink is full. The reply in the sink is then
    /// incomplete.
    pub fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        let begin = sink.position();
        let done = self.execute_into(argv, sink);
        finish(done, begin, sink)
    }

    /// Runs any command by name. Unlike [`Db::command`], it returns an error of the command as an
    /// `Err`.
    pub(crate) fn execute(&self, argv: &[&[u8]]) -> Result<Reply> {
        match known(argv)? {
            Some(entry) => self.run_entry(entry, argv),
            None => Ok(unknown(argv)),
        }
    }

    fn execute_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        match known(argv)? {
            Some(entry) => self.run_entry_into(entry, argv, sink),
            None => {
                unknown(argv).write_to(sink);
                Ok(())
            }
        }
    }

    /// Runs a command whose entry is known. `argv` begins with the name and has the right length.
    pub(crate) fn run_entry(&self, entry: &Entry, argv: &[&[u8]]) -> Result<Reply> {
        if entry.command.flags.has(Flags::BLOCKS) && self.is_live() {
            return self.run_blocking(entry, argv, None);
        }
        self.locked(entry, argv, |tx, args| entry.run(tx, args))
    }

    /// Runs a command whose entry is known and writes its reply to `sink`.
    pub(crate) fn run_entry_into(
        &self,
        entry: &Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        // A script may run twice, so its reply is written after its commit.
        if entry.command.access == Access::Script {
            self.run_entry(entry, argv)?.write_to(sink);
            return Ok(());
        }
        if entry.command.flags.has(Flags::BLOCKS) && self.is_live() {
            self.run_blocking(entry, argv, None)?.write_to(sink);
            return Ok(());
        }
        self.locked(entry, argv, |tx, args| entry.run_into(tx, args, sink))
    }

    /// Runs `work` under the locks of a command.
    pub(super) fn locked<T>(
        &self,
        entry: &Entry,
        argv: &[&[u8]],
        mut work: impl FnMut(&mut Tx<'_>, Args<'_>) -> Result<T>,
    ) -> Result<T> {
        let args = Args::new(argv.get(1..).unwrap_or_default());
        match entry.command.access {
            Access::Read => match self.script_budget() {
                None => self.read(|tx| work(tx, args)),
                Some(budget) => self.read(|tx| {
                    tx.limit_script(budget);
                    work(tx, args)
                }),
            },
            Access::Script => self.write_script(&keys_of(entry, argv), |tx| work(tx, args)),
            _ if runs_alone(entry, argv) => self.write_alone(|tx| work(tx, args)),
            _ => self.write(&keys_of(entry, argv), |tx| work(tx, args)),
        }
    }
}

/// The entry of a command, after a check of its number of arguments. `None` for an unknown name.
pub(super) fn known(argv: &[&[u8]]) -> Result<Option<&'static Entry>> {
    let name = name_of(argv)?;
    match find(name) {
        Some(entry) if fits(entry.command.arity, argv.len()) => Ok(Some(entry)),
        Some(entry) => Err(wrong_number(entry.command.name)),
        None => refuse_session(name).map(|()| None),
    }
}

/// Removes what a failed command has written since `begin`. An error of the command becomes its
/// reply.
pub(super) fn finish(done: Result<()>, begin: usize, sink: &mut dyn ReplySink) -> Result<()> {
    let Err(error) = done else { return Ok(()) };
    sink.rollback_to(begin);
    as_reply(error)?.write_to(sink);
    Ok(())
}

/// The name of a command as the caller wrote it.
pub(crate) fn name_of<'a>(argv: &[&'a [u8]]) -> Result<&'a [u8]> {
    argv.first().copied().ok_or_else(|| Error::new(ErrorKind::Invalid, "a command needs a name"))
}

/// The entry of a command. The name may be in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Entry> {
    let mut capitals = [0; LONGEST_NAME];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    let entries = BY_NAME.get(name.len())?;
    let at = entries.binary_search_by(|it| it.command.name.as_bytes().cmp(capitals)).ok()?;
    entries.get(at).copied()
}

/// Fails for a command that needs a session.
pub(crate) fn refuse_session(name: &[u8]) -> Result<()> {
    match session::find(name) {
        None => Ok(()),
        Some((_, command)) => {
            let text = format!("{} belongs to a connection: use a session", command.name);
            Err(Error::new(ErrorKind::Misuse, text))
        }
    }
}

/// Whether a command may write any key of any database, so that nothing may run beside it.
pub(super) fn runs_alone(entry: &Entry, argv: &[&[u8]]) -> bool {
    let args = Args::new(argv.get(1..).unwrap_or_default());
    match entry.command.access {
        Access::Alone | Access::Script => true,
        Access::AloneWith(word) => args.contains_word(word),
        Access::Read | Access::Write => false,
    }
}

/// Whether `count` arguments, the name included, match the arity.
pub(super) fn fits(arity: isize, count: usize) -> bool {
    if arity < 0 { count >= arity.unsigned_abs() } else { count == arity.unsigned_abs() }
}

/// The error reply for an unknown command. It quotes the arguments, up to a length.
pub(super) fn unknown(argv: &[&[u8]]) -> Reply {
    const SHOWN: usize = 128;
    let name = argv.first().copied().unwrap_or_default();
    let quote = |bytes: &[u8], most: usize| until_zero(bytes.get(..most).unwrap_or(bytes)).to_vec();
    let mut args = Vec::new();
    for arg in argv.iter().skip(1) {
        if args.len() >= SHOWN {
            break;
        }
        let shown = quote(arg, SHOWN - args.len());
        args.extend([b"'", shown.as_slice(), b"' "].concat());
    }
    let (name, args) = (quoted(&quote(name, SHOWN)), quoted(&args));
    Reply::Error(format!("ERR unknown command '{name}', with args beginning with: {args}"))
}

/// The keys to lock. If the count of keys is malformed there are none: the command then fails
/// before it reads anything.
pub(crate) fn keys_of<'a>(entry: &Entry, argv: &[&'a [u8]]) -> SmallVec<[&'a [u8]; 4]> {
    let mut keys = SmallVec::new();
    for_each_key(entry, argv, |key| keys.push(key));
    keys
}

/// Calls `visit` with each key that [`keys_of`] returns.
#[inline]
pub(super) fn for_each_key<'a>(entry: &Entry, argv: &[&'a [u8]], visit: impl FnMut(&'a [u8])) {
    visit_keys(entry.command.keys, argv, visit);
}

#[inline]
fn visit_keys<'a>(keys: KeyPositions, argv: &[&'a [u8]], mut visit: impl FnMut(&'a [u8])) {
    match keys {
        KeyPositions::None => {}
        KeyPositions::Range { first, last, step } => {
            let end = match usize::try_from(last) {
                Ok(last) => last + 1,
                Err(_) => (argv.len() + 1).saturating_sub(last.unsigned_abs()),
            };
            let range = argv.get(first..end.min(argv.len())).unwrap_or_default();
            range.iter().step_by(step).for_each(|key| visit(key));
        }
        KeyPositions::Counted { at, before } => {
            let count = argv.get(at).and_then(|text| parse_integer(text).ok()).unwrap_or(0);
            let count = usize::try_from(count).unwrap_or(0);
            let counted = argv.get(at + 1..).unwrap_or_default().iter().take(count);
            let fixed = argv.get(1..=before).unwrap_or_default();
            fixed.iter().chain(counted).for_each(|key| visit(key));
        }
    }
}

impl KeyPositions {
    /// The keys among arguments, the command's name first. A count that is no number counts none.
    pub fn keys<'a>(self, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let mut keys = Vec::new();
        visit_keys(self, argv, |key| keys.push(key));
        keys
    }
}

const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// Turns an error that Redis would reply into that reply. Errors of the store stay errors.
pub(super) fn as_reply(error: Error) -> Result<Reply> {
    match error.kind() {
        ErrorKind::WrongType
        | ErrorKind::NotInteger
        | ErrorKind::NotFloat
        | ErrorKind::Overflow
        | ErrorKind::Syntax
        | ErrorKind::OutOfRange
        | ErrorKind::NoSuchKey
        | ErrorKind::Invalid => Ok(Reply::Error(error.message().to_owned())),
        // A slow script, not a store that is open elsewhere.
        ErrorKind::Busy if error.message().starts_with("BUSY ") => {
            Ok(Reply::Error(error.message().to_owned()))
        }
        // A full transaction, which Redis does not know.
        ErrorKind::TooLarge if error.message().starts_with("ERR ") => {
            Ok(Reply::Error(error.message().to_owned()))
        }
        // Redis has one limit for keys and values.
        ErrorKind::TooLarge => Ok(Reply::Error(TOO_LONG.to_owned())),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn every_command_is_found_in_any_case_and_nothing_else_is() {
        for name in ENTRIES.iter().map(|entry| entry.command.name) {
            let found = |name: &str| find(name.as_bytes()).map(|entry| entry.command.name);
            assert_eq!(found(name), Some(name));
            assert_eq!(found(&name.to_lowercase()), Some(name));
            assert_eq!(found(&format!("{name}?")), None);
        }
        assert!(find(b"").is_none() && find(&[b'A'; LONGEST_NAME + 1]).is_none());
    }

    /// MGET and HMGET copied each value once more into their reply.
    #[test]
    fn a_reply_shares_large_values_with_the_store() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let value = [b'v'; 4096];
        db.set(b"k", &value).unwrap();
        db.hset(b"h", &[(b"f", &value)]).unwrap();
        let stored = db.get(b"k").unwrap().unwrap();
        let field = db.hget(b"h", b"f").unwrap().unwrap();
        for (argv, stored) in
            [(&[&b"MGET"[..], b"k"][..], stored), (&[b"HMGET", b"h", b"f"], field)]
        {
            let Reply::Array(values) = db.command(argv).unwrap() else { panic!("{argv:?}") };
            let [Reply::Bulk(value)] = values.as_slice() else { panic!("{argv:?}") };
            assert_eq!(value.as_ptr(), stored.as_ptr(), "{argv:?}");
        }
    }

    #[test]
    fn what_is_longer_than_the_limits_is_refused_by_a_reply() {
        let options = Options { max_key_bytes: 8, max_value_bytes: 16, ..Options::default() };
        let db = Db::open(":memory:", options).unwrap();
        let (key, value) = ([b'k'; 9], [b'v'; 17]);
        for argv in [
            &[&b"SET"[..], &key, b"v"][..],
            &[b"GET", &key],
            &[b"SET", b"k", &value],
            &[b"HSET", b"h", &value, b"v"],
            &[b"HSET", b"h", b"f", &value],
            &[b"SADD", b"s", &value],
            &[b"RPUSH", b"l", &value],
            &[b"ZADD", b"z", b"1", &value],
        ] {
            assert_eq!(db.command(argv).unwrap(), Reply::Error(TOO_LONG.into()), "{argv:?}");
        }
        assert_eq!(db.command(&[b"DBSIZE"]).unwrap(), Reply::Int(0));
        assert_eq!(db.command(&[b"APPEND", b"k", &[b'v'; 16]]).unwrap(), Reply::Int(16));
        let longer = db.command(&[b"APPEND", b"k", b"v"]).unwrap();
        assert_eq!(longer, Reply::Error(TOO_LONG.into()));
    }
}
