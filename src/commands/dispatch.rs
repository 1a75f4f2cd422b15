//! Finds a command by name, checks its number of arguments, locks its keys, runs it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::args::{Args, quoted, until_zero, wrong_number};
use super::generated::dispatch::run;
use super::reply::Reply;
use super::spec::{Access, Keys, Row};
use super::table::GROUPS;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Db;
use crate::types::number::parse_integer;

static ROWS: LazyLock<HashMap<&'static str, &'static Row>> = LazyLock::new(|| {
    GROUPS.iter().flat_map(|group| group.rows).map(|row| (row.name, row)).collect()
});

impl Db {
    /// Runs any command by name. An error of the command is a reply, as a server would send it;
    /// an error of the store (a full disk, damage) is an error.
    pub fn command(&self, argv: &[&[u8]]) -> Result<Reply> {
        let Some(name) = argv.first() else {
            return Err(Error::new(ErrorKind::Invalid, "a command needs a name"));
        };
        let capitals = String::from_utf8_lossy(name).to_ascii_uppercase();
        let Some(row) = ROWS.get(capitals.as_str()) else { return Ok(unknown(name, argv)) };
        if !fits(row.arity, argv.len()) {
            return as_reply(wrong_number(row.name));
        }
        let args = Args::new(argv.get(1..).unwrap_or_default());
        let result = match row.access {
            Access::Read => self.read(|tx| run(row.name, tx, args)),
            Access::Write => self.write(&keys_of(row, argv), |tx| run(row.name, tx, args)),
            Access::Alone => self.write_alone(|tx| run(row.name, tx, args)),
            Access::AloneWith(word) if args.contains_word(word) => {
                self.write_alone(|tx| run(row.name, tx, args))
            }
            Access::AloneWith(_) => self.write(&keys_of(row, argv), |tx| run(row.name, tx, args)),
        };
        result.or_else(as_reply)
    }
}

fn fits(arity: isize, count: usize) -> bool {
    if arity < 0 { count >= arity.unsigned_abs() } else { count == arity.unsigned_abs() }
}

/// The text of an unknown command's error quotes the arguments, up to a length.
fn unknown(name: &[u8], argv: &[&[u8]]) -> Reply {
    const SHOWN: usize = 128;
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
pub(crate) fn keys_of<'a>(row: &Row, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
    match row.keys {
        Keys::None => Vec::new(),
        Keys::Range(first, last, step) => {
            let end = match usize::try_from(last) {
                Ok(last) => last + 1,
                Err(_) => (argv.len() + 1).saturating_sub(last.unsigned_abs()),
            };
            argv.get(first..end.min(argv.len()))
                .unwrap_or_default()
                .iter()
                .step_by(step)
                .copied()
                .collect()
        }
        Keys::Counted(count_at, before) => {
            let count = argv.get(count_at).and_then(|text| parse_integer(text).ok()).unwrap_or(0);
            let count = usize::try_from(count).unwrap_or(0);
            let counted = argv.get(count_at + 1..).unwrap_or_default().iter().take(count);
            let fixed = argv.get(1..=before).unwrap_or_default();
            fixed.iter().chain(counted).copied().collect()
        }
    }
}

/// Errors that Redis would reply; others concern the store.
fn as_reply(error: Error) -> Result<Reply> {
    match error.kind() {
        ErrorKind::WrongType
        | ErrorKind::NotInteger
        | ErrorKind::NotFloat
        | ErrorKind::Overflow
        | ErrorKind::Syntax
        | ErrorKind::OutOfRange
        | ErrorKind::NoSuchKey
        | ErrorKind::Invalid => Ok(Reply::Error(error.message().to_owned())),
        _ => Err(error),
    }
}
