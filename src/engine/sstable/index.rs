//! The index of a table. It has a separator per data block, which sorts at or after every entry of
//! the block and before every entry of the next block.
//!
//! ```text
//! index     = count u32 | prefix length varint | prefix | (separator of a block) * count
//!             | [block sums]
//! separator = key length varint | key | tagged u8 | [tag u64] | payload length varint
//! ```
//!
//! - Every separator key begins with `prefix`, which is left out of `key`.
//! - A separator without a tag sorts after all versions of its user key, and is shortened if
//!   possible. If the versions of a user key span two blocks, the separator is the full `(key,
//!   tag)` of the last entry. So a search for `(key, tag)` leads to the one block that can hold the
//!   first entry at or after it, and a point read never continues into the next block.
//! - The block sums are there if any entry has a weight.
//! - The blocks fill the file from offset 0 without gaps, so their lengths determine their offsets.
//!
//! In memory, the first eight bytes of the stripped keys form an array of integers that sort like
//! the bytes. A search is a binary search over the array with few branches. Only equal integers
//! need the key bytes.

use std::cmp::Ordering;
use std::ops::Range;

use super::block_sums::{BlockSums, BlockSumsBuilder};
use super::format::{Handle, Malformed, TRAILER_BYTES};
use crate::engine::entry::{MAX_BOUND_BYTES, Sequence, Tag, bound, common_prefix};
use crate::io::codec::{Reader, after_prefix, put_bytes, put_u32, put_u64, put_varint};

/// Fewest bytes of a separator on disk. It limits how much memory a count can make us allocate.
const MIN_SEPARATOR_BYTES: usize = 3;

/// Collects separators while a table is written.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    keys: Vec<u8>,
    blocks: Vec<PendingBlock>,
    pub(super) sums: BlockSumsBuilder,
}

#[derive(Debug)]
struct PendingBlock {
    key_end: usize,
    tag: Option<Tag>,
    length: u32,
}

impl IndexBuilder {
    /// Adds a block of `length` payload bytes that ends with `last`; `next` is the entry that
    /// follows it, if any.
    pub(super) fn add(&mut self, last: (&[u8], Tag), next: Option<&[u8]>, length: u32) {
        let spans = next == Some(last.0);
        // The index stays in memory: after the last block a huge key is cut.
        let end = match next {
            None if last.0.len() > MAX_BOUND_BYTES => after_prefix(bound(last.0)),
            _ => None,
        };
        match next.or(end.as_deref()) {
            Some(next) if !spans => put_separator(&mut self.keys, last.0, next),
            _ => self.keys.extend_from_slice(last.0),
        }
        let tag = spans.then_some(last.1);
        self.sums.finish_block();
        self.blocks.push(PendingBlock { key_end: self.keys.len(), tag, length });
    }

    /// Number of blocks added.
    pub(super) fn count(&self) -> usize {
        self.blocks.len()
    }

    /// Approximate size of the finished index, in bytes.
    pub(super) fn size(&self) -> usize {
        self.keys.len() + self.blocks.len() * 6 + self.sums.bytes().len()
    }

    /// The payload of the index block.
    pub(super) fn finish(&self) -> Vec<u8> {
        let first = self.blocks.first().and_then(|b| self.keys.get(..b.key_end));
        let last_start = self.blocks.len().checked_sub(2).and_then(|i| self.blocks.get(i));
        let last = self.keys.get(last_start.map_or(0, |b| b.key_end)..);
        // The keys ascend, so all of them share what the first and the last share.
        let common = common_prefix(first.unwrap_or_default(), last.unwrap_or_default());
        let mut out = Vec::with_capacity(self.size());
        put_u32(&mut out, u32::try_from(self.blocks.len()).unwrap_or(u32::MAX));
        put_bytes(&mut out, self.keys.get(..common).unwrap_or_default());
        let mut start = 0;
        for block in &self.blocks {
            put_bytes(&mut out, self.keys.get(start + common..block.key_end).unwrap_or_default());
            out.push(u8::from(block.tag.is_some()));
            if let Some(tag) = block.tag {
                put_u64(&mut out, tag.raw());
            }
            put_varint(&mut out, u64::from(block.length));
            start = block.key_end;
        }
        if self.sums.weighs() {
            out.extend_from_slice(self.sums.bytes());
        }
        out
    }
}

/// Appends a short key `s` with `last <= s < next`.
fn put_separator(out: &mut Vec<u8>, last: &[u8], next: &[u8]) {
    let common = common_prefix(last, next);
    let (Some(&low), Some(&high)) = (last.get(common), next.get(common)) else {
        // `last` is a prefix of `next`, so every key between them begins with `last`.
        return out.extend_from_slice(last);
    };
    out.extend_from_slice(last.get(..common).unwrap_or_default());
    if low.checked_add(1).is_some_and(|raised| raised < high) {
        return out.push(low + 1);
    }
    if next.len() > common + 1 {
        return out.push(high);
    }
    // `next` ends with the byte after `low`: keep `low`, and raise the first byte after it that can
    // be raised.
    let tail = last.get(common..).unwrap_or_default();
    let raisable = tail.iter().skip(1).position(|&b| b != 0xff);
    match raisable.and_then(|at| tail.split_at_checked(at + 1)) {
        Some((kept, [byte, rest @ ..])) if !rest.is_empty() => {
            out.extend_from_slice(kept);
            out.push(byte + 1);
        }
        _ => out.extend_from_slice(tail),
    }
}

/// An index in memory. It is immutable.
#[derive(Debug)]
pub(super) struct Index {
    prefix: Box<[u8]>,
    /// The first eight bytes of each stripped key as a big-endian integer, padded with zeros.
    heads: Box<[u64]>,
    /// The stripped keys, one after another. Key `i` ends at `key_ends[i]`.
    keys: Box<[u8]>,
    key_ends: Box<[u32]>,
    /// The offset of each block, and the end of the last one.
    offsets: Box<[u64]>,
    /// The raw tags, 0 for a separator without a tag. Empty if no separator has a tag.
    tags: Box<[u64]>,
    /// `None` if no entry has a weight.
    sums: Option<BlockSums>,
}

impl Index {
    /// Decodes the index of a table whose data ends at `data_end`.
    pub(super) fn decode(payload: &[u8], data_end: u64) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let short = Malformed("index is too short for its counts");
        let count = reader.u32().ok_or(short)? as usize;
        if count == 0 || count > payload.len() / MIN_SEPARATOR_BYTES {
            return Err(Malformed("index has an impossible number of blocks"));
        }
        let prefix = reader.bytes().ok_or(short)?;
        let mut parts = IndexParts::with_capacity(count, reader.rest().len());
        for _ in 0..count {
            parts.take(&mut reader).ok_or(Malformed("index entry is not valid"))?;
        }
        let sums = match reader.is_empty() {
            true => None,
            false => Some(
                BlockSums::take(&mut reader, count)
                    .filter(|_| reader.is_empty())
                    .ok_or(Malformed("index has bytes after its last entry"))?,
            ),
        };
        if parts.offset != data_end {
            return Err(Malformed("blocks in the index do not fill the data part"));
        }
        let index = parts.finish(prefix, sums);
        index.check_order()?;
        Ok(index)
    }

    /// Number of data blocks.
    pub(super) fn count(&self) -> usize {
        self.heads.len()
    }

    /// The position of data block `block`.
    #[inline]
    pub(super) fn handle(&self, block: usize) -> Option<Handle> {
        let &[offset, end] = self.offsets.get(block..)?.first_chunk()?;
        Some(Handle {
            offset,
            length: u32::try_from(end - offset - u64::from(TRAILER_BYTES)).ok()?,
        })
    }

    /// The offset of data block `block`. For the block after the last it is the end of the data.
    pub(super) fn offset(&self, block: usize) -> u64 {
        self.offsets.get(block).or(self.offsets.last()).copied().unwrap_or(0)
    }

    /// The sum of the weights of all entries; `None` if none has one.
    pub(super) fn total_weight(&self) -> Option<i64> {
        self.sums.as_ref().map(BlockSums::total)
    }

    /// The sum of the weights of a range of blocks.
    pub(super) fn weight(&self, blocks: Range<usize>) -> i64 {
        self.sums.as_ref().map_or(0, |sums| sums.weight(blocks))
    }

    /// The blocks of a range that have entries after `sequence`.
    pub(super) fn younger(
        &self,
        blocks: Range<usize>,
        sequence: Sequence,
    ) -> impl Iterator<Item = usize> {
        self.sums.iter().flat_map(move |sums| sums.younger(blocks.clone(), sequence))
    }

    /// The user key of the separator of a block.
    pub(super) fn separator(&self, block: usize) -> Vec<u8> {
        [&*self.prefix, self.stripped_key(block)].concat()
    }

    /// The first block whose separator is not before `(key, tag)`; `count()` if there is none. If
    /// the table has entries of this user key at or after `(key, tag)`, the first of them is in
    /// this block.
    #[inline]
    pub(super) fn search(&self, key: &[u8], tag: Tag) -> usize {
        let Some(stripped) = key.strip_prefix(&*self.prefix) else {
            return if key < &*self.prefix { 0 } else { self.count() };
        };
        let head = head_of(stripped);
        let first = self.heads.partition_point(|&h| h < head);
        match self.heads.get(first) {
            Some(&found) if found == head => self.search_ties(first, head, stripped, tag),
            _ => first,
        }
    }

    /// Memory that the index takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.prefix.len()
            + self.keys.len()
            + (self.heads.len() + self.offsets.len() + self.tags.len()) * 8
            + self.key_ends.len() * 4
            + self.sums.as_ref().map_or(0, BlockSums::memory)
            + size_of::<Self>()
    }

    /// Searches the separators from `first` on that begin with `head`.
    fn search_ties(&self, first: usize, head: u64, stripped: &[u8], tag: Tag) -> usize {
        let ties = self.heads.get(first..).unwrap_or_default().partition_point(|&h| h == head);
        let (mut low, mut high) = (first, first + ties);
        while low < high {
            let middle = low.midpoint(high);
            if self.compare_stripped(middle, stripped, tag) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn compare_stripped(&self, block: usize, stripped: &[u8], tag: Tag) -> Ordering {
        let own = self.tags.get(block).copied().unwrap_or(0);
        self.stripped_key(block).cmp(stripped).then_with(|| tag.raw().cmp(&own))
    }

    fn stripped_key(&self, block: usize) -> &[u8] {
        let end = |i: usize| self.key_ends.get(i).map_or(0, |&end| end as usize);
        let start = block.checked_sub(1).map_or(0, end);
        self.keys.get(start..end(block)).unwrap_or_default()
    }

    fn check_order(&self) -> Result<(), Malformed> {
        let ordered = |block: usize| {
            let tag = self.tags.get(block).copied().unwrap_or(0);
            let before = self.tags.get(block - 1).copied().unwrap_or(0);
            let (key, key_before) = (self.stripped_key(block), self.stripped_key(block - 1));
            key_before.cmp(key).then_with(|| tag.cmp(&before)) == Ordering::Less
        };
        if (1..self.count()).all(ordered) {
            return Ok(());
        }
        Err(Malformed("separators in the index do not ascend"))
    }
}

/// The arrays of an index while it is decoded.
struct IndexParts {
    heads: Vec<u64>,
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    offsets: Vec<u64>,
    tags: Vec<u64>,
    offset: u64,
}

impl IndexParts {
    fn with_capacity(count: usize, key_bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Self {
            heads: Vec::with_capacity(count),
            keys: Vec::with_capacity(key_bytes),
            key_ends: Vec::with_capacity(count),
            offsets,
            tags: Vec::new(),
            offset: 0,
        }
    }

    fn take(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let key = reader.bytes()?;
        let tag = match reader.u8()? {
            0 => 0,
            1 => Tag::from_raw(reader.u64()?)?.raw(),
            _ => return None,
        };
        let length = u32::try_from(reader.varint()?).ok()?;
        self.offset = Handle { offset: self.offset, length }.end()?;
        if tag != 0 {
            self.tags.resize(self.heads.len(), 0);
        }
        if tag != 0 || !self.tags.is_empty() {
            self.tags.push(tag);
        }
        self.heads.push(head_of(key));
        self.keys.extend_from_slice(key);
        self.key_ends.push(u32::try_from(self.keys.len()).ok()?);
        self.offsets.push(self.offset);
        Some(())
    }

    fn finish(self, prefix: &[u8], sums: Option<BlockSums>) -> Index {
        Index {
            prefix: prefix.into(),
            heads: self.heads.into_boxed_slice(),
            keys: self.keys.into_boxed_slice(),
            key_ends: self.key_ends.into_boxed_slice(),
            offsets: self.offsets.into_boxed_slice(),
            tags: self.tags.into_boxed_slice(),
            sums,
        }
    }
}

/// The first eight bytes as a big-endian integer, padded with zeros. It sorts like the bytes,
/// except that different keys may be equal.
#[inline]
fn head_of(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut padded = [0; 8];
    padded.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::{EntryKind, MAX_SEQUENCE};
    use proptest::prelude::*;

    fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_separator(&mut out, last, next);
        out
    }

    #[test]
    fn separators_are_short() {
        assert_eq!(separator(b"apple", b"cherry"), b"b");
        assert_eq!(separator(b"apple", b"banana"), b"b");
        assert_eq!(separator(b"apple", b"b"), b"aq");
        assert_eq!(separator(b"a\xff\xffxyz", b"b"), b"a\xff\xffy");
        assert_eq!(separator(b"a\xff", b"b"), b"a\xff");
        assert_eq!(separator(b"", b"b"), b"");
        assert_eq!(separator(b"user:1", b"user:12"), b"user:1");
    }

    #[test]
    fn heads_order_like_their_keys() {
        assert_eq!(head_of(b""), 0);
        assert_eq!(head_of(b"a"), 0x6100_0000_0000_0000);
        assert_eq!(head_of(b"abcdefg"), 0x6162_6364_6566_6700);
        assert_eq!(head_of(b"abcdefghi"), 0x6162_6364_6566_6768);
    }

    #[test]
    fn a_count_of_blocks_that_cannot_be_true_allocates_nothing() {
        let mut payload = Vec::new();
        put_u32(&mut payload, u32::MAX);
        payload.extend_from_slice(&[0; 100]);
        assert!(Index::decode(&payload, 0).is_err());
    }

    proptest! {
        #[test]
        fn a_separator_lies_between_its_keys(a: Vec<u8>, b: Vec<u8>, n in 0usize..4) {
            prop_assume!(a != b);
            let prefix = vec![7u8; n];
            let (last, next) = if a < b { (a, b) } else { (b, a) };
            let (last, next) = ([&prefix[..], &last].concat(), [&prefix[..], &next].concat());
            let found = separator(&last, &next);
            prop_assert!(last <= found && found < next && found.len() <= last.len().max(next.len()));
        }

        #[test]
        fn search_agrees_with_a_linear_one(
            mut keys in proptest::collection::btree_set(
                proptest::collection::vec(97u8..100, 0..12), 1..40),
            probes in proptest::collection::vec(proptest::collection::vec(97u8..101, 0..12), 40),
            same_prefix: bool,
        ) {
            if same_prefix {
                keys = keys.into_iter().map(|k| [b"common".as_slice(), &k].concat()).collect();
            }
            let keys: Vec<_> = keys.into_iter().collect();
            let mut builder = IndexBuilder::default();
            let tag = Tag::new(5, EntryKind::Put);
            for key in &keys {
                builder.add((key, tag), None, 10);
            }
            let index = Index::decode(&builder.finish(), keys.len() as u64 * 15).unwrap();
            for probe in probes.iter().chain(&keys) {
                let expected = keys.iter().position(|k| k >= probe).unwrap_or(keys.len());
                prop_assert_eq!(index.search(probe, Tag::newest_at(MAX_SEQUENCE)), expected);
                prop_assert_eq!(index.search(probe, Tag::newest_at(0)), expected);
            }
            prop_assert_eq!(index.handle(0), Some(Handle { offset: 0, length: 10 }));
            prop_assert_eq!(index.handle(keys.len()), None);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, end: u64) {
            let _ = Index::decode(&bytes, end);
        }
    }
}
