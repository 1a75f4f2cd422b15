//! Runs a line of the shell: a command of the store, or a dot command of the shell.

use std::io::Write;

use lsmkv::{Db, Reply};

use super::absent_store::{AbsentStore, Need};
use super::help;
use super::render::{self, Style};
use super::store_session::StoreSession;
use crate::failure::Failure;
use crate::transfer::Interrupt;
use lsmkv::resp::split_inline;

/// The outcome of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineOutcome {
    Succeeded,
    /// The reply is an error.
    Failed,
    /// The user leaves the shell.
    Quit,
}

/// A session and the style of its replies.
pub(super) struct Interpreter {
    session: StoreSession,
    /// The store, as long as it does not exist. The session then is on its stand-in.
    absent: Option<AbsentStore>,
    pub(super) style: Style,
    pub(super) interrupt: Interrupt,
}

impl Interpreter {
    pub(super) fn new(db: &Db, style: Style) -> Self {
        Self::on(StoreSession::Here(Box::new(db.session())), style)
    }

    pub(super) fn on(session: StoreSession, style: Style) -> Self {
        Self { session, absent: None, style, interrupt: Interrupt::default() }
    }

    /// A session on a store that does not exist yet.
    pub(super) fn without_store(
        absent: AbsentStore,
        database: u32,
        style: Style,
    ) -> Result<Self, Failure> {
        let stand_in = absent.stand_in()?.select(database)?;
        Ok(Self { absent: Some(absent), ..Self::new(&stand_in, style) })
    }

    /// Why there is nothing to read, if the store does not exist.
    pub(super) fn absence(&self) -> Option<String> {
        self.absent.as_ref().map(AbsentStore::message)
    }

    /// Creates the store if it does not exist.
    pub(super) fn create_store(&mut self) -> Result<(), Failure> {
        if let Some(absent) = &self.absent {
            self.session = absent.create(self.database())?;
            self.absent = None;
        }
        Ok(())
    }

    /// Makes what a command needs; a reply if it cannot run.
    fn prepare(&mut self, words: &[Vec<u8>]) -> Result<Option<Reply>, Failure> {
        let need = self.absent.as_ref().map_or(Need::Nothing, |absent| absent.need(words));
        Ok(match need {
            Need::Nothing => None,
            Need::Existing => self.absence().map(|text| Reply::Error(format!("ERR {text}"))),
            Need::Created => {
                self.create_store()?;
                None
            }
        })
    }

    /// The handle of the selected database, if the store is of this process alone.
    pub(super) fn local_db(&self) -> Option<&Db> {
        self.session.db()
    }

    /// The handle of the selected database, for what works on a store of this process alone.
    pub(super) fn db(&self) -> Result<&Db, Failure> {
        let advice = "this is for a store of this process alone: a server, a cluster and a shared store have \
                      commands only (lsmkv stats, levels, check and dump read a shared store)";
        self.local_db().ok_or_else(|| Failure::new(advice))
    }

    /// Another session on the selected database.
    pub(super) fn another_session(&self) -> Result<StoreSession, Failure> {
        self.session.another()
    }

    /// The number of the selected database.
    pub(super) fn database(&self) -> u32 {
        self.session.database()
    }

    /// Closes the store, if it is one of a directory.
    pub(super) fn close(&self) -> Result<(), Failure> {
        Ok(self.session.close()?)
    }

    pub(super) fn in_multi(&self) -> bool {
        self.session.in_multi()
    }

    /// Runs a line. Empty lines and comments do nothing.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        out: &mut impl Write,
    ) -> Result<LineOutcome, Failure> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(LineOutcome::Succeeded);
        }
        match split_inline(line) {
            Some(words) => self.words(&words, out),
            None => {
                let text = "ERR the quotes do not match".to_owned();
                render::write(&Reply::Error(text), self.style, out)?;
                Ok(LineOutcome::Failed)
            }
        }
    }

    /// Runs a command given as words.
    pub(super) fn words(
        &mut self,
        words: &[Vec<u8>],
        out: &mut impl Write,
    ) -> Result<LineOutcome, Failure> {
        let Some(first) = words.first() else { return Ok(LineOutcome::Succeeded) };
        if first.starts_with(b".") {
            return self.dot(words, out);
        }
        if first.eq_ignore_ascii_case(b"help") {
            let topic = words.get(1).map(|topic| String::from_utf8_lossy(topic));
            write!(out, "{}", help::text(topic.as_deref()))?;
            return Ok(LineOutcome::Succeeded);
        }
        if first.eq_ignore_ascii_case(b"exit") {
            return Ok(LineOutcome::Quit);
        }
        self.command(words, out)
    }

    /// Runs a command of the store and shows its reply.
    pub(super) fn command(
        &mut self,
        words: &[Vec<u8>],
        mut out: &mut dyn Write,
    ) -> Result<LineOutcome, Failure> {
        let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = match self.prepare(words)? {
            Some(refusal) => refusal,
            None => match self.session.command(&argv) {
                Ok(reply) => reply,
                // A failure of the store is shown as an error reply, because the session goes on.
                Err(error) => Reply::Error(format!("ERR {error}")),
            },
        };
        render::write(&reply, self.style, &mut out)?;
        Ok(match reply {
            Reply::Error(_) => LineOutcome::Failed,
            _ if self.session.is_over() => LineOutcome::Quit,
            _ => LineOutcome::Succeeded,
        })
    }
}

/// Whether a line ends inside quotes and needs another line.
pub(super) fn is_incomplete(line: &[u8]) -> bool {
    let mut quote = None;
    let mut bytes = line.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(b'"'), b'\\') => _ = bytes.next(),
            (Some(b'\''), b'\\') if bytes.peek() == Some(&&b'\'') => _ = bytes.next(),
            (Some(open), byte) if open == *byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(*byte),
            _ => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmkv::Options;

    #[test]
    fn a_line_is_incomplete_while_a_quote_is_open() {
        for line in ["SET k \"a", "SET k 'a\nb", "SET k \"a\\\"", "SET 'it\\'s"] {
            assert!(is_incomplete(line.as_bytes()), "{line}");
        }
        for line in ["", "SET k v", "SET k \"a\\\"b\"", "SET k 'a\\'b'", "GET a\\"] {
            assert!(!is_incomplete(line.as_bytes()), "{line}");
        }
    }

    fn run(lines: &[&str]) -> (String, Vec<LineOutcome>) {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let mut interpreter = Interpreter::new(&db, Style::Readable { colours: false });
        let mut out = Vec::new();
        let done = lines.iter().map(|line| interpreter.line(line.as_bytes(), &mut out).unwrap());
        let done = done.collect();
        (String::from_utf8(out).unwrap(), done)
    }

    #[test]
    fn lines_run_in_one_session() {
        let (out, done) = run(&["# a comment", "", "MULTI", "incr n", "EXEC", "SELECT 1", "GET n"]);
        assert_eq!(out, "OK\nQUEUED\n1) (integer) 1\nOK\n(nil)\n");
        assert!(done.iter().all(|done| *done == LineOutcome::Succeeded));
    }

    #[test]
    fn a_script_of_a_file_gets_its_keys_and_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.lua");
        std::fs::write(&file, "return {#KEYS, KEYS[2] or '', #ARGV, ARGV[1] or ''}").unwrap();
        let file = file.display();
        let lines = [
            format!(".lua {file} a b , x y z"),
            format!(".lua {file} a b"),
            format!(".lua {file} , 'x,'"),
            format!(".lua {file}.none"),
            ".lua".to_owned(),
        ];
        let (out, done) = run(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let reply = |keys: u8, key: &str, args: u8, arg: &str| {
            format!("1) (integer) {keys}\n2) \"{key}\"\n3) (integer) {args}\n4) \"{arg}\"\n")
        };
        let replies = [reply(2, "b", 3, "x"), reply(2, "b", 0, ""), reply(0, "", 1, "x,")].concat();
        assert!(out.starts_with(&replies), "{out}");
        assert_eq!(done.iter().filter(|it| **it == LineOutcome::Failed).count(), 2, "{out}");
    }

    #[test]
    fn errors_and_the_end_are_told_apart() {
        let (out, done) = run(&["GET", "SET k \"", "nonsense", "QUIT"]);
        assert_eq!(
            done,
            [LineOutcome::Failed, LineOutcome::Failed, LineOutcome::Failed, LineOutcome::Quit]
        );
        assert!(out.starts_with("(error) ERR wrong number of arguments for 'get' command\n"));
    }
}
