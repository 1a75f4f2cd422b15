//! Builds a [`Reply`] from the elements that a command streams.

use bytes::Bytes;

use super::reply::Reply;
use super::sink::{Head, ReplySink};

/// Collects replies in the order in which they are written, and nests those that belong together.
#[derive(Debug, Default)]
pub(crate) struct ReplyBuilder {
    /// Complete replies, and heads whose replies follow.
    parts: Vec<Part>,
    /// The length of the longest string that may be the whole reply; `None`: any.
    longest: Option<usize>,
    /// Whether a longer one was left out.
    has_left_out: bool,
}

#[derive(Debug)]
enum Part {
    Reply(Reply),
    Head(Head, usize),
}

impl ReplyBuilder {
    /// Returns the reply that `write` writes; nil if it writes none.
    pub(crate) fn collect<E>(write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<Reply, E> {
        let mut builder = Self::default();
        write(&mut builder)?;
        Ok(builder.finish())
    }

    /// Leaves out a reply that is a string in chunks longer than `longest`.
    pub(crate) fn up_to(longest: Option<usize>) -> Self {
        Self { longest, ..Self::default() }
    }

    /// Returns the reply that was written; nil if none was.
    pub(crate) fn finish(self) -> Reply {
        let mut parts = self.parts.into_iter();
        reply(&mut parts).unwrap_or(Reply::Nil)
    }

    /// Returns the reply that was written, unless it was left out.
    pub(crate) fn finish_short(self) -> Option<Reply> {
        (!self.has_left_out).then(|| self.finish())
    }

    fn push(&mut self, reply: Reply) {
        self.parts.push(Part::Reply(reply));
    }
}

/// Takes the next reply with everything nested in it.
fn reply(parts: &mut impl Iterator<Item = Part>) -> Option<Reply> {
    let (head, len) = match parts.next()? {
        Part::Reply(reply) => return Some(reply),
        Part::Head(head, len) => (head, len),
    };
    Some(match head {
        Head::Array => Reply::Array(items(parts, len)),
        Head::Set => Reply::Set(items(parts, len)),
        Head::Push => Reply::Push(items(parts, len)),
        Head::Map => Reply::Map(pairs(parts, len)),
        Head::Pairs => Reply::Pairs(pairs(parts, len)),
    })
}

fn items(parts: &mut impl Iterator<Item = Part>, len: usize) -> Vec<Reply> {
    (0..len).map_while(|_| reply(parts)).collect()
}

fn pairs(parts: &mut impl Iterator<Item = Part>, len: usize) -> Vec<(Reply, Reply)> {
    (0..len).map_while(|_| Some((reply(parts)?, reply(parts)?))).collect()
}

impl ReplySink for ReplyBuilder {
    fn leaves_out(&mut self, len: usize) -> bool {
        let is_long = self.longest.is_some_and(|longest| len > longest);
        self.has_left_out |= is_long;
        is_long
    }

    fn nil(&mut self) {
        self.push(Reply::Nil);
    }

    fn nil_array(&mut self) {
        self.push(Reply::NilArray);
    }

    fn status(&mut self, text: &'static str) {
        self.push(Reply::Status(text));
    }

    fn text(&mut self, text: &[u8]) {
        self.push(Reply::Text(Bytes::copy_from_slice(text)));
    }

    fn error(&mut self, text: &str) {
        self.push(Reply::Error(text.to_owned()));
    }

    fn integer(&mut self, number: i64) {
        self.push(Reply::Int(number));
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.push(Reply::Bulk(Bytes::copy_from_slice(bytes)));
    }

    fn shared_bulk(&mut self, bytes: Bytes) {
        self.push(Reply::Bulk(bytes));
    }

    fn double(&mut self, number: f64) {
        self.push(Reply::Double(number));
    }

    fn boolean(&mut self, yes: bool) {
        self.push(Reply::Bool(yes));
    }

    fn big_number(&mut self, digits: &[u8]) {
        self.push(Reply::BigNumber(Bytes::copy_from_slice(digits)));
    }

    fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        self.push(Reply::Verbatim(format, Bytes::copy_from_slice(text)));
    }

    fn head(&mut self, head: Head, len: usize) {
        self.parts.push(Part::Head(head, len));
    }

    fn pair(&mut self) {}

    fn is_full(&self) -> bool {
        false
    }

    fn position(&self) -> usize {
        self.parts.len()
    }

    fn insert_head(&mut self, position: usize, head: Head, len: usize) {
        self.parts.insert(position.min(self.parts.len()), Part::Head(head, len));
    }

    fn rollback_to(&mut self, position: usize) {
        self.parts.truncate(position);
    }
}
