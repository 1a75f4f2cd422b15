//! A small collection inside its record: its members and their values in byte order.
//!
//! ```text
//! packed   [count:2 LE]([member: varint length, bytes][value: varint length, bytes]) * count
//! ```
//!
//! Members ascend strictly. Reading one needs no index: a lookup runs along the bytes, which are
//! few, and ends at the first greater member. It trusts their order, as in any block whose checksum
//! is right; a walk over all of them checks it.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;

use bytes::{Buf, Bytes};

use crate::encoding::header::{HEADER_BYTES, Malformed};
use crate::io::codec::{Reader, bytes_len, put_bytes};

/// The length of the count before the first member.
const COUNT_BYTES: usize = 2;

/// The most bytes of members in a record, whatever the options say.
pub const MOST_BYTES: u64 = 16 << 10;
/// The most members in a record, whatever the options say.
pub const MOST_MEMBERS: u32 = 1024;

/// The members of a packed collection. A clone shares the bytes until one of the two changes.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    count: u16,
    /// The bytes that were read; unused once `own` is set.
    shared: Bytes,
    /// The bytes after a change.
    own: Option<Vec<u8>>,
    /// Where the last lookup ended.
    finger: Cell<Finger>,
}

/// An entry: its number, and where it begins. A command often asks for the member it is about to
/// change, or for several in order, so lookups begin at the entry where the last one ended.
#[derive(Clone, Copy, Debug, Default)]
struct Finger {
    number: u16,
    at: usize,
}

impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.bytes()) == (other.count, other.bytes())
    }
}

impl Eq for Packed {}

/// The ranges of a member and its value in [`Packed::bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRange {
    /// Member and value, with their lengths.
    pub whole: Range<usize>,
    /// The member.
    pub member: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

impl Packed {
    /// Decodes the record of a packed collection, whose count is never 0. The members are decoded
    /// later.
    pub fn decode(record: Bytes) -> Result<Self, Malformed> {
        let rest = record.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk());
        let count = rest.map(|count| u16::from_le_bytes(*count)).filter(|count| *count > 0);
        let count = count.ok_or(Malformed::Body)?;
        let mut shared = record;
        shared.advance(HEADER_BYTES + COUNT_BYTES);
        Ok(Self { count, shared, own: None, finger: Cell::default() })
    }

    /// Appends the members to the header of their record.
    pub fn encode(&self, record: &mut Vec<u8>) {
        record.extend_from_slice(&self.count.to_le_bytes());
        record.extend_from_slice(self.bytes());
    }

    /// The number of bytes that [`Packed::encode`] appends.
    pub fn encoded_len(&self) -> usize {
        COUNT_BYTES + self.bytes().len()
    }

    /// The number of members.
    pub fn size(&self) -> u64 {
        u64::from(self.count)
    }

    /// The bytes of all members.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.own.as_deref().unwrap_or(&self.shared)
    }

    /// The bytes of all members, for keeping.
    pub fn to_bytes(&self) -> Bytes {
        match &self.own {
            Some(own) => Bytes::copy_from_slice(own),
            None => self.shared.clone(),
        }
    }

    /// The members in order.
    pub fn entries(&self) -> Entries<'_> {
        Entries { bytes: self.bytes(), at: 0, left: self.count, last: None }
    }

    /// The value of a member.
    pub fn get(&self, member: &[u8]) -> Result<Option<&[u8]>, Malformed> {
        let found = self.find(member)?.ok();
        Ok(found.map(|entry| self.bytes().get(entry.value).unwrap_or_default()))
    }

    /// Builds an index for many lookups.
    pub fn index(&self) -> Result<Index<'_>, Malformed> {
        let (mut entries, mut all) = (self.entries(), Vec::new());
        while let Some(entry) = entries.next_ascending()? {
            all.push((entry.member, entry.value));
        }
        Ok(Index { bytes: self.bytes(), entries: all })
    }

    /// Where a member is, or where it would be inserted. The finger is then at the member, or at
    /// the one before its place: changes made there leave the finger at the start of an entry.
    fn find(&self, member: &[u8]) -> Result<Result<EntryRange, usize>, Malformed> {
        let bytes = self.bytes();
        let mut finger = self.finger_before(member);
        let (number, mut at) = (finger.number, finger.at);
        let mut reader = Reader::new(bytes.get(at..).unwrap_or_default());
        for number in number..self.count {
            let its = reader.bytes().ok_or(Malformed::Body)?;
            let member_end = bytes.len() - reader.rest().len();
            let value = reader.bytes().ok_or(Malformed::Body)?;
            let end = bytes.len() - reader.rest().len();
            match its.cmp(member) {
                Ordering::Less => finger = Finger { number, at },
                Ordering::Equal => {
                    self.finger.set(Finger { number, at });
                    let member = member_end - its.len()..member_end;
                    let value = end - value.len()..end;
                    return Ok(Ok(EntryRange { whole: at..end, member, value }));
                }
                Ordering::Greater => {
                    self.finger.set(finger);
                    return Ok(Err(at));
                }
            }
            at = end;
        }
        self.finger.set(finger);
        if at == bytes.len() { Ok(Err(at)) } else { Err(Malformed::Body) }
    }

    /// The finger, if its member is not beyond this one; otherwise the first entry.
    #[inline]
    fn finger_before(&self, member: &[u8]) -> Finger {
        let finger = self.finger.get();
        if finger.number == 0 {
            return Finger::default();
        }
        let mut reader = Reader::new(self.bytes().get(finger.at..).unwrap_or_default());
        match reader.bytes() {
            Some(its) if finger.number < self.count && its <= member => finger,
            _ => Finger::default(),
        }
    }

    /// Sets the value of a member, which is added if it does not exist. Returns `false` and changes
    /// nothing if all members would then take more than `most` bytes.
    pub fn put(&mut self, member: &[u8], value: &[u8], most: usize) -> Result<bool, Malformed> {
        let (range, is_new) = match self.find(member)? {
            Ok(entry) => (entry.whole, false),
            Err(at) => (at..at, true),
        };
        let Some(count) = self.count.checked_add(u16::from(is_new)) else { return Ok(false) };
        // Before anything is copied: the value may be of any length.
        let len = self.bytes().len() - range.len() + bytes_len(member) + bytes_len(value);
        if len > most {
            return Ok(false);
        }
        self.replace(range, member, value, len);
        self.count = count;
        Ok(true)
    }

    /// Replaces a range by a member and its value; `len` is the new number of bytes.
    fn replace(&mut self, range: Range<usize>, member: &[u8], value: &[u8], len: usize) {
        if let Some(own) = &mut self.own {
            let mut entry = Vec::with_capacity(bytes_len(member) + bytes_len(value));
            put_bytes(&mut entry, member);
            put_bytes(&mut entry, value);
            own.splice(range, entry);
            return;
        }
        let mut own = Vec::with_capacity(len);
        own.extend_from_slice(self.shared.get(..range.start).unwrap_or_default());
        put_bytes(&mut own, member);
        put_bytes(&mut own, value);
        own.extend_from_slice(self.shared.get(range.end..).unwrap_or_default());
        self.own = Some(own);
    }

    /// Removes a member and returns its value.
    pub fn remove(&mut self, member: &[u8]) -> Result<Option<Bytes>, Malformed> {
        let Ok(entry) = self.find(member)? else { return Ok(None) };
        let value = self.bytes().get(entry.value).unwrap_or_default();
        let value = Bytes::copy_from_slice(value);
        self.own.get_or_insert_with(|| self.shared.to_vec()).drain(entry.whole);
        self.count = self.count.saturating_sub(1);
        Ok(Some(value))
    }

    /// Fails if the members do not ascend, or if the bytes do not end with the last one.
    pub fn validate(&self) -> Result<(), Malformed> {
        let mut entries = self.entries();
        while entries.next_ascending()?.is_some() {}
        Ok(())
    }
}

/// An iterator over the members.
#[derive(Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u16,
    /// The member that [`Entries::next_ascending`] returned last.
    last: Option<Range<usize>>,
}

impl Entries<'_> {
    /// The next member; fails if the bytes end before it does.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<EntryRange>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let start = self.at;
        let mut reader = Reader::new(self.bytes.get(start..).unwrap_or_default());
        let mut part = || {
            let part = reader.bytes()?;
            let end = self.bytes.len() - reader.rest().len();
            Some(end - part.len()..end)
        };
        let (member, value) = (part().ok_or(Malformed::Body)?, part().ok_or(Malformed::Body)?);
        (self.at, self.left) = (value.end, left);
        Ok(Some(EntryRange { whole: start..value.end, member, value }))
    }

    /// The next member; fails also if it is not greater than the one before, or if bytes follow the
    /// last one.
    pub fn next_ascending(&mut self) -> Result<Option<EntryRange>, Malformed> {
        let Some(entry) = self.advance()? else { return self.end().map(|()| None) };
        let last = self.last.replace(entry.member.clone());
        let bytes = |range: Range<usize>| self.bytes.get(range).unwrap_or_default();
        if last.is_some_and(|last| bytes(last) >= bytes(entry.member.clone())) {
            return Err(Malformed::Body);
        }
        Ok(Some(entry))
    }

    /// Fails if bytes follow those that were read.
    fn end(&self) -> Result<(), Malformed> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(Malformed::Body) }
    }
}

/// An index of all members: a lookup is a few comparisons.
#[derive(Debug)]
pub struct Index<'a> {
    bytes: &'a [u8],
    entries: Vec<(Range<usize>, Range<usize>)>,
}

impl<'a> Index<'a> {
    /// The value of a member.
    pub fn get(&self, member: &[u8]) -> Option<&'a [u8]> {
        let part = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        let found = self.entries.binary_search_by(|(its, _)| part(its).cmp(member)).ok()?;
        self.entries.get(found).map(|(_, value)| part(value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::encoding::meta::{Body, Header, Type, encode_collection};

    fn record_of(packed: &Packed) -> Bytes {
        let header = Header { kind: Type::Hash, expire_ms: 7 };
        Bytes::from(encode_collection(header, &Body::Packed(packed.clone())))
    }

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    fn shown(packed: &Packed) -> Model {
        let (mut entries, mut shown) = (packed.entries(), Model::new());
        while let Some(entry) = entries.advance().unwrap() {
            let part = |range: Range<usize>| packed.bytes()[range].to_vec();
            shown.insert(part(entry.member), part(entry.value));
        }
        shown
    }

    fn change() -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
        let name = prop::collection::vec(0u8..3, 0..3);
        (name, prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..200)))
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            changes in prop::collection::vec(change(), 1..60),
            is_read_again in any::<bool>(),
        ) {
            let (mut packed, mut model) = (Packed::default(), Model::new());
            for (member, value) in changes {
                let value_there = model.get(&member).map(Vec::as_slice);
                prop_assert_eq!(packed.get(&member).unwrap(), value_there);
                prop_assert_eq!(packed.index().unwrap().get(&member), value_there);
                match value {
                    Some(value) => {
                        prop_assert!(packed.put(&member, &value, usize::MAX).unwrap());
                        model.insert(member, value);
                    }
                    None => {
                        let removed = packed.remove(&member).unwrap();
                        prop_assert_eq!(removed.map(|v| v.to_vec()), model.remove(&member));
                    }
                }
                packed.validate().unwrap();
                prop_assert_eq!(shown(&packed), model.clone());
                // Otherwise the next lookup begins where the last one ended.
                if is_read_again && packed.size() > 0 {
                    packed = Packed::decode(record_of(&packed)).unwrap();
                }
                prop_assert_eq!((packed.size(), shown(&packed)), (model.len() as u64, model.clone()));
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_and_never_panic(bytes: Vec<u8>, member: Vec<u8>) {
            let record = Bytes::from([&[0x92; HEADER_BYTES], &bytes[..]].concat());
            let Ok(mut packed) = Packed::decode(record) else { return Ok(()) };
            let _ = (packed.get(&member), packed.index(), packed.validate());
            let _ = (packed.put(&member, b"v", 1 << 20), packed.remove(&member));
        }
    }

    #[test]
    fn what_would_take_too_many_bytes_changes_nothing() {
        let mut packed = Packed::default();
        assert!(!packed.put(b"abc", b"12", 6).unwrap());
        assert!(packed.put(b"abc", b"12", 7).unwrap());
        assert!(!packed.put(b"abc", b"123", 7).unwrap());
        assert!(packed.put(b"abc", b"21", 7).unwrap(), "the old value makes room");
        assert!(!packed.put(b"x", b"", 9).unwrap());
        assert!(!packed.put(b"x", &vec![0; 1 << 20], 1024).unwrap());
        assert_eq!(packed.own.as_ref().map(Vec::capacity), Some(7), "as much as it needs");
        assert_eq!(shown(&packed), Model::from([(b"abc".to_vec(), b"21".to_vec())]));
    }

    #[test]
    fn a_record_is_the_header_the_count_and_the_members_in_order() {
        let mut packed = Packed::default();
        packed.put(b"b", b"2", 4).unwrap();
        packed.put(b"a", b"", 100).unwrap();
        let record = record_of(&packed);
        assert_eq!(record, &b"\x92\x07\0\0\0\0\0\0\0\x02\0\x01a\0\x01b\x012"[..]);
        let broken = Bytes::from(record[..record.len() - 1].to_vec());
        assert_eq!(Packed::decode(broken.clone()).unwrap().validate(), Err(Malformed::Body));
        assert_eq!(Packed::decode(broken).unwrap().get(b"b"), Err(Malformed::Body));
        let long = Bytes::from([&record[..], b"x"].concat());
        assert_eq!(Packed::decode(long).unwrap().validate(), Err(Malformed::Body));
        let twice = Bytes::from_static(b"\x92\0\0\0\0\0\0\0\0\x02\0\x01a\0\x01a\0");
        assert_eq!(Packed::decode(twice).unwrap().validate(), Err(Malformed::Body));
        let none = Bytes::from_static(b"\x92\0\0\0\0\0\0\0\0\0\0");
        assert!(Packed::decode(none).is_err());
    }
}
