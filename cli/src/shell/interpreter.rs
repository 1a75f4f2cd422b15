//! What a line of the shell does: a command of the store, or one of the shell itself, which begin
//! with a dot.

use std::io::Write;

use lsmkv::{Db, Reply, Session};

use super::help;
use super::render::{self, Style};
use crate::failure::Failure;
use crate::resp::split_inline;
use crate::transfer::Interrupt;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Well,
    /// The reply was an error.
    Failed,
    /// The user wants to leave.
    Quit,
}

/// A session and how its replies are shown.
pub(super) struct Interpreter {
    session: Session,
    pub(super) style: Style,
    pub(super) interrupt: Interrupt,
}

impl Interpreter {
    pub(super) fn new(db: &Db, style: Style) -> Self {
        Self { session: db.session(), style, interrupt: Interrupt::default() }
    }

    /// The handle with the selected database.
    pub(super) fn db(&self) -> &Db {
        self.session.db()
    }

    pub(super) fn in_multi(&self) -> bool {
        self.session.in_multi()
    }

    /// Runs a line; an empty one and a comment do nothing.
    pub(super) fn line(&mut self, line: &[u8], out: &mut impl Write) -> Result<Done, Failure> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(Done::Well);
        }
        match split_inline(line) {
            Some(words) => self.words(&words, out),
            None => {
                let text = "ERR the quotes do not match".to_owned();
                render::write(&Reply::Error(text), self.style, out)?;
                Ok(Done::Failed)
            }
        }
    }

    /// Runs a command given as words.
    pub(super) fn words(
        &mut self,
        words: &[Vec<u8>],
        out: &mut impl Write,
    ) -> Result<Done, Failure> {
        let Some(first) = words.first() else { return Ok(Done::Well) };
        if first.starts_with(b".") {
            return self.dot(words, out);
        }
        if first.eq_ignore_ascii_case(b"help") {
            write!(out, "{}", help::text(words.get(1)))?;
            return Ok(Done::Well);
        }
        if first.eq_ignore_ascii_case(b"exit") {
            return Ok(Done::Quit);
        }
        let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = match self.session.command(&argv) {
            Ok(reply) => reply,
            // The store's own errors are shown like those of commands: a session goes on.
            Err(error) => Reply::Error(format!("ERR {error}")),
        };
        render::write(&reply, self.style, out)?;
        Ok(match reply {
            Reply::Error(_) => Done::Failed,
            _ if self.session.is_over() => Done::Quit,
            _ => Done::Well,
        })
    }
}

/// Whether a line ends inside quotes: more is to come.
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

    fn run(lines: &[&str]) -> (String, Vec<Done>) {
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
        assert!(done.iter().all(|done| *done == Done::Well));
    }

    #[test]
    fn errors_and_the_end_are_told_apart() {
        let (out, done) = run(&["GET", "SET k \"", "nonsense", "QUIT"]);
        assert_eq!(done, [Done::Failed, Done::Failed, Done::Failed, Done::Quit]);
        assert!(out.starts_with("(error) ERR wrong number of arguments for 'get' command\n"));
    }
}
