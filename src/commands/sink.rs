//! Where replies go piece by piece: to a client's buffer, without being built first.

use super::reply::Reply;

/// What several replies in a row are together; how many there are is said with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An array of that many.
    Array,
    /// That many keys, each followed by its value.
    Map,
    /// A set of that many.
    Set,
    /// That many pairs whose order counts: [`ReplySink::pair`] comes before each, then its two
    /// halves.
    Pairs,
}

/// Takes a reply apart, in the order in which a protocol writes it: see
/// [`Db::command_into`](crate::Db::command_into).
///
/// A receiver that has no room left says so by [`is_full`](Self::is_full); what it has of that
/// reply is then incomplete, and it may ignore the rest.
pub trait ReplySink {
    /// No value.
    fn nil(&mut self);
    /// No array.
    fn nil_array(&mut self);
    /// A status such as `OK`.
    fn status(&mut self, text: &str);
    /// An error, with its code.
    fn error(&mut self, text: &str);
    /// A number.
    fn integer(&mut self, number: i64);
    /// Bytes.
    fn bulk(&mut self, bytes: &[u8]);
    /// A double.
    fn double(&mut self, number: f64);
    /// The replies that follow belong together.
    fn head(&mut self, head: Head, len: usize);
    /// The next pair of [`Head::Pairs`] follows.
    fn pair(&mut self);
    /// Whether it takes no more: who walks over rows can stop.
    fn is_full(&self) -> bool;
    /// Where the next reply will stand.
    fn position(&self) -> usize;
    /// Puts a head before the replies written since `position`, whose number was not known then.
    fn insert_head(&mut self, position: usize, head: Head, len: usize);
    /// Forgets what was written since `position`: it could not be finished.
    fn go_back(&mut self, position: usize);
}

impl Reply {
    /// Gives it to a receiver.
    pub fn write_to(&self, sink: &mut dyn ReplySink) {
        match self {
            Self::Nil => sink.nil(),
            Self::NilArray => sink.nil_array(),
            Self::Status(text) => sink.status(text),
            Self::Error(text) => sink.error(text),
            Self::Int(number) => sink.integer(*number),
            Self::Bulk(bytes) => sink.bulk(bytes),
            Self::Double(number) => sink.double(*number),
            Self::Array(items) => write_items(items, Head::Array, sink),
            Self::Set(items) => write_items(items, Head::Set, sink),
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
