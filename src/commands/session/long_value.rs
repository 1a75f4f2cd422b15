//! SET and its older forms with a value that arrives in parts: see `StagedString`. The command runs once
//! all of its words are there.

use bytes::Bytes;

use super::Session;
use crate::commands::args::Args;
use crate::commands::dispatch::{find, finish, fits};
use crate::commands::entry::Entry;
use crate::commands::parse::string::set_by;
use crate::commands::reply::Reply;
use crate::commands::sink::ReplySink;
use crate::error::Result;
use crate::txn::Tx;
use crate::types::StagedString;

/// The commands, each with the number of words before its value.
const FORMS: [(&str, Form, usize); 5] = [
    ("SET", Form::Set, 2),
    ("SETNX", Form::SetNx, 2),
    ("GETSET", Form::GetSet, 2),
    ("SETEX", Form::SetEx, 3),
    ("PSETEX", Form::PSetEx, 3),
];
/// A command with more words after its value comes as a whole: SET takes four that say something.
const MOST_OPTIONS: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Form {
    Set,
    SetNx,
    GetSet,
    SetEx,
    PSetEx,
}

/// A command of which a part of the value has arrived.
#[derive(Debug)]
pub(crate) struct LongValue {
    entry: &'static Entry,
    form: Form,
    /// The place of the value among the words.
    place: usize,
    string: StagedString,
}

impl Session {
    /// Begins a command of `count` words whose value of `len` bytes comes next, after these words;
    /// `None` if the command has to come as a whole.
    pub(crate) fn begin_long_value(
        &self,
        words: &[&[u8]],
        count: usize,
        len: usize,
    ) -> Option<LongValue> {
        let [name, key, ..] = *words else { return None };
        if self.queue.is_some() || self.tracks() {
            return None;
        }
        let entry = find(name)?;
        let known = FORMS.iter().find(|(name, ..)| *name == entry.command.name);
        let (_, form, place) = *known.filter(|(.., place)| *place == words.len())?;
        if !fits(entry.command.arity, count) || count > place + 1 + MOST_OPTIONS {
            return None;
        }
        let string = StagedString::begin(&self.db, key, len)?;
        Some(LongValue { entry, form, place, string })
    }

    /// Runs the command, whose value stands as an empty word in `argv`, and writes its reply to `sink`.
    pub(crate) fn run_long_value(
        &mut self,
        value: &mut LongValue,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.end_notice();
        let begin = sink.position();
        let ran = self.db.locked(value.entry, argv, |tx, args| value.run(tx, args));
        finish(ran.map(|reply| reply.write_to(sink)), begin, sink)
    }
}

impl LongValue {
    /// The place of the value among the words.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// The memory that it holds.
    pub(crate) fn memory(&self) -> usize {
        self.string.memory()
    }

    /// Takes the next bytes of the value.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.string.push(bytes);
    }

    /// The whole value, if the command has to run as one that came as a whole. After an error, which
    /// the command replies, `None`.
    pub(crate) fn take_whole(&mut self, session: &Session) -> Option<Bytes> {
        self.string.take_whole(&session.db)
    }

    fn run(&mut self, tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
        let (mut args, string) = (args, &mut self.string);
        let key = args.bytes()?;
        let put = |tx: &mut Tx<'_>, deadline| string.put(tx, deadline);
        match self.form {
            Form::Set => {
                args.bytes()?;
                set_by(tx, key, args, put)
            }
            Form::SetNx => tx.setnx_by(key, put).map(|set| Reply::Int(i64::from(set))),
            Form::GetSet => tx.getset_by(key, put).map(Reply::bulk),
            Form::SetEx => tx.setex_by(key, args.integer()?, put).map(|()| Reply::OK),
            Form::PSetEx => tx.psetex_by(key, args.integer()?, put).map(|()| Reply::OK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ReplyBuilder;
    use crate::options::Options;
    use crate::txn::Db;

    const LEN: usize = 100_000;

    fn words(line: &str) -> Vec<&[u8]> {
        line.split_whitespace().map(str::as_bytes).collect()
    }

    fn begins(session: &Session, line: &str, count: usize) -> bool {
        session.begin_long_value(&words(line), count, LEN).is_some()
    }

    #[test]
    fn forms_of_set_begin_and_others_come_as_a_whole() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let mut session = db.session();
        for (line, count) in [
            ("SET k", 3),
            ("set k", 11),
            ("SetNx k", 3),
            ("GETSET k", 3),
            ("SETEX k 10", 4),
            ("PSETEX k 10", 4),
        ] {
            assert!(begins(&session, line, count), "{line}");
        }
        for (line, count) in [
            ("SET", 2),
            ("SET k value", 4),
            ("SET k", 12),
            ("SETNX k", 4),
            ("SETEX k", 3),
            ("SETEX k 10", 5),
            ("APPEND k", 3),
            ("MSET k", 3),
            ("NOSUCH k", 3),
        ] {
            assert!(!begins(&session, line, count), "{line}");
        }
        session.command(&words("MULTI")).unwrap();
        assert!(!begins(&session, "SET k", 3));
        session.command(&words("DISCARD")).unwrap();
        assert!(begins(&session, "SET k", 3));
        assert!(!begins(&db.snapshot().unwrap().session(), "SET k", 3));
    }

    #[test]
    fn the_reply_and_the_error_are_those_of_the_whole_command() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let mut session = db.session();
        let value = vec![b'v'; LEN];
        for (head, tail) in [
            ("SET k", ""),
            ("SET k", "NX"),
            ("SET k", "XX GET"),
            ("SET k", "NX XX"),
            ("SET k", "EX 0"),
            ("SET k", "EX x GET"),
            ("SETEX k 0", ""),
            ("SETEX k x", ""),
            ("SETNX k", ""),
            ("GETSET k", ""),
            ("GETSET list", ""),
            ("SET list", "GET"),
            ("PSETEX list 1000", ""),
        ] {
            let (before, after) = (words(head), words(tail));
            let whole = [&before[..], &[&value[..]], &after[..]].concat();
            let apart = [&before[..], &[&b""[..]], &after[..]].concat();
            let mut replies = Vec::new();
            for staged in [false, true] {
                db.command(&words("FLUSHALL")).unwrap();
                db.command(&words("SET k old")).unwrap();
                db.command(&words("RPUSH list x")).unwrap();
                if !staged {
                    replies.push((session.command(&whole).unwrap(), db.get(b"k").unwrap()));
                    continue;
                }
                let mut long = session.begin_long_value(&before, whole.len(), LEN).unwrap();
                value.chunks(999).for_each(|part| long.push(part));
                let reply =
                    ReplyBuilder::collect(|sink| session.run_long_value(&mut long, &apart, sink));
                replies.push((reply.unwrap(), db.get(b"k").unwrap()));
            }
            assert!(
                replies[0] == replies[1],
                "{head} {tail}: {:?} {:?}",
                replies[0].0,
                replies[1].0
            );
        }
    }
}
