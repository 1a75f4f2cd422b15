//! Writes a reply straight into the flat form for C.

use crate::commands::{Head, ReplySink};
use crate::ffi::reply::{
    LSMKV_REPLY_ARRAY, LSMKV_REPLY_DOUBLE, LSMKV_REPLY_ERROR, LSMKV_REPLY_INT, LSMKV_REPLY_MAP,
    LSMKV_REPLY_NIL, LSMKV_REPLY_NO_ARRAY, LSMKV_REPLY_PUSH, LSMKV_REPLY_SET, LSMKV_REPLY_STATUS,
    LSMKV_REPLY_STR, is_aggregate, is_text, lsmkv_node, lsmkv_reply,
};

/// The largest number of nodes reserved for a claimed number of elements, which may come from a
/// damaged record.
const MOST_RESERVED: usize = 1 << 12;

/// A [`ReplySink`] that builds an [`lsmkv_reply`].
#[derive(Default)]
pub(super) struct ReplyWriter {
    nodes: Vec<lsmkv_node>,
    arena: Vec<u8>,
    /// Whether an aggregate is inside another, so that their ends must be computed.
    is_nested: bool,
}

impl ReplyWriter {
    /// Creates a writer of several replies, as an array. Call [`ReplyWriter::count_reply`] after
    /// each.
    pub(super) fn array() -> Self {
        let mut writer = Self::default();
        writer.head(Head::Array, 0);
        writer
    }

    /// Counts a reply that was written to a writer of [`ReplyWriter::array`].
    pub(super) fn count_reply(&mut self) {
        if let Some(first) = self.nodes.first_mut() {
            first.num += 1;
        }
    }

    /// Whether the reply is nil.
    pub(super) fn is_nil(&self) -> bool {
        self.nodes.first().is_none_or(|node| node.kind == LSMKV_REPLY_NIL)
    }

    /// Returns the reply that was written.
    pub(super) fn finish(mut self) -> lsmkv_reply {
        let end = self.nodes.len() as u64;
        if self.is_nested {
            self.end_aggregates();
        } else if let Some(first) = self.nodes.first_mut()
            && is_aggregate(first.kind)
        {
            first.off = end;
        }
        lsmkv_reply::new(self.nodes, self.arena)
    }

    /// Sets in every aggregate the index of the node after its last descendant.
    fn end_aggregates(&mut self) {
        // Open aggregates: their index, and how many children are left.
        let mut open: Vec<(usize, i64)> = Vec::new();
        for at in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(at) else { break };
            open.push((at, if is_aggregate(node.kind) { node.num } else { 0 }));
            while let Some((place, 0)) = open.last().copied() {
                open.pop();
                if let Some(node) = self.nodes.get_mut(place)
                    && is_aggregate(node.kind)
                {
                    node.off = at as u64 + 1;
                }
                if let Some((_, left)) = open.last_mut() {
                    *left -= 1;
                }
            }
        }
    }

    fn number(&mut self, kind: i32, num: i64) {
        self.nodes.push(lsmkv_node { kind, flags: 0, num, off: 0, len: 0 });
    }

    fn bytes(&mut self, kind: i32, text: &[u8]) {
        let (off, len) = (self.arena.len() as u64, text.len() as u64);
        self.arena.extend_from_slice(text);
        self.nodes.push(lsmkv_node { kind, flags: 0, num: 0, off, len });
    }
}

/// The node of an aggregate. `end_aggregates` or `finish` sets where it ends.
fn aggregate(head: Head, len: usize) -> lsmkv_node {
    // C has no pairs: both halves go into one flat array.
    let (kind, count) = match head {
        Head::Array => (LSMKV_REPLY_ARRAY, len),
        Head::Set => (LSMKV_REPLY_SET, len),
        Head::Push => (LSMKV_REPLY_PUSH, len),
        Head::Map => (LSMKV_REPLY_MAP, len.saturating_mul(2)),
        Head::Pairs => (LSMKV_REPLY_ARRAY, len.saturating_mul(2)),
    };
    let num = i64::try_from(count).unwrap_or(i64::MAX);
    lsmkv_node { kind, flags: 0, num, off: 0, len: 0 }
}

impl ReplySink for ReplyWriter {
    fn nil(&mut self) {
        self.number(LSMKV_REPLY_NIL, 0);
    }

    fn nil_array(&mut self) {
        let flags = LSMKV_REPLY_NO_ARRAY;
        self.nodes.push(lsmkv_node { kind: LSMKV_REPLY_NIL, flags, num: 0, off: 0, len: 0 });
    }

    fn status(&mut self, text: &'static str) {
        self.bytes(LSMKV_REPLY_STATUS, text.as_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.bytes(LSMKV_REPLY_STATUS, text);
    }

    fn error(&mut self, text: &str) {
        self.bytes(LSMKV_REPLY_ERROR, text.as_bytes());
    }

    fn integer(&mut self, number: i64) {
        self.number(LSMKV_REPLY_INT, number);
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.bytes(LSMKV_REPLY_STR, bytes);
    }

    fn double(&mut self, number: f64) {
        self.number(LSMKV_REPLY_DOUBLE, number.to_bits().cast_signed());
    }

    fn head(&mut self, head: Head, len: usize) {
        self.is_nested |= !self.nodes.is_empty();
        let node = aggregate(head, len);
        let count = usize::try_from(node.num).unwrap_or(MOST_RESERVED);
        self.nodes.reserve(count.min(MOST_RESERVED) + 1);
        self.nodes.push(node);
    }

    fn pair(&mut self) {}

    fn is_full(&self) -> bool {
        false
    }

    fn position(&self) -> usize {
        self.nodes.len()
    }

    fn insert_head(&mut self, position: usize, head: Head, len: usize) {
        let position = position.min(self.nodes.len());
        // An aggregate at the very beginning moves into this one.
        let moves_in = self.nodes.first().is_some_and(|first| is_aggregate(first.kind));
        self.is_nested |= position > 0 || moves_in;
        self.nodes.insert(position, aggregate(head, len));
    }

    fn rollback_to(&mut self, position: usize) {
        let texts = self.nodes.get(position..).unwrap_or_default();
        let text = texts.iter().find(|node| is_text(node.kind));
        if let Some(len) = text.and_then(|node| usize::try_from(node.off).ok()) {
            self.arena.truncate(len);
        }
        self.nodes.truncate(position);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::commands::Reply;

    fn bulk(text: &'static str) -> Reply {
        Reply::Bulk(Bytes::from_static(text.as_bytes()))
    }

    fn written(reply: &Reply) -> lsmkv_reply {
        let mut writer = ReplyWriter::default();
        reply.write_to(&mut writer);
        writer.finish()
    }

    /// The kind, num, off and len of each node.
    fn shape(reply: &lsmkv_reply) -> Vec<(i32, i64, u64, u64)> {
        reply.nodes().iter().map(|n| (n.kind, n.num, n.off, n.len)).collect()
    }

    #[test]
    fn nodes_come_in_order_and_an_aggregate_says_where_it_ends() {
        let reply = written(&Reply::Array(vec![
            bulk("ab"),
            Reply::Map(vec![(bulk("k"), Reply::Double(1.5))]),
            Reply::Array(vec![]),
            Reply::NilArray,
            Reply::Int(7),
        ]));
        let bits = 1.5f64.to_bits().cast_signed();
        let expected = [
            (LSMKV_REPLY_ARRAY, 5, 8, 0),
            (LSMKV_REPLY_STR, 0, 0, 2),
            (LSMKV_REPLY_MAP, 2, 5, 0),
            (LSMKV_REPLY_STR, 0, 2, 1),
            (LSMKV_REPLY_DOUBLE, bits, 0, 0),
            (LSMKV_REPLY_ARRAY, 0, 6, 0),
            (LSMKV_REPLY_NIL, 0, 0, 0),
            (LSMKV_REPLY_INT, 7, 0, 0),
        ];
        assert_eq!(shape(&reply), expected);
        assert_eq!(reply.nodes()[6].flags, LSMKV_REPLY_NO_ARRAY);
    }

    #[test]
    fn replies_in_an_array_are_counted_as_they_come() {
        let mut writer = ReplyWriter::array();
        Reply::OK.write_to(&mut writer);
        writer.count_reply();
        Reply::Array(vec![Reply::Int(1), Reply::Int(2)]).write_to(&mut writer);
        writer.count_reply();
        let shape = shape(&writer.finish());
        assert_eq!(shape[0], (LSMKV_REPLY_ARRAY, 2, 5, 0));
        assert_eq!(shape[2], (LSMKV_REPLY_ARRAY, 2, 5, 0));
    }

    #[test]
    fn a_head_that_comes_late_stands_before_its_elements() {
        for outer in [false, true] {
            let mut writer = ReplyWriter::default();
            if outer {
                writer.head(Head::Array, 2);
                writer.integer(1);
            }
            let begin = writer.position();
            writer.bulk(b"a");
            writer.bulk(b"bc");
            writer.insert_head(begin, Head::Array, 2);
            let shape = shape(&writer.finish());
            let inner = (LSMKV_REPLY_ARRAY, 2, shape.len() as u64, 0);
            assert_eq!(shape[begin], inner);
            assert_eq!(shape[begin + 2], (LSMKV_REPLY_STR, 0, 1, 2));
            assert_eq!(shape[0].2, shape.len() as u64);
        }
    }

    /// The end of the nested array was missing: its head was the first node when it was written.
    #[test]
    fn a_head_that_comes_late_may_stand_before_an_aggregate() {
        let mut writer = ReplyWriter::default();
        writer.head(Head::Array, 1);
        writer.integer(1);
        writer.head(Head::Set, 1);
        writer.integer(2);
        writer.insert_head(0, Head::Array, 2);
        let ends: Vec<u64> = shape(&writer.finish()).iter().map(|node| node.2).collect();
        assert_eq!(ends, [5, 3, 0, 5, 0]);

        let mut writer = ReplyWriter::default();
        writer.head(Head::Array, 1);
        writer.integer(1);
        writer.insert_head(0, Head::Array, 1);
        let ends: Vec<u64> = shape(&writer.finish()).iter().map(|node| node.2).collect();
        assert_eq!(ends, [3, 3, 0]);
    }

    #[test]
    fn what_is_rolled_back_leaves_nothing() {
        let mut writer = ReplyWriter::array();
        writer.bulk(b"kept");
        writer.count_reply();
        let begin = writer.position();
        writer.head(Head::Set, 3);
        writer.bulk(b"lost");
        writer.rollback_to(begin);
        writer.bulk(b"new");
        writer.count_reply();
        let shape = shape(&writer.finish());
        assert_eq!(shape[0], (LSMKV_REPLY_ARRAY, 2, 3, 0));
        assert_eq!(shape[1..], [(LSMKV_REPLY_STR, 0, 0, 4), (LSMKV_REPLY_STR, 0, 4, 3)]);
    }

    #[test]
    fn pairs_alternate_in_one_array() {
        let reply = written(&Reply::Pairs(vec![(bulk("m"), Reply::Double(2.0))]));
        assert_eq!(shape(&reply)[0], (LSMKV_REPLY_ARRAY, 2, 3, 0));
    }
}
