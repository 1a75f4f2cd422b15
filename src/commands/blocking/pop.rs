//! Blocking pops, as calls of their non-blocking counterparts: BLPOP is LMPOP with one element,
//! BZPOPMIN is ZMPOP, BLMOVE is LMOVE. This file translates the arguments and the replies.

use std::time::Duration;

use crate::commands::args::{Args, syntax_error};
use crate::commands::entry::Entry;
use crate::commands::generated::dispatch::{LMOVE, LMPOP, ZMPOP};
use crate::commands::reply::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::{Db, Origin, Tx};
use crate::types::Type;

/// The syntax of a blocking command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PopSyntax {
    /// BLPOP, BRPOP, BZPOPMIN, BZPOPMAX: the type popped from, and the counterpart's word for the
    /// end.
    Single(PopSource, &'static str),
    /// BLMPOP, BZMPOP: the arguments of the counterpart, preceded by the timeout.
    Multi(PopSource),
    /// BLMOVE: a source, a destination and an end of each.
    Move,
    /// BRPOPLPUSH: a source, whose right end is popped, and a destination.
    RPopLPush,
}

impl PopSyntax {
    /// The syntax of a command by its name, in capitals.
    pub(super) fn of(name: &str) -> Option<Self> {
        use PopSource::{List, SortedSet};
        Some(match name {
            "BLPOP" => Self::Single(List, "LEFT"),
            "BRPOP" => Self::Single(List, "RIGHT"),
            "BZPOPMIN" => Self::Single(SortedSet, "MIN"),
            "BZPOPMAX" => Self::Single(SortedSet, "MAX"),
            "BLMPOP" => Self::Multi(List),
            "BZMPOP" => Self::Multi(SortedSet),
            "BLMOVE" => Self::Move,
            "BRPOPLPUSH" => Self::RPopLPush,
            _ => return None,
        })
    }
}

/// The type that a pop takes elements from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PopSource {
    List,
    SortedSet,
}

impl PopSource {
    fn non_blocking(self) -> &'static Entry {
        match self {
            Self::List => &LMPOP,
            Self::SortedSet => &ZMPOP,
        }
    }

    /// The type that elements are popped from.
    fn kind(self) -> Type {
        match self {
            Self::List => Type::List,
            Self::SortedSet => Type::ZSet,
        }
    }
}

/// A blocking command with its arguments, such as BLPOP. [`Db::pop_or_wait`] runs it.
#[derive(Debug)]
pub struct BlockingPop {
    /// The keys, in the order in which the pop tries them.
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) source: PopSource,
    timeout: Option<Duration>,
    action: PopAction,
    /// The session that pops, if it tracks keys.
    origin: Option<Origin>,
}

#[derive(Debug)]
enum PopAction {
    /// The words after the keys, and whether the reply is one element instead of a list.
    Pop { words: Vec<Vec<u8>>, one: bool },
    /// The arguments of LMOVE after the source.
    Move { words: Vec<Vec<u8>> },
}

impl BlockingPop {
    /// Parses a blocking command whose number of arguments is right. The name comes first.
    pub fn parse(argv: &[&[u8]]) -> Result<Self> {
        let name = argv.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        match std::str::from_utf8(&name).ok().and_then(PopSyntax::of) {
            Some(syntax) => Self::parse_as(syntax, argv),
            None => Err(Error::new(ErrorKind::Invalid, "the command does not wait for elements")),
        }
    }

    /// What the pop takes: the database, and the type of the key.
    pub(super) fn wanted(&self, db: &Db) -> (u32, u8) {
        (db.database(), u8::from(self.source == PopSource::List))
    }

    /// Tells which session pops, if it tracks keys.
    pub(super) fn from(self, origin: Option<Origin>) -> Self {
        Self { origin, ..self }
    }

    /// The time to wait; `None`: without limit.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(super) fn parse_as(syntax: PopSyntax, argv: &[&[u8]]) -> Result<Self> {
        match syntax {
            PopSyntax::Single(source, end) => Self::parse_single(source, end, argv),
            PopSyntax::Multi(source) => Self::parse_multi(source, argv),
            PopSyntax::Move => Self::parse_move(argv),
            PopSyntax::RPopLPush => {
                let (source, destination) = (owned(argv, 1), owned(argv, 2));
                let timeout = timeout(argv.get(3))?;
                let words = vec![destination, b"RIGHT".to_vec(), b"LEFT".to_vec()];
                Ok(Self::new_move(source, words, timeout))
            }
        }
    }

    fn parse_single(source: PopSource, end: &'static str, argv: &[&[u8]]) -> Result<Self> {
        let timeout = timeout(argv.last())?;
        let keys = argv.get(1..argv.len().saturating_sub(1)).unwrap_or_default();
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        let action = PopAction::Pop { words: vec![end.as_bytes().to_vec()], one: true };
        Ok(Self { keys, source, timeout, action, origin: None })
    }

    /// Parses BLMPOP or BZMPOP. The counterpart rejects words after the keys that are not valid.
    fn parse_multi(source: PopSource, argv: &[&[u8]]) -> Result<Self> {
        let timeout = timeout(argv.get(1))?;
        let rest = argv.get(3..).unwrap_or_default();
        let count = argv.get(2).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let (keys, words) = rest
            .split_at_checked(
                count
                    .filter(|count| *count > 0)
                    .ok_or_else(|| out_of_range("ERR numkeys should be greater than 0"))?,
            )
            .ok_or_else(syntax_error)?;
        let own = |list: &[&[u8]]| list.iter().map(|word| word.to_vec()).collect();
        let action = PopAction::Pop { words: own(words), one: false };
        Ok(Self { keys: own(keys), source, timeout, action, origin: None })
    }

    fn parse_move(argv: &[&[u8]]) -> Result<Self> {
        let is_end = |at: usize| {
            argv.get(at).is_some_and(|word| {
                word.eq_ignore_ascii_case(b"LEFT") || word.eq_ignore_ascii_case(b"RIGHT")
            })
        };
        if !is_end(3) || !is_end(4) {
            return Err(syntax_error());
        }
        let words = vec![owned(argv, 2), owned(argv, 3), owned(argv, 4)];
        Ok(Self::new_move(owned(argv, 1), words, timeout(argv.get(5))?))
    }

    fn new_move(source: Vec<u8>, words: Vec<Vec<u8>>, timeout: Option<Duration>) -> Self {
        Self {
            keys: vec![source],
            source: PopSource::List,
            timeout,
            action: PopAction::Move { words },
            origin: None,
        }
    }

    /// The counterpart, and its arguments on these keys.
    fn command_on(&self, keys: &[Vec<u8>]) -> (&'static Entry, Vec<Vec<u8>>) {
        let (entry, head, words) = match &self.action {
            PopAction::Pop { words, .. } => {
                let count = keys.len().to_string().into_bytes();
                (self.source.non_blocking(), Some(count), words)
            }
            PopAction::Move { words } => (&LMOVE, None, words),
        };
        let args = head.into_iter().chain(keys.iter().cloned()).chain(words.iter().cloned());
        (entry, args.collect())
    }

    /// Runs the pop on all keys without waiting; `None` if all are empty.
    pub(super) fn try_all(&self, tx: &mut Tx<'_>) -> Result<Option<Reply>> {
        self.run_on(tx, &self.keys)
    }

    fn run_on(&self, tx: &mut Tx<'_>, keys: &[Vec<u8>]) -> Result<Option<Reply>> {
        let (entry, args) = self.command_on(keys);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        if self.origin.is_some() {
            tx.set_origin(self.origin.clone());
        }
        match entry.run(tx, Args::new(&args))? {
            Reply::Nil | Reply::NilArray => Ok(None),
            reply => Ok(Some(self.adapt_reply(reply))),
        }
    }

    /// The keys that the pop may write when it takes from `keys`.
    pub(super) fn written<'k>(&'k self, keys: &'k [Vec<u8>]) -> Vec<&'k [u8]> {
        let destination = match &self.action {
            PopAction::Move { words } => words.first(),
            PopAction::Pop { .. } => None,
        };
        keys.iter().chain(destination).map(Vec::as_slice).collect()
    }

    /// Pops from one key for a call that waits; `None` if there is nothing for it. A key of another
    /// type counts as empty.
    pub(super) fn try_key(&self, db: &Db, key: &[u8]) -> Result<Option<Reply>> {
        let keys = [key.to_vec()];
        db.write(&self.written(&keys), |tx| match tx.kind(key)? {
            Some(kind) if kind == self.source.kind() => self.run_on(tx, &keys),
            _ => Ok(None),
        })
    }

    /// The reply when all keys are empty and the caller may not wait.
    pub(super) fn empty_reply(&self) -> Reply {
        match self.action {
            PopAction::Pop { .. } => Reply::NilArray,
            PopAction::Move { .. } => Reply::Nil,
        }
    }

    /// Converts the counterpart's reply to the form of the blocking command.
    fn adapt_reply(&self, reply: Reply) -> Reply {
        match (&self.action, reply) {
            (PopAction::Pop { one: true, .. }, Reply::Array(parts)) => flattened(parts),
            (_, reply) => reply,
        }
    }
}

fn owned(argv: &[&[u8]], at: usize) -> Vec<u8> {
    argv.get(at).map(|word| word.to_vec()).unwrap_or_default()
}

/// Converts `[key, [element]]` to `[key, element]`, and `[key, [[member, score]]]` to `[key,
/// member, score]`.
fn flattened(parts: Vec<Reply>) -> Reply {
    let inner = |part| match part {
        Reply::Array(mut items) if items.len() == 1 => match items.pop() {
            Some(Reply::Array(pair)) => pair,
            Some(item) => vec![item],
            None => Vec::new(),
        },
        other => vec![other],
    };
    Reply::Array(parts.into_iter().flat_map(inner).collect())
}

/// Parses a timeout in seconds; zero is no limit.
fn timeout(text: Option<&&[u8]>) -> Result<Option<Duration>> {
    let text = text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    let seconds = text.parse::<f64>().ok().filter(|_| plain);
    let seconds =
        seconds.ok_or_else(|| out_of_range("ERR timeout is not a float or out of range"))?;
    if seconds < 0.0 {
        return Err(out_of_range("ERR timeout is negative"));
    }
    if seconds == 0.0 {
        return Ok(None);
    }
    let millis = (seconds * 1000.0).ceil() / 1000.0;
    if millis > (i64::MAX / 1000) as f64 {
        return Err(out_of_range("ERR timeout is out of range"));
    }
    let limit = Duration::try_from_secs_f64(millis);
    limit.map(Some).map_err(|_| out_of_range("ERR timeout is out of range"))
}

fn out_of_range(text: &str) -> Error {
    Error::new(ErrorKind::OutOfRange, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(line: &str) -> Result<BlockingPop> {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        BlockingPop::parse(&argv)
    }

    fn shown(pop: &BlockingPop) -> String {
        let (entry, args) = pop.command_on(&pop.keys);
        format!("{} {}", entry.command.name, String::from_utf8(args.join(&b' ')).unwrap())
    }

    #[test]
    fn every_blocking_command_has_a_non_blocking_counterpart() {
        for (line, non_blocking) in [
            ("BLPOP a b 0", "LMPOP 2 a b LEFT"),
            ("BZPOPMAX a 1", "ZMPOP 1 a MAX"),
            ("BLMPOP 0 2 a b LEFT COUNT 3", "LMPOP 2 a b LEFT COUNT 3"),
            ("BZMPOP 0 1 a MIN", "ZMPOP 1 a MIN"),
            ("blmove a b left RIGHT 0", "LMOVE a b left RIGHT"),
            ("BRPOPLPUSH a b 0", "LMOVE a b RIGHT LEFT"),
        ] {
            assert_eq!(shown(&pop(line).unwrap()), non_blocking);
        }
    }

    #[test]
    fn the_time_to_wait_is_read_as_the_reference_reads_it() {
        let timeout = |text: &str| {
            let pop = pop(&format!("BLPOP k {text}"));
            pop.map(|pop| pop.timeout()).map_err(|error| error.message().to_owned())
        };
        assert_eq!(timeout("0"), Ok(None));
        assert_eq!(timeout("0.0001"), Ok(Some(Duration::from_millis(1))));
        assert_eq!(timeout("2.5"), Ok(Some(Duration::from_millis(2500))));
        assert_eq!(timeout("-1"), Err("ERR timeout is negative".into()));
        for text in ["", "x", "inf", "nan", "1s"] {
            assert_eq!(timeout(text), Err("ERR timeout is not a float or out of range".into()));
        }
        assert_eq!(timeout("1e300"), Err("ERR timeout is out of range".into()));
    }

    #[test]
    fn replies_take_the_form_of_the_blocking_command() {
        let bulk = |text: &'static str| Reply::Bulk(text.into());
        let list = pop("BLPOP k 0").unwrap();
        let popped = Reply::Array(vec![bulk("k"), Reply::Array(vec![bulk("v")])]);
        assert_eq!(list.adapt_reply(popped.clone()), Reply::Array(vec![bulk("k"), bulk("v")]));
        let sorted = pop("BZPOPMIN k 0").unwrap();
        let pair = Reply::Array(vec![bulk("m"), Reply::Double(1.0)]);
        let scored = Reply::Array(vec![bulk("k"), Reply::Array(vec![pair])]);
        let flat = Reply::Array(vec![bulk("k"), bulk("m"), Reply::Double(1.0)]);
        assert_eq!(sorted.adapt_reply(scored), flat);
        let many = pop("BLMPOP 0 1 k LEFT").unwrap();
        assert_eq!(many.adapt_reply(popped.clone()), popped);
    }
}
