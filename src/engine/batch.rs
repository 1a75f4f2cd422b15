//! Batches: writes that become visible and durable together.
//!
//! A batch is built in the form that the log stores, so a commit copies it only once:
//!
//! ```text
//! 0   sequence  u64   filled in by the commit
//! 8   operations: weighs << 7 | tree << 1 | put u8, key (varint length, bytes), value as the key
//!     (puts only)
//! ```
//!
//! `weighs` is set for a put of a key that was not set and for a delete of a key that was set. Its bit
//! is free because a store has at most [`MAX_TREES`] trees.

use crate::engine::entry::{EntryKind, Sequence};
use crate::error::{Error, ErrorKind, Result};
use crate::io::codec::{Reader, put_bytes};

const HEADER: usize = 8;
/// Largest size of a put beside key and value.
const MAX_PUT_HEAD: usize = 1 + 10 + 10;
/// The most trees that a store has.
pub(crate) const MAX_TREES: usize = 64;
/// Number of trees whose last change is tracked separately.
pub(crate) const LANES: usize = 8;

/// Identifies a tree: its index in the list that the store was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeId(pub u8);

impl TreeId {
    /// The id as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The lane that tracks changes of this tree. The last lane is shared by all further trees.
    #[inline]
    pub(crate) fn lane(self) -> usize {
        self.index().min(LANES - 1)
    }
}

/// One write of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The tree.
    pub tree: TreeId,
    /// Whether it puts or deletes the key.
    pub kind: EntryKind,
    /// The key.
    pub key: &'a [u8],
    /// The value; empty for a delete.
    pub value: &'a [u8],
}

/// Writes to any trees, applied in order, all or none of them. Of several writes to one key the
/// last one wins.
#[derive(Clone, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    count: u32,
    longest_key: usize,
    longest_value: usize,
    highest_tree: u8,
    /// Bitmask of the lanes of the trees written to.
    trees: u8,
    /// Bitmask of the lanes of the trees passed to `only_replaces`.
    replaced: u8,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty batch with room for about `capacity` bytes of keys and values.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER + capacity);
        bytes.resize(HEADER, 0);
        Self {
            bytes,
            count: 0,
            longest_key: 0,
            longest_value: 0,
            highest_tree: 0,
            trees: 0,
            replaced: 0,
        }
    }

    /// Sets `key` to `value` in `tree`. If the key is counted, it must be set already.
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) {
        self.push_put(tree, EntryKind::Put, key, value);
    }

    /// Sets `key`, which is counted and not set, to `value` in `tree`. Whether the key is set is
    /// the caller's knowledge: the store takes it as a fact, and [`Reader::count`] relies on it.
    ///
    /// [`Reader::count`]: crate::engine::Reader::count
    pub fn put_absent(&mut self, tree: TreeId, key: &[u8], value: &[u8]) {
        self.push_put(tree, EntryKind::PutAbsent, key, value);
    }

    /// Deletes `key` from `tree`. A missing key is no error. If the key is counted, it must not be
    /// set.
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) {
        self.push(tree, EntryKind::Delete, key);
    }

    /// Deletes `key`, which is counted and set, from `tree`. Whether the key is set is the caller's
    /// knowledge: the store takes it as a fact, and [`Reader::count`] relies on it.
    ///
    /// [`Reader::count`]: crate::engine::Reader::count
    pub fn delete_present(&mut self, tree: TreeId, key: &[u8]) {
        self.push(tree, EntryKind::DeletePresent, key);
    }

    fn push_put(&mut self, tree: TreeId, kind: EntryKind, key: &[u8], value: &[u8]) {
        // At once: a value after a huge key would double the buffer.
        self.bytes.reserve(key.len() + value.len() + MAX_PUT_HEAD);
        self.push(tree, kind, key);
        put_bytes(&mut self.bytes, value);
        self.longest_value = self.longest_value.max(value.len());
    }

    fn push(&mut self, tree: TreeId, kind: EntryKind, key: &[u8]) {
        // A tree that does not fit does not exist, so the commit refuses it by `highest_tree`.
        let (weighs, put) = (kind as u8 >> 1, kind as u8 & 1);
        self.bytes.push(weighs << 7 | tree.0 << 1 | put);
        put_bytes(&mut self.bytes, key);
        self.longest_key = self.longest_key.max(key.len());
        self.highest_tree = self.highest_tree.max(tree.0);
        self.trees |= 1 << tree.lane();
        self.count += 1;
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of the batch in the log, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Lengths of the longest key and the longest value.
    pub(crate) fn longest(&self) -> (usize, usize) {
        (self.longest_key, self.longest_value)
    }

    /// The highest tree that the batch names.
    pub(crate) fn highest_tree(&self) -> TreeId {
        TreeId(self.highest_tree)
    }

    /// Declares that all writes to `tree` replace values of existing keys. They then do not count
    /// for `Engine::last_change`.
    pub fn only_replaces(&mut self, tree: TreeId) {
        self.replaced |= 1 << tree.lane();
    }

    /// Bitmask of the lanes whose trees the batch changes by more than replacing values.
    pub(crate) fn changed_lanes(&self) -> u8 {
        self.trees & !self.replaced
    }

    /// Removes all operations and keeps the memory for reuse.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        (self.count, self.longest_key, self.longest_value) = (0, 0, 0);
        (self.highest_tree, self.trees, self.replaced) = (0, 0, 0);
    }

    /// Sets the sequence number and returns the form that the log stores.
    pub(crate) fn seal(&mut self, sequence: Sequence) -> &[u8] {
        if let Some(head) = self.bytes.first_chunk_mut() {
            *head = sequence.to_le_bytes();
        }
        &self.bytes
    }

    /// The form that the log stores, as [`Batch::seal`] left it.
    pub(crate) fn sealed(&self) -> &[u8] {
        &self.bytes
    }

    /// The operations in order.
    pub fn operations(&self) -> Operations<'_> {
        let rest = self.bytes.get(HEADER..).unwrap_or_default();
        Operations { reader: Reader::new(rest) }
    }
}

/// Reads the stored form of a batch: its sequence and operations.
pub(crate) fn decode(payload: &[u8]) -> Option<(Sequence, Operations<'_>)> {
    let mut reader = Reader::new(payload);
    let sequence = reader.u64()?;
    Some((sequence, Operations { reader }))
}

/// Iterates over the operations of a batch. An error means that the stored form is corrupt.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    reader: Reader<'a>,
}

impl<'a> Operations<'a> {
    #[inline]
    fn read(&mut self) -> Option<Operation<'a>> {
        let first = self.reader.u8()?;
        let (kind, has_value) = match (first >> 7, first & 1) {
            (0, 0) => (EntryKind::Delete, false),
            (0, _) => (EntryKind::Put, true),
            (_, 0) => (EntryKind::DeletePresent, false),
            (_, _) => (EntryKind::PutAbsent, true),
        };
        let tree = TreeId(first >> 1 & 0x3f);
        let key = self.reader.bytes()?;
        let value = if has_value { self.reader.bytes()? } else { &[] };
        Some(Operation { tree, kind, key, value })
    }

    /// The next operation; `None` after the last.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Result<Option<Operation<'a>>> {
        if self.reader.is_empty() {
            return Ok(None);
        }
        match self.read() {
            Some(operation) => Ok(Some(operation)),
            None => {
                self.reader = Reader::new(&[]);
                Err(broken())
            }
        }
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take_next().transpose()
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Corrupt, "a batch in the log does not follow its grammar")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_in_comes_out(
            ops in prop::collection::vec((0u8..64, 0u8..4, any::<Vec<u8>>(), any::<Vec<u8>>()), 0..20),
            sequence in 0u64..1 << 56,
        ) {
            let mut batch = Batch::new();
            for (tree, kind, key, value) in &ops {
                match kind {
                    0 => batch.delete(TreeId(*tree), key),
                    1 => batch.put(TreeId(*tree), key, value),
                    2 => batch.delete_present(TreeId(*tree), key),
                    _ => batch.put_absent(TreeId(*tree), key, value),
                }
            }
            let stored = batch.seal(sequence).to_vec();
            let (read_sequence, read) = decode(&stored).unwrap();
            prop_assert_eq!(read_sequence, sequence);
            let read: Vec<_> = read.map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), ops.len());
            for (operation, (tree, kind, key, value)) in read.iter().zip(&ops) {
                prop_assert_eq!(operation.tree, TreeId(*tree));
                prop_assert_eq!(operation.key, &key[..]);
                prop_assert_eq!(operation.kind as u8, *kind);
                let put = *kind == 1 || *kind == 3;
                prop_assert_eq!(operation.value, if put { &value[..] } else { &[] });
            }
        }

        #[test]
        fn arbitrary_bytes_end_in_an_error_or_the_end(bytes: Vec<u8>) {
            if let Some((_, operations)) = decode(&bytes) {
                prop_assert!(operations.count() <= bytes.len() + 1);
            }
        }
    }

    #[test]
    fn the_first_byte_of_an_operation_is_as_the_format_says() {
        let mut batch = Batch::new();
        batch.delete(TreeId(1), b"");
        batch.put(TreeId(63), b"", b"");
        batch.delete_present(TreeId(1), b"");
        batch.put_absent(TreeId(63), b"", b"");
        let stored = batch.seal(5);
        assert_eq!(stored[8..], [0x02, 0, 0x7f, 0, 0, 0x82, 0, 0xff, 0, 0]);
    }

    #[test]
    fn an_operation_that_is_cut_short_is_an_error() {
        let mut batch = Batch::new();
        batch.put(TreeId(0), b"k", b"v");
        batch.put(TreeId(1), b"key", b"value");
        let stored = batch.seal(1).to_vec();
        let (_, mut operations) = decode(&stored[..stored.len() - 1]).unwrap();
        assert!(operations.next().unwrap().is_ok());
        assert!(operations.next().unwrap().is_err());
        assert!(operations.next().is_none());
    }
}
