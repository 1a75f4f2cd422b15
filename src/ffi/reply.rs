//! `lsmkv_reply`: an answer of any shape, flat: an array of nodes in the order in which they are
//! met from the top, each aggregate before its children, and one arena of bytes. A binding reads
//! both in one go; decoding a tree of pointers took seven times as long in Python.
#![expect(unsafe_code, reason = "hands replies to C and takes them back")]

use std::ptr::null;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::{call_free, caught};
use crate::ffi::slice::{Out, misuse};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};

/// No value. The flag LSMKV_REPLY_NO_ARRAY tells a missing array.
pub const LSMKV_REPLY_NIL: i32 = 0;
/// A status such as OK; its text is in the arena.
pub const LSMKV_REPLY_STATUS: i32 = 1;
/// An error of the command, with the text Redis gives it; in the arena.
pub const LSMKV_REPLY_ERROR: i32 = 2;
/// A number, in num.
pub const LSMKV_REPLY_INT: i32 = 3;
/// Bytes, in the arena.
pub const LSMKV_REPLY_STR: i32 = 4;
/// A double; num holds its bits.
pub const LSMKV_REPLY_DOUBLE: i32 = 5;
/// Yes or no; num is 1 or 0.
pub const LSMKV_REPLY_BOOL: i32 = 6;
/// num children follow.
pub const LSMKV_REPLY_ARRAY: i32 = 7;
/// num children follow, a key and a value in turn.
pub const LSMKV_REPLY_MAP: i32 = 8;
/// num different children follow, in no order.
pub const LSMKV_REPLY_SET: i32 = 9;
/// As an array, of what was not asked for.
pub const LSMKV_REPLY_PUSH: i32 = 10;
/// Text to be shown as it is; in the arena.
pub const LSMKV_REPLY_VERBATIM: i32 = 11;
/// A number of any size, as text in the arena.
pub const LSMKV_REPLY_BIGNUM: i32 = 12;

/// Flag of a node of kind LSMKV_REPLY_NIL: where RESP2 would send a null array.
pub const LSMKV_REPLY_NO_ARRAY: i32 = 1;

/// A part of a reply. Node 0 is the reply itself; an aggregate's children follow it, each with
/// all of its own children.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct lsmkv_node {
    /// One of LSMKV_REPLY_NIL and so on.
    pub kind: i32,
    /// 0, or flags of the kind.
    pub flags: i32,
    /// A number, the bits of a double, or how many direct children there are (a map: two a pair).
    pub num: i64,
    /// Text: where it begins in the arena. Aggregates: the index of the node after the last one
    /// that belongs to it.
    pub off: u64,
    /// Text: how many bytes.
    pub len: u64,
}

/// The answer of a command. Made by the library, freed by lsmkv_reply_free; used by one thread at
/// a time; valid after the database is closed.
pub struct lsmkv_reply {
    nodes: Vec<lsmkv_node>,
    arena: Vec<u8>,
}

impl lsmkv_reply {
    /// The flat form.
    pub(super) fn of(reply: &Reply) -> Self {
        let mut flat = Self { nodes: Vec::new(), arena: Vec::new() };
        flat.push(reply);
        flat
    }

    /// The flat form of several replies, as an array.
    pub(super) fn array() -> Self {
        let node = lsmkv_node { kind: LSMKV_REPLY_ARRAY, flags: 0, num: 0, off: 1, len: 0 };
        Self { nodes: vec![node], arena: Vec::new() }
    }

    /// Adds a reply to what [`lsmkv_reply::array`] began.
    pub(super) fn append(&mut self, reply: &Reply) {
        self.push(reply);
        let end = self.nodes.len() as u64;
        if let Some(first) = self.nodes.first_mut() {
            first.num += 1;
            first.off = end;
        }
    }

    /// For C, which gives it back to lsmkv_reply_free.
    pub(super) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    fn push(&mut self, reply: &Reply) {
        match reply {
            Reply::Nil => self.number(LSMKV_REPLY_NIL, 0),
            Reply::NilArray => {
                self.number(LSMKV_REPLY_NIL, 0);
                if let Some(node) = self.nodes.last_mut() {
                    node.flags = LSMKV_REPLY_NO_ARRAY;
                }
            }
            Reply::Status(text) => self.text(LSMKV_REPLY_STATUS, text.as_bytes()),
            Reply::Error(text) => self.text(LSMKV_REPLY_ERROR, text.as_bytes()),
            Reply::Int(number) => self.number(LSMKV_REPLY_INT, *number),
            Reply::Bulk(bytes) => self.text(LSMKV_REPLY_STR, bytes),
            Reply::Double(number) => {
                self.number(LSMKV_REPLY_DOUBLE, number.to_bits().cast_signed());
            }
            Reply::Array(items) => self.aggregate(LSMKV_REPLY_ARRAY, items.len(), items.iter()),
            Reply::Set(items) => self.aggregate(LSMKV_REPLY_SET, items.len(), items.iter()),
            Reply::Map(pairs) => {
                let items = pairs.iter().flat_map(|(key, value)| [key, value]);
                self.aggregate(LSMKV_REPLY_MAP, pairs.len() * 2, items);
            }
            // A scored range alternates member and score.
            Reply::Pairs(pairs) => {
                let items = pairs.iter().flat_map(|(member, score)| [member, score]);
                self.aggregate(LSMKV_REPLY_ARRAY, pairs.len() * 2, items);
            }
        }
    }

    fn number(&mut self, kind: i32, num: i64) {
        self.nodes.push(lsmkv_node { kind, flags: 0, num, off: 0, len: 0 });
    }

    fn text(&mut self, kind: i32, text: &[u8]) {
        let (off, len) = (self.arena.len() as u64, text.len() as u64);
        self.arena.extend_from_slice(text);
        self.nodes.push(lsmkv_node { kind, flags: 0, num: 0, off, len });
    }

    fn aggregate<'r>(&mut self, kind: i32, count: usize, items: impl Iterator<Item = &'r Reply>) {
        let at = self.nodes.len();
        self.nodes.reserve(count + 1);
        self.number(kind, i64::try_from(count).unwrap_or(i64::MAX));
        items.for_each(|item| self.push(item));
        let end = self.nodes.len() as u64;
        if let Some(node) = self.nodes.get_mut(at) {
            node.off = end;
        }
    }

    fn text_of(&self, node: &lsmkv_node) -> Option<&[u8]> {
        let is_text = matches!(
            node.kind,
            LSMKV_REPLY_STATUS
                | LSMKV_REPLY_ERROR
                | LSMKV_REPLY_STR
                | LSMKV_REPLY_VERBATIM
                | LSMKV_REPLY_BIGNUM
        );
        let start = usize::try_from(node.off).ok().filter(|_| is_text)?;
        let len = usize::try_from(node.len).ok()?;
        self.arena.get(start..start.checked_add(len)?)
    }

    /// The index of child `n` of the aggregate at `parent`.
    fn child(&self, parent: usize, n: usize) -> Option<usize> {
        let node = self.nodes.get(parent).filter(|node| is_aggregate(node.kind))?;
        let count = usize::try_from(node.num).ok().filter(|count| n < *count)?;
        let first = parent + 1;
        // Without grandchildren a child's place is known.
        if usize::try_from(node.off) == Ok(first + count) {
            return Some(first + n);
        }
        (0..n).try_fold(first, |at, _| {
            let child = self.nodes.get(at)?;
            if is_aggregate(child.kind) { usize::try_from(child.off).ok() } else { Some(at + 1) }
        })
    }
}

fn is_aggregate(kind: i32) -> bool {
    matches!(kind, LSMKV_REPLY_ARRAY | LSMKV_REPLY_MAP | LSMKV_REPLY_SET | LSMKV_REPLY_PUSH)
}

/// All of a reply at once: *nodes and *arena point into it until it is freed. Each output may be
/// NULL.
///
/// OK; MISUSE: reply is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_view(
    reply: *const lsmkv_reply,
    nodes: *mut *const lsmkv_node,
    n: *mut usize,
    arena: *mut *const u8,
    arena_len: *mut usize,
) -> lsmkv_status {
    // SAFETY: the caller promises that each is NULL or a place for what it receives.
    let (nodes, n, arena, arena_len) = unsafe {
        (
            Out::emptied(nodes, null()),
            Out::emptied(n, 0),
            Out::emptied(arena, null()),
            Out::emptied(arena_len, 0),
        )
    };
    let body = || {
        // SAFETY: the caller promises NULL or a reply that was not freed.
        let reply = unsafe { reply.as_ref() }.ok_or_else(|| misuse("reply is NULL"))?;
        nodes.set(reply.nodes.as_ptr());
        n.set(reply.nodes.len());
        arena.set(reply.arena.as_ptr());
        arena_len.set(reply.arena.len());
        Ok(LSMKV_OK)
    };
    // SAFETY: no err.
    unsafe { call_free(std::ptr::null_mut(), body) }
}

/// The kind of node number `index`, LSMKV_REPLY_NIL and so on; -1 if there is no such node, or
/// reply is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_kind(reply: *const lsmkv_reply, index: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, -1, |_, node| Some(node.kind)) }
}

/// How many direct children an aggregate has (a map: two a pair), or how many bytes a text; 0 for
/// anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_len(reply: *const lsmkv_reply, index: usize) -> usize {
    let len = |_: &lsmkv_reply, node: &lsmkv_node| {
        let aggregate = u64::try_from(node.num).ok().filter(|_| is_aggregate(node.kind));
        let len = aggregate.unwrap_or(if is_aggregate(node.kind) { 0 } else { node.len });
        usize::try_from(len).ok()
    };
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, 0, len) }
}

/// The bytes of a text, lsmkv_reply_len of them and not terminated, until the reply is freed; an
/// empty one is not NULL. NULL for anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_str(reply: *const lsmkv_reply, index: usize) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, null(), |reply, node| Some(reply.text_of(node)?.as_ptr())) }
}

/// The number of a node of kind LSMKV_REPLY_INT or LSMKV_REPLY_BOOL; 0 for anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_int(reply: *const lsmkv_reply, index: usize) -> i64 {
    let number = |_: &lsmkv_reply, node: &lsmkv_node| {
        matches!(node.kind, LSMKV_REPLY_INT | LSMKV_REPLY_BOOL).then_some(node.num)
    };
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, 0, number) }
}

/// The number of a node of kind LSMKV_REPLY_DOUBLE or LSMKV_REPLY_INT; 0 for anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_double(reply: *const lsmkv_reply, index: usize) -> f64 {
    let number = |_: &lsmkv_reply, node: &lsmkv_node| match node.kind {
        LSMKV_REPLY_DOUBLE => Some(f64::from_bits(node.num.cast_unsigned())),
        LSMKV_REPLY_INT => Some(node.num as f64),
        _ => None,
    };
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, 0.0, number) }
}

/// The index of child number `n`, from 0, of the aggregate at `index`; (size_t)-1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_at(
    reply: *const lsmkv_reply,
    index: usize,
    n: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, usize::MAX, |reply, _| reply.child(index, n)) }
}

/// Frees a reply, at most once. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_free(reply: *mut lsmkv_reply) {
    if !reply.is_null() {
        // SAFETY: not NULL, and the caller promises a reply of this library that was not freed
        // before.
        drop(unsafe { Box::from_raw(reply) });
    }
}

/// What `found` says of a node, or `missing`.
///
/// # Safety
/// `reply` is NULL or a reply that was not freed.
unsafe fn look<T: Copy>(
    reply: *const lsmkv_reply,
    index: usize,
    missing: T,
    found: impl FnOnce(&lsmkv_reply, &lsmkv_node) -> Option<T>,
) -> T {
    // SAFETY: the caller's promise.
    let reply = unsafe { reply.as_ref() };
    let body = || -> Result<Option<T>> {
        Ok(reply.and_then(|reply| found(reply, reply.nodes.get(index)?)))
    };
    caught(body).ok().flatten().unwrap_or(missing)
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use bytes::Bytes;

    use super::*;

    fn bulk(text: &'static str) -> Reply {
        Reply::Bulk(Bytes::from_static(text.as_bytes()))
    }

    /// `[ "ab", { "k": 1.5 }, [] , nil array, 7 ]`
    fn nested() -> lsmkv_reply {
        lsmkv_reply::of(&Reply::Array(vec![
            bulk("ab"),
            Reply::Map(vec![(bulk("k"), Reply::Double(1.5))]),
            Reply::Array(vec![]),
            Reply::NilArray,
            Reply::Int(7),
        ]))
    }

    #[test]
    fn the_layout_is_the_one_the_header_promises() {
        assert_eq!(size_of::<lsmkv_node>(), 32);
        assert_eq!(offset_of!(lsmkv_node, flags), 4);
        assert_eq!(offset_of!(lsmkv_node, num), 8);
        assert_eq!(offset_of!(lsmkv_node, off), 16);
        assert_eq!(offset_of!(lsmkv_node, len), 24);
    }

    #[test]
    fn nodes_come_in_order_and_an_aggregate_says_where_it_ends() {
        let reply = nested();
        let shape: Vec<_> = reply.nodes.iter().map(|n| (n.kind, n.num, n.off, n.len)).collect();
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
        assert_eq!(shape, expected);
        assert_eq!(reply.arena, b"abk");
        assert_eq!(reply.nodes[6].flags, LSMKV_REPLY_NO_ARRAY);
    }

    #[test]
    fn children_are_found_also_behind_others_with_children() {
        let reply = nested();
        let found: Vec<_> = (0..6).map(|n| reply.child(0, n)).collect();
        assert_eq!(found, [Some(1), Some(2), Some(5), Some(6), Some(7), None]);
        assert_eq!(
            (reply.child(2, 1), reply.child(2, 2), reply.child(5, 0)),
            (Some(4), None, None)
        );
        assert_eq!((reply.child(1, 0), reply.child(99, 0)), (None, None), "no aggregate");
    }

    #[test]
    fn replies_that_are_appended_are_children_of_an_array() {
        let mut all = lsmkv_reply::array();
        all.append(&Reply::OK);
        all.append(&Reply::Array(vec![Reply::Int(1), Reply::Int(2)]));
        assert_eq!((all.nodes[0].num, all.nodes[0].off), (2, 5));
        assert_eq!(
            (all.child(0, 0), all.child(0, 1), all.child(2, 1)),
            (Some(1), Some(2), Some(4))
        );
    }

    #[test]
    fn a_text_of_no_bytes_is_not_null_and_what_is_no_text_is() {
        let reply = lsmkv_reply::of(&Reply::Array(vec![bulk(""), Reply::Nil]));
        // SAFETY: a live reply, and NULL.
        unsafe {
            assert!(!lsmkv_reply_str(&raw const reply, 1).is_null());
            assert_eq!(lsmkv_reply_len(&raw const reply, 1), 0);
            assert!(lsmkv_reply_str(&raw const reply, 2).is_null());
            assert_eq!(lsmkv_reply_kind(&raw const reply, 3), -1);
            assert_eq!(lsmkv_reply_kind(null(), 0), -1);
            assert_eq!(lsmkv_reply_at(null(), 0, 0), usize::MAX);
        }
    }
}
