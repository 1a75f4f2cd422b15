//! Receives replies piece by piece, for example straight into a client's buffer.

use bytes::Bytes;

use super::reply::Reply;

/// The kind of an aggregate. Its length comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An array of `len` replies.
    Array,
    /// `len` keys, each followed by its value.
    Map,
    /// A set of `len` replies.
    Set,
    /// `len` parts of a message that no command asked for.
    Push,
    /// `len` pairs whose order counts. [`ReplySink::pair`] comes before each pair, then its two
    /// halves.
    Pairs,
}

/// Receives a reply piece by piece, in the order in which a protocol sends it.
/// [`Db::command_into`](crate::Db::command_into) writes to it.
///
/// A sink without room left returns true from [`is_full`](Self::is_full). Its last reply is then
/// incomplete, and it may ignore the rest.
pub trait ReplySink {
    /// Writes a reply without a value.
    fn nil(&mut self);
    /// Writes a missing array.
    fn nil_array(&mut self);
    /// Writes a status such as `OK`.
    fn status(&mut self, text: &'static str);
    /// Writes a status that a script made.
    fn text(&mut self, text: &[u8]) {
        self.bulk(text);
    }
    /// Writes an error, with its code.
    fn error(&mut self, text: &str);
    /// Writes an integer.
    fn integer(&mut self, number: i64);
    /// Writes bytes.
    fn bulk(&mut self, bytes: &[u8]);
    /// Writes bytes that the caller shares. A sink that holds its replies can keep them without a
    /// copy.
    fn shared_bulk(&mut self, bytes: Bytes) {
        self.bulk(&bytes);
    }
    /// Whether the sink leaves out a string of `len` bytes that is the whole reply: the caller of the
    /// command then hands it on by itself, part by part.
    fn leaves_out(&mut self, _len: usize) -> bool {
        false
    }
    /// Begins bytes that follow in parts, `len` in all; `end_bulk` ends them. A sink that returns
    /// false takes them only as a whole, by [`bulk`](Self::bulk).
    fn begin_bulk(&mut self, _len: usize) -> bool {
        false
    }
    /// Writes a part of the bytes that were begun.
    fn bulk_part(&mut self, _bytes: &[u8]) {}
    /// Ends the bytes that were begun.
    fn end_bulk(&mut self) {}
    /// Writes a double.
    fn double(&mut self, number: f64);
    /// Writes a boolean that a script returned.
    fn boolean(&mut self, yes: bool) {
        self.integer(i64::from(yes));
    }
    /// Writes the digits of a number of any size.
    fn big_number(&mut self, digits: &[u8]) {
        self.bulk(digits);
    }
    /// Writes text in a format that three letters name.
    fn verbatim(&mut self, _format: [u8; 3], text: &[u8]) {
        self.bulk(text);
    }
    /// Begins an aggregate. Its replies follow.
    fn head(&mut self, head: Head, len: usize);
    /// Begins the next pair of [`Head::Pairs`].
    fn pair(&mut self);
    /// Whether the sink takes no more, so that the caller can stop a walk.
    fn is_full(&self) -> bool;
    /// The position of the next reply.
    fn position(&self) -> usize;
    /// Puts a head before the replies written since `position`, when their number is known only
    /// afterwards.
    fn insert_head(&mut self, position: usize, head: Head, len: usize);
    /// Removes everything written since `position`.
    fn rollback_to(&mut self, position: usize);
}

impl Reply {
    /// Writes the reply to a sink.
    pub fn write_to(&self, sink: &mut dyn ReplySink) {
        match self {
            Self::Nil => sink.nil(),
            Self::NilArray => sink.nil_array(),
            Self::Status(text) => sink.status(text),
            Self::Text(text) => sink.text(text),
            Self::Error(text) => sink.error(text),
            Self::Int(number) => sink.integer(*number),
            Self::Bulk(bytes) => sink.bulk(bytes),
            Self::Double(number) => sink.double(*number),
            Self::Bool(yes) => sink.boolean(*yes),
            Self::BigNumber(digits) => sink.big_number(digits),
            Self::Verbatim(format, text) => sink.verbatim(*format, text),
            Self::Array(items) => write_items(items, Head::Array, sink),
            Self::Set(items) => write_items(items, Head::Set, sink),
            Self::Push(items) => write_items(items, Head::Push, sink),
            Self::Map(pairs) => write_pairs(pairs, Head::Map, sink),
            Self::Pairs(pairs) => write_pairs(pairs, Head::Pairs, sink),
        }
    }
}

fn write_items(items: &[Reply], head: Head, sink: &mut dyn ReplySink) {
    sink.head(head, items.len());
    for item in items {
        if sink.is_full() {
            return;
        }
        item.write_to(sink);
    }
}

fn write_pairs(pairs: &[(Reply, Reply)], head: Head, sink: &mut dyn ReplySink) {
    sink.head(head, pairs.len());
    for (first, second) in pairs {
        if sink.is_full() {
            return;
        }
        if head == Head::Pairs {
            sink.pair();
        }
        first.write_to(sink);
        second.write_to(sink);
    }
}
