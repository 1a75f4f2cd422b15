//! Blocking pops as what they do when they do not wait.
//!
//! Each has a sibling that answers at once: BLPOP is LMPOP with one element, BZPOPMIN is ZMPOP,
//! BLMOVE is LMOVE. The sibling runs in the library; here is how the arguments become its, and
//! its reply theirs.

use std::time::Duration;

use lsmkv::{Db, Reply};

/// Which blocking command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PopForm {
    /// BLPOP, BRPOP, BZPOPMIN, BZPOPMAX: the sibling, and its word for the end.
    One(Taken, &'static str),
    /// BLMPOP, BZMPOP: the sibling has the same arguments without the time.
    Many(Taken),
    /// BLMOVE.
    Move,
    /// BRPOPLPUSH.
    RightToLeft,
}

/// From which type of value something is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    List,
    Sorted,
}

impl Taken {
    fn sibling(self) -> &'static [u8] {
        match self {
            Self::List => b"LMPOP",
            Self::Sorted => b"ZMPOP",
        }
    }

    /// What TYPE says of a key from which it can be taken.
    fn type_name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Sorted => "zset",
        }
    }
}

/// A blocking command that was understood.
#[derive(Debug)]
pub(crate) struct Pop {
    /// In the order in which they are tried.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) taken: Taken,
    /// How long to wait; `None`: for ever.
    pub(crate) limit: Option<Duration>,
    action: Action,
}

#[derive(Debug)]
enum Action {
    /// The words after the keys; whether the reply is one element rather than a list.
    Pop { words: Vec<Vec<u8>>, one: bool },
    /// The arguments of LMOVE after the source.
    Move { words: Vec<Vec<u8>> },
}

/// The text of an error.
type Refusal = String;

impl Pop {
    /// Reads the arguments of a blocking command; its number of arguments fits.
    pub(crate) fn parse(form: PopForm, argv: &[&[u8]]) -> Result<Self, Refusal> {
        match form {
            PopForm::One(taken, end) => Self::parse_one(taken, end, argv),
            PopForm::Many(taken) => Self::parse_many(taken, argv),
            PopForm::Move => Self::parse_move(argv),
            PopForm::RightToLeft => {
                let (source, destination) = (owned(argv, 1), owned(argv, 2));
                let limit = limit(argv.get(3))?;
                let words = vec![destination, b"RIGHT".to_vec(), b"LEFT".to_vec()];
                Ok(Self::moving(source, words, limit))
            }
        }
    }

    fn parse_one(taken: Taken, end: &'static str, argv: &[&[u8]]) -> Result<Self, Refusal> {
        let limit = limit(argv.last())?;
        let keys = argv.get(1..argv.len().saturating_sub(1)).unwrap_or_default();
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        let action = Action::Pop { words: vec![end.as_bytes().to_vec()], one: true };
        Ok(Self { keys, taken, limit, action })
    }

    /// Arguments that make no sense are left to the sibling, which refuses them.
    fn parse_many(taken: Taken, argv: &[&[u8]]) -> Result<Self, Refusal> {
        let limit = limit(argv.get(1))?;
        let rest = argv.get(3..).unwrap_or_default();
        let count = argv.get(2).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let (keys, words) = rest
            .split_at_checked(
                count.filter(|count| *count > 0).ok_or("ERR numkeys should be greater than 0")?,
            )
            .ok_or("ERR syntax error")?;
        let own = |list: &[&[u8]]| list.iter().map(|word| word.to_vec()).collect();
        let action = Action::Pop { words: own(words), one: false };
        Ok(Self { keys: own(keys), taken, limit, action })
    }

    fn parse_move(argv: &[&[u8]]) -> Result<Self, Refusal> {
        let is_end = |at: usize| {
            argv.get(at).is_some_and(|word| {
                word.eq_ignore_ascii_case(b"LEFT") || word.eq_ignore_ascii_case(b"RIGHT")
            })
        };
        if !is_end(3) || !is_end(4) {
            return Err("ERR syntax error".to_owned());
        }
        let words = vec![owned(argv, 2), owned(argv, 3), owned(argv, 4)];
        Ok(Self::moving(owned(argv, 1), words, limit(argv.get(5))?))
    }

    fn moving(source: Vec<u8>, words: Vec<Vec<u8>>, limit: Option<Duration>) -> Self {
        Self { keys: vec![source], taken: Taken::List, limit, action: Action::Move { words } }
    }

    /// The key that gets what is moved.
    pub(crate) fn destination(&self) -> Option<&[u8]> {
        match &self.action {
            Action::Move { words } => words.first().map(Vec::as_slice),
            Action::Pop { .. } => None,
        }
    }

    /// The sibling with its arguments, on all keys.
    pub(crate) fn command(&self) -> Vec<Vec<u8>> {
        self.command_on(&self.keys)
    }

    fn command_on(&self, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
        match &self.action {
            Action::Pop { words, .. } => {
                let head = [self.taken.sibling().to_vec(), keys.len().to_string().into_bytes()];
                head.into_iter().chain(keys.iter().cloned()).chain(words.iter().cloned()).collect()
            }
            Action::Move { words } => {
                let head = [b"LMOVE".to_vec()].into_iter().chain(keys.iter().cloned());
                head.chain(words.iter().cloned()).collect()
            }
        }
    }

    /// What the client is told when there is nothing and it may not wait.
    pub(crate) fn nothing(&self) -> Reply {
        match self.action {
            Action::Pop { .. } => Reply::NilArray,
            Action::Move { .. } => Reply::Nil,
        }
    }

    /// The sibling's reply in the blocking command's form.
    pub(crate) fn shape(&self, reply: Reply) -> Reply {
        match (&self.action, reply) {
            (Action::Pop { one: true, .. }, Reply::Array(parts)) => flattened(parts),
            (_, reply) => reply,
        }
    }

    /// Tries, for a client that waits, the one key that may have something now: what it is told,
    /// or nothing if it goes on waiting. A key that holds another type is none to wait for.
    pub(crate) fn attempt(&self, db: &Db, key: &[u8]) -> Option<Reply> {
        let kind = db.command(&[b"TYPE", key]).ok()?;
        if kind != Reply::Status(self.taken.type_name()) {
            return None;
        }
        let command = self.command_on(&[key.to_vec()]);
        let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        match db.command(&argv) {
            Ok(Reply::Nil | Reply::NilArray) => None,
            Ok(reply) => Some(self.shape(reply)),
            Err(error) => Some(Reply::Error(super::execute::failure_text(&error))),
        }
    }
}

fn owned(argv: &[&[u8]], at: usize) -> Vec<u8> {
    argv.get(at).map(|word| word.to_vec()).unwrap_or_default()
}

/// `[key, [element]]` as `[key, element]`, `[key, [[member, score]]]` as `[key, member, score]`.
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

/// Seconds to wait; zero is for ever.
fn limit(text: Option<&&[u8]>) -> Result<Option<Duration>, Refusal> {
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

    fn pop(form: PopForm, line: &str) -> Result<Pop, Refusal> {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        Pop::parse(form, &argv)
    }

    fn shown(words: &[Vec<u8>]) -> String {
        String::from_utf8(words.join(&b' ')).unwrap()
    }

    #[test]
    fn every_blocking_command_has_a_sibling_that_does_not_wait() {
        for (form, line, sibling) in [
            (PopForm::One(Taken::List, "LEFT"), "BLPOP a b 0", "LMPOP 2 a b LEFT"),
            (PopForm::One(Taken::Sorted, "MAX"), "BZPOPMAX a 1", "ZMPOP 1 a MAX"),
            (PopForm::Many(Taken::List), "BLMPOP 0 2 a b LEFT COUNT 3", "LMPOP 2 a b LEFT COUNT 3"),
            (PopForm::Many(Taken::Sorted), "BZMPOP 0 1 a MIN", "ZMPOP 1 a MIN"),
            (PopForm::Move, "BLMOVE a b left RIGHT 0", "LMOVE a b left RIGHT"),
            (PopForm::RightToLeft, "BRPOPLPUSH a b 0", "LMOVE a b RIGHT LEFT"),
        ] {
            assert_eq!(shown(&pop(form, line).unwrap().command()), sibling);
        }
    }

    #[test]
    fn the_time_to_wait_is_read_as_the_reference_reads_it() {
        let form = PopForm::One(Taken::List, "LEFT");
        let limit = |text: &str| pop(form, &format!("BLPOP k {text}")).map(|pop| pop.limit);
        assert_eq!(limit("0"), Ok(None));
        assert_eq!(limit("0.0001"), Ok(Some(Duration::from_millis(1))));
        assert_eq!(limit("2.5"), Ok(Some(Duration::from_millis(2500))));
        assert_eq!(limit("-1"), Err("ERR timeout is negative".into()));
        for text in ["", "x", "inf", "nan", "1s"] {
            assert_eq!(limit(text), Err("ERR timeout is not a float or out of range".into()));
        }
        assert_eq!(limit("1e300"), Err("ERR timeout is out of range".into()));
    }

    #[test]
    fn replies_take_the_form_of_the_blocking_command() {
        let bulk = |text: &'static str| Reply::Bulk(text.into());
        let list = pop(PopForm::One(Taken::List, "LEFT"), "BLPOP k 0").unwrap();
        let popped = Reply::Array(vec![bulk("k"), Reply::Array(vec![bulk("v")])]);
        assert_eq!(list.shape(popped.clone()), Reply::Array(vec![bulk("k"), bulk("v")]));
        let sorted = pop(PopForm::One(Taken::Sorted, "MIN"), "BZPOPMIN k 0").unwrap();
        let pair = Reply::Array(vec![bulk("m"), Reply::Double(1.0)]);
        let scored = Reply::Array(vec![bulk("k"), Reply::Array(vec![pair])]);
        let flat = Reply::Array(vec![bulk("k"), bulk("m"), Reply::Double(1.0)]);
        assert_eq!(sorted.shape(scored), flat);
        let many = pop(PopForm::Many(Taken::List), "BLMPOP 0 1 k LEFT").unwrap();
        assert_eq!(many.shape(popped.clone()), popped);
    }
}
