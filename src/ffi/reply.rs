//! `lsmkv_reply`: a reply of any shape in flat form. It has an array of nodes in preorder, each
//! aggregate before its children, and one arena of bytes. A binding reads both at once; decoding a
//! tree of pointers took seven times as long in Python.
#![expect(unsafe_code, reason = "hands replies to C and takes them back")]

use std::ptr::null;

use crate::error::Result;
use crate::ffi::boundary::{caught, free_call};
use crate::ffi::slice::{Out, misuse};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};

/// No value. The flag LSMKV_REPLY_NO_ARRAY marks a missing array.
pub const LSMKV_REPLY_NIL: i32 = 0;
/// A status such as OK; its text is in the arena.
pub const LSMKV_REPLY_STATUS: i32 = 1;
/// An error of the command, with Redis's text; in the arena.
pub const LSMKV_REPLY_ERROR: i32 = 2;
/// An integer, in num.
pub const LSMKV_REPLY_INT: i32 = 3;
/// Bytes, in the arena.
pub const LSMKV_REPLY_STR: i32 = 4;
/// A double; num holds its bits.
pub const LSMKV_REPLY_DOUBLE: i32 = 5;
/// A boolean; num is 1 or 0.
pub const LSMKV_REPLY_BOOL: i32 = 6;
/// num children follow.
pub const LSMKV_REPLY_ARRAY: i32 = 7;
/// num children follow, key and value in turn.
pub const LSMKV_REPLY_MAP: i32 = 8;
/// num distinct children follow, in no order.
pub const LSMKV_REPLY_SET: i32 = 9;
/// num children follow: a message that no command asked for.
pub const LSMKV_REPLY_PUSH: i32 = 10;
/// Text to show as it is; in the arena.
pub const LSMKV_REPLY_VERBATIM: i32 = 11;
/// A number of any size, as text in the arena.
pub const LSMKV_REPLY_BIGNUM: i32 = 12;

/// Flag of LSMKV_REPLY_NIL: RESP2 would send a null array.
pub const LSMKV_REPLY_NO_ARRAY: i32 = 1;

/// A node of a reply. Node 0 is the reply itself. The children of an aggregate follow it, each with
/// all of its own children.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct lsmkv_node {
    /// One of LSMKV_REPLY_NIL and so on.
    pub kind: i32,
    /// Flags of the kind, or 0.
    pub flags: i32,
    /// A number, the bits of a double, or the number of direct children (two per pair of a map).
    pub num: i64,
    /// Text: its offset in the arena. Aggregate: the index of the node after its last descendant.
    pub off: u64,
    /// Text: its number of bytes.
    pub len: u64,
}

/// The reply of a command. The library makes it and lsmkv_reply_free frees it. One thread at a time
/// may use it. It stays valid after the database is closed.
pub struct lsmkv_reply {
    nodes: Vec<lsmkv_node>,
    arena: Vec<u8>,
}

impl lsmkv_reply {
    pub(super) fn new(nodes: Vec<lsmkv_node>, arena: Vec<u8>) -> Self {
        Self { nodes, arena }
    }

    #[cfg(test)]
    pub(super) fn nodes(&self) -> &[lsmkv_node] {
        &self.nodes
    }

    /// Converts to a pointer for C, which lsmkv_reply_free takes back.
    pub(super) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    fn text_of(&self, node: &lsmkv_node) -> Option<&[u8]> {
        let start = usize::try_from(node.off).ok().filter(|_| is_text(node.kind))?;
        let len = usize::try_from(node.len).ok()?;
        self.arena.get(start..start.checked_add(len)?)
    }

    /// The index of child `n` of the aggregate at `parent`.
    fn child(&self, parent: usize, n: usize) -> Option<usize> {
        let node = self.nodes.get(parent).filter(|node| is_aggregate(node.kind))?;
        let count = usize::try_from(node.num).ok().filter(|count| n < *count)?;
        let first = parent + 1;
        // If no child has children, the position of each child is known.
        if usize::try_from(node.off) == Ok(first + count) {
            return Some(first + n);
        }
        (0..n).try_fold(first, |at, _| {
            let child = self.nodes.get(at)?;
            if is_aggregate(child.kind) { usize::try_from(child.off).ok() } else { Some(at + 1) }
        })
    }
}

/// Whether the arena holds the text of a node of this kind.
pub(super) fn is_text(kind: i32) -> bool {
    matches!(
        kind,
        LSMKV_REPLY_STATUS
            | LSMKV_REPLY_ERROR
            | LSMKV_REPLY_STR
            | LSMKV_REPLY_VERBATIM
            | LSMKV_REPLY_BIGNUM
    )
}

/// Whether children follow a node of this kind.
pub(super) fn is_aggregate(kind: i32) -> bool {
    matches!(kind, LSMKV_REPLY_ARRAY | LSMKV_REPLY_MAP | LSMKV_REPLY_SET | LSMKV_REPLY_PUSH)
}

/// Returns all of a reply at once. *nodes and *arena point into the reply until it is freed. Each
/// output may be NULL.
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
    unsafe { free_call(std::ptr::null_mut(), body) }
}

/// Returns the kind of node `index`, LSMKV_REPLY_NIL and so on; -1 if there is no such node or
/// reply is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_kind(reply: *const lsmkv_reply, index: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, -1, |_, node| Some(node.kind)) }
}

/// Returns the number of direct children of an aggregate (two per pair of a map), or the number of
/// bytes of a text; 0 for any other node.
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

/// Returns the bytes of a text until the reply is freed: lsmkv_reply_len bytes, not terminated. The
/// pointer of an empty text is not NULL. NULL for any other node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_str(reply: *const lsmkv_reply, index: usize) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, null(), |reply, node| Some(reply.text_of(node)?.as_ptr())) }
}

/// Returns the number of a node of kind LSMKV_REPLY_INT or LSMKV_REPLY_BOOL; 0 for any other node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_reply_int(reply: *const lsmkv_reply, index: usize) -> i64 {
    let number = |_: &lsmkv_reply, node: &lsmkv_node| {
        matches!(node.kind, LSMKV_REPLY_INT | LSMKV_REPLY_BOOL).then_some(node.num)
    };
    // SAFETY: the caller's promise.
    unsafe { look(reply, index, 0, number) }
}

/// Returns the number of a node of kind LSMKV_REPLY_DOUBLE or LSMKV_REPLY_INT; 0 for any other
/// node.
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

/// Returns the index of child `n`, from 0, of the aggregate at `index`; (size_t)-1 if there is
/// none.
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

/// Returns what `found` returns for a node, or `missing`.
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
    use crate::commands::Reply;
    use crate::ffi::reply_writer::ReplyWriter;

    fn bulk(text: &'static str) -> Reply {
        Reply::Bulk(Bytes::from_static(text.as_bytes()))
    }

    fn written(reply: &Reply) -> lsmkv_reply {
        let mut writer = ReplyWriter::default();
        reply.write_to(&mut writer);
        writer.finish()
    }

    /// `[ "ab", { "k": 1.5 }, [] , nil array, 7 ]`
    fn nested() -> lsmkv_reply {
        written(&Reply::Array(vec![
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
    fn a_text_of_no_bytes_is_not_null_and_what_is_no_text_is() {
        let reply = written(&Reply::Array(vec![bulk(""), Reply::Nil]));
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
