//! Blocking pops, as calls of their non-blocking counterparts.
//!
//! The library has a non-blocking counterpart for each: BLPOP is LMPOP with one element, BZPOPMIN
//! is ZMPOP, BLMOVE is LMOVE. This file translates the arguments and the replies.

use std::time::Duration;

use lsmkv::{Db, Reply};

use super::error_reply::error_text;

/// The syntax of a blocking command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PopSyntax {
    /// BLPOP, BRPOP, BZPOPMIN, BZPOPMAX: the type popped from, and the counterpart's word for the
    /// end.
    Single(PopSource, &'static str),
    /// BLMPOP, BZMPOP: the arguments of the counterpart, preceded by the timeout.
    Multi(PopSource),
    /// BLMOVE.
    Move,
    /// BRPOPLPUSH.
    RPopLPush,
}

/// The type that a pop takes elements from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PopSource {
    List,
    SortedSet,
}

impl PopSource {
    fn non_blocking(self) -> &'static [u8] {
        match self {
            Self::List => b"LMPOP",
            Self::SortedSet => b"ZMPOP",
        }
    }

    /// The name of the type in the reply of TYPE.
    fn type_name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::SortedSet => "zset",
        }
    }
}

/// A parsed blocking command.
#[derive(Debug)]
pub(crate) struct BlockingPop {
    /// The keys, in the order in which the pop tries them.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) source: PopSource,
    /// The time to wait; `None`: without limit.
    pub(crate) timeout: Option<Duration>,
    action: PopAction,
}

#[derive(Debug)]
enum PopAction {
    /// The words after the keys, and whether the reply is one element instead of a list.
    Pop { words: Vec<Vec<u8>>, one: bool },
    /// The arguments of LMOVE after the source.
    Move { words: Vec<Vec<u8>> },
}

impl BlockingPop {
    /// Parses a blocking command whose number of arguments is right.
    pub(crate) fn parse(syntax: PopSyntax, argv: &[&[u8]]) -> Result<Self, String> {
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

    fn parse_single(source: PopSource, end: &'static str, argv: &[&[u8]]) -> Result<Self, String> {
        let timeout = timeout(argv.last())?;
        let keys = argv.get(1..argv.len().saturating_sub(1)).unwrap_or_default();
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        let action = PopAction::Pop { words: vec![end.as_bytes().to_vec()], one: true };
        Ok(Self { keys, source, timeout, action })
    }

    /// Parses BLMPOP or BZMPOP. The counterpart rejects words after the keys that are not valid.
    fn parse_multi(source: PopSource, argv: &[&[u8]]) -> Result<Self, String> {
        let timeout = timeout(argv.get(1))?;
        let rest = argv.get(3..).unwrap_or_default();
        let count = argv.get(2).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let (keys, words) = rest
            .split_at_checked(
                count.filter(|count| *count > 0).ok_or("ERR numkeys should be greater than 0")?,
            )
            .ok_or("ERR syntax error")?;
        let own = |list: &[&[u8]]| list.iter().map(|word| word.to_vec()).collect();
        let action = PopAction::Pop { words: own(words), one: false };
        Ok(Self { keys: own(keys), source, timeout, action })
    }

    fn parse_move(argv: &[&[u8]]) -> Result<Self, String> {
        let is_end = |at: usize| {
            argv.get(at).is_some_and(|word| {
                word.eq_ignore_ascii_case(b"LEFT") || word.eq_ignore_ascii_case(b"RIGHT")
            })
        };
        if !is_end(3) || !is_end(4) {
            return Err("ERR syntax error".to_owned());
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
        }
    }

    /// The key that receives the moved element.
    pub(crate) fn destination(&self) -> Option<&[u8]> {
        match &self.action {
            PopAction::Move { words } => words.first().map(Vec::as_slice),
            PopAction::Pop { .. } => None,
        }
    }

    /// The counterpart with its arguments, on all keys.
    pub(crate) fn non_blocking_command(&self) -> Vec<Vec<u8>> {
        self.command_on(&self.keys)
    }

    fn command_on(&self, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
        match &self.action {
            PopAction::Pop { words, .. } => {
                let head =
                    [self.source.non_blocking().to_vec(), keys.len().to_string().into_bytes()];
                head.into_iter().chain(keys.iter().cloned()).chain(words.iter().cloned()).collect()
            }
            PopAction::Move { words } => {
                let head = [b"LMOVE".to_vec()].into_iter().chain(keys.iter().cloned());
                head.chain(words.iter().cloned()).collect()
            }
        }
    }

    /// The reply when all keys are empty and the client may not wait.
    pub(crate) fn empty_reply(&self) -> Reply {
        match self.action {
            PopAction::Pop { .. } => Reply::NilArray,
            PopAction::Move { .. } => Reply::Nil,
        }
    }

    /// Converts the counterpart's reply to the form of the blocking command.
    pub(crate) fn adapt_reply(&self, reply: Reply) -> Reply {
        match (&self.action, reply) {
            (PopAction::Pop { one: true, .. }, Reply::Array(parts)) => flattened(parts),
            (_, reply) => reply,
        }
    }

    /// Tries one key for a blocked client; returns the reply, or `None` if the client keeps
    /// waiting. A key of another type counts as empty.
    pub(crate) fn try_key(&self, db: &Db, key: &[u8]) -> Option<Reply> {
        let kind = db.command(&[b"TYPE", key]).ok()?;
        if kind != Reply::Status(self.source.type_name()) {
            return None;
        }
        let command = self.command_on(&[key.to_vec()]);
        let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        match db.command(&argv) {
            Ok(Reply::Nil | Reply::NilArray) => None,
            Ok(reply) => Some(self.adapt_reply(reply)),
            Err(error) => Some(Reply::Error(error_text(&error))),
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
fn timeout(text: Option<&&[u8]>) -> Result<Option<Duration>, String> {
    let text = text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    let seconds = text.parse::<f64>().ok().filter(|_| plain);
    let seconds = seconds.ok_or("ERR timeout is not a float or out of range")?;
    if seconds < 0.0 {
        return Err("ERR timeout is negative".to_owned());
    }
    if seconds == 0.0 {
        return Ok(None);
    }
    let millis = (seconds * 1000.0).ceil() / 1000.0;
    if millis > (i64::MAX / 1000) as f64 {
        return Err("ERR timeout is out of range".to_owned());
    }
    Duration::try_from_secs_f64(millis).map(Some).map_err(|_| "ERR timeout is out of range".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(form: PopSyntax, line: &str) -> Result<BlockingPop, String> {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        BlockingPop::parse(form, &argv)
    }

    fn shown(words: &[Vec<u8>]) -> String {
        String::from_utf8(words.join(&b' ')).unwrap()
    }

    #[test]
    fn every_blocking_command_has_a_non_blocking_counterpart() {
        for (form, line, non_blocking) in [
            (PopSyntax::Single(PopSource::List, "LEFT"), "BLPOP a b 0", "LMPOP 2 a b LEFT"),
            (PopSyntax::Single(PopSource::SortedSet, "MAX"), "BZPOPMAX a 1", "ZMPOP 1 a MAX"),
            (
                PopSyntax::Multi(PopSource::List),
                "BLMPOP 0 2 a b LEFT COUNT 3",
                "LMPOP 2 a b LEFT COUNT 3",
            ),
            (PopSyntax::Multi(PopSource::SortedSet), "BZMPOP 0 1 a MIN", "ZMPOP 1 a MIN"),
            (PopSyntax::Move, "BLMOVE a b left RIGHT 0", "LMOVE a b left RIGHT"),
            (PopSyntax::RPopLPush, "BRPOPLPUSH a b 0", "LMOVE a b RIGHT LEFT"),
        ] {
            assert_eq!(shown(&pop(form, line).unwrap().non_blocking_command()), non_blocking);
        }
    }

    #[test]
    fn the_time_to_wait_is_read_as_the_reference_reads_it() {
        let form = PopSyntax::Single(PopSource::List, "LEFT");
        let timeout = |text: &str| pop(form, &format!("BLPOP k {text}")).map(|pop| pop.timeout);
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
        let list = pop(PopSyntax::Single(PopSource::List, "LEFT"), "BLPOP k 0").unwrap();
        let popped = Reply::Array(vec![bulk("k"), Reply::Array(vec![bulk("v")])]);
        assert_eq!(list.adapt_reply(popped.clone()), Reply::Array(vec![bulk("k"), bulk("v")]));
        let sorted = pop(PopSyntax::Single(PopSource::SortedSet, "MIN"), "BZPOPMIN k 0").unwrap();
        let pair = Reply::Array(vec![bulk("m"), Reply::Double(1.0)]);
        let scored = Reply::Array(vec![bulk("k"), Reply::Array(vec![pair])]);
        let flat = Reply::Array(vec![bulk("k"), bulk("m"), Reply::Double(1.0)]);
        assert_eq!(sorted.adapt_reply(scored), flat);
        let many = pop(PopSyntax::Multi(PopSource::List), "BLMPOP 0 1 k LEFT").unwrap();
        assert_eq!(many.adapt_reply(popped.clone()), popped);
    }
}
