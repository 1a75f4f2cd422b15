//! Finds a command by name, checks its number of arguments, locks its keys, runs it.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::args::{Args, quoted, until_zero, wrong_number};
use super::generated::dispatch::{run, stream};
use super::reply::Reply;
use super::session;
use super::sink::ReplySink;
use super::spec::{Access, Keys, Row};
use super::table::GROUPS;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Db;
use crate::types::number::parse_integer;
use crate::types::txn::Tx;

/// Every row, by the length of its name and by name. No map: the memory checkers of hosts take a
/// map's interior pointer for a leak.
static ROWS: LazyLock<Vec<Vec<&'static Row>>> = LazyLock::new(|| {
    let mut rows = vec![Vec::new(); LONGEST_NAME + 1];
    for row in GROUPS.iter().flat_map(|group| group.rows) {
        if let Some(alike) = rows.get_mut(row.name.len()) {
            alike.push(row);
        }
    }
    rows.iter_mut().for_each(|alike| alike.sort_unstable_by_key(|row| row.name));
    rows
});

/// No name is longer: a test sees to it.
const LONGEST_NAME: usize = 24;

impl Db {
    /// Runs any command by name. An error of the command is a reply, as a server would send it;
    /// an error of the store (a full disk, damage) is an error.
    pub fn command(&self, argv: &[&[u8]]) -> Result<Reply> {
        name_of(argv)?;
        self.execute(argv).or_else(as_reply)
    }

    /// [`Db::command`], whose reply goes to a receiver: that of a command that replies all of a
    /// collection piece by piece, without being held. If it fails, nothing of it is left there.
    ///
    /// The walk ends early when the receiver is full; what it has is then incomplete.
    pub fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        let begin = sink.position();
        let done = self.execute_into(argv, sink);
        finish(done, begin, sink)
    }

    /// [`Db::command`], but an error of the command is an error.
    pub(crate) fn execute(&self, argv: &[&[u8]]) -> Result<Reply> {
        match known(argv)? {
            Some(row) => self.run_row(row, argv, |tx, args| run(row.name, tx, args)),
            None => Ok(unknown(argv)),
        }
    }

    fn execute_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        match known(argv)? {
            Some(row) => self.run_row(row, argv, |tx, args| run_into(row, tx, args, sink)),
            None => {
                unknown(argv).write_to(sink);
                Ok(())
            }
        }
    }

    fn run_row<T>(
        &self,
        row: &Row,
        argv: &[&[u8]],
        work: impl FnOnce(&mut Tx<'_>, Args<'_>) -> Result<T>,
    ) -> Result<T> {
        let args = Args::new(argv.get(1..).unwrap_or_default());
        match row.access {
            Access::Read => self.read(|tx| work(tx, args)),
            _ if runs_alone(row, argv) => self.write_alone(|tx| work(tx, args)),
            _ => self.write(&keys_of(row, argv), |tx| work(tx, args)),
        }
    }
}

/// The row of a command with the right number of arguments; `None` if there is no such command.
fn known(argv: &[&[u8]]) -> Result<Option<&'static Row>> {
    let name = name_of(argv)?;
    match find(name) {
        Some(row) if fits(row.arity, argv.len()) => Ok(Some(row)),
        Some(row) => Err(wrong_number(row.name)),
        None => refuse_session(name).map(|()| None),
    }
}

/// Runs the command of a row; its reply goes to the receiver.
pub(super) fn run_into(
    row: &Row,
    tx: &mut Tx<'_>,
    args: Args<'_>,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    if row.streams {
        return stream(row.name, tx, args, sink);
    }
    run(row.name, tx, args)?.write_to(sink);
    Ok(())
}

/// Takes back what a command that failed has written since `begin`; an error of the command is its
/// reply instead.
pub(super) fn finish(done: Result<()>, begin: usize, sink: &mut dyn ReplySink) -> Result<()> {
    let Err(error) = done else { return Ok(()) };
    sink.go_back(begin);
    as_reply(error)?.write_to(sink);
    Ok(())
}

/// The name of a command as it was given.
pub(super) fn name_of<'a>(argv: &[&'a [u8]]) -> Result<&'a [u8]> {
    argv.first().copied().ok_or_else(|| Error::new(ErrorKind::Invalid, "a command needs a name"))
}

/// The row of a command, in whatever case its name is given.
pub(super) fn find(name: &[u8]) -> Option<&'static Row> {
    let mut capitals = [0; LONGEST_NAME];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    let alike = ROWS.get(name.len())?;
    let at = alike.binary_search_by(|row| row.name.as_bytes().cmp(capitals)).ok()?;
    alike.get(at).copied()
}

/// An error for a command that only a session knows.
pub(super) fn refuse_session(name: &[u8]) -> Result<()> {
    match session::find(name) {
        None => Ok(()),
        Some(row) => {
            let text = format!("{} belongs to a connection: use a session", row.name);
            Err(Error::new(ErrorKind::Misuse, text))
        }
    }
}

/// Whether a command may write any key of any database.
pub(super) fn runs_alone(row: &Row, argv: &[&[u8]]) -> bool {
    let args = Args::new(argv.get(1..).unwrap_or_default());
    match row.access {
        Access::Alone => true,
        Access::AloneWith(word) => args.contains_word(word),
        Access::Read | Access::Write => false,
    }
}

/// Whether so many arguments, the name included, are what the arity says.
pub(super) fn fits(arity: isize, count: usize) -> bool {
    if arity < 0 { count >= arity.unsigned_abs() } else { count == arity.unsigned_abs() }
}

/// The text of an unknown command's error quotes the arguments, up to a length.
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

/// The keys to lock. Arguments that do not say how many there are lock nothing: the command then
/// answers with an error before it reads anything.
pub(crate) fn keys_of<'a>(row: &Row, argv: &[&'a [u8]]) -> SmallVec<[&'a [u8]; 4]> {
    let mut keys = SmallVec::new();
    for_each_key(row, argv, |key| keys.push(key));
    keys
}

/// Visits those keys.
#[inline]
pub(super) fn for_each_key<'a>(row: &Row, argv: &[&'a [u8]], mut visit: impl FnMut(&'a [u8])) {
    match row.keys {
        Keys::None => {}
        Keys::Range(first, last, step) => {
            let end = match usize::try_from(last) {
                Ok(last) => last + 1,
                Err(_) => (argv.len() + 1).saturating_sub(last.unsigned_abs()),
            };
            let range = argv.get(first..end.min(argv.len())).unwrap_or_default();
            range.iter().step_by(step).for_each(|key| visit(key));
        }
        Keys::Counted(count_at, before) => {
            let count = argv.get(count_at).and_then(|text| parse_integer(text).ok()).unwrap_or(0);
            let count = usize::try_from(count).unwrap_or(0);
            let counted = argv.get(count_at + 1..).unwrap_or_default().iter().take(count);
            let fixed = argv.get(1..=before).unwrap_or_default();
            fixed.iter().chain(counted).for_each(|key| visit(key));
        }
    }
}

const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// Errors that Redis would reply; others concern the store.
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
        // Keys and values alike are strings to the reference, with one limit.
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
        for row in GROUPS.iter().flat_map(|group| group.rows) {
            let found = |name: &str| find(name.as_bytes()).map(|row| row.name);
            assert_eq!(found(row.name), Some(row.name));
            assert_eq!(found(&row.name.to_lowercase()), Some(row.name));
            assert_eq!(found(&format!("{}?", row.name)), None);
        }
        assert!(find(b"").is_none() && find(&[b'A'; LONGEST_NAME + 1]).is_none());
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
