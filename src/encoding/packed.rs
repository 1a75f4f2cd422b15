//! A small collection whole in its record: its members with what is beside each, in the order of
//! their bytes.
//!
//! ```text
//! packed   [count:2 LE]([member: varint length, bytes][value: varint length, bytes]) * count
//! ```
//!
//! Members ascend and none comes twice. Nothing is built to read one: a look-up runs along the
//! bytes, which are few, and ends at the first member that is greater. It trusts their order, as it
//! does that of any block whose checksum is right; a walk over all of them compares.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

use crate::encoding::meta::{HEADER_BYTES, Malformed};
use crate::io::codec::{Reader, bytes_len, put_bytes};

/// Bytes before the first member.
const COUNT_BYTES: usize = 2;

/// Most bytes that any store keeps in a record: options say how many of them are used.
pub const MOST_BYTES: u64 = 16 << 10;
/// Most members.
pub const MOST_MEMBERS: u32 = 1024;

/// See the module's documentation. A clone shares the bytes until one of them changes.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    count: u16,
    /// What was read; of no meaning once there is `own`.
    shared: Bytes,
    /// What it has become.
    own: Option<Vec<u8>>,
}

impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.bytes()) == (other.count, other.bytes())
    }
}

impl Eq for Packed {}

/// A member and what is beside it, by their places in [`Packed::bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of both, with their lengths.
    pub whole: Range<usize>,
    /// Of the member.
    pub member: Range<usize>,
    /// Of what is beside it.
    pub value: Range<usize>,
}

impl Packed {
    /// Reads the record of a packed collection, whose count is never 0; the members are looked at
    /// later.
    pub fn decode(record: &Bytes) -> Result<Self, Malformed> {
        let rest = record.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk());
        let count = rest.map(|count| u16::from_le_bytes(*count)).filter(|count| *count > 0);
        let count = count.ok_or(Malformed::Body)?;
        Ok(Self { count, shared: record.slice(HEADER_BYTES + COUNT_BYTES..), own: None })
    }

    /// Appends it to the header of its record.
    pub fn encode(&self, record: &mut Vec<u8>) {
        record.extend_from_slice(&self.count.to_le_bytes());
        record.extend_from_slice(self.bytes());
    }

    /// How many bytes that takes.
    pub fn encoded_len(&self) -> usize {
        COUNT_BYTES + self.bytes().len()
    }

    /// Number of members.
    pub fn size(&self) -> u64 {
        u64::from(self.count)
    }

    /// All members.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.own.as_deref().unwrap_or(&self.shared)
    }

    /// The same, to be kept.
    pub fn to_bytes(&self) -> Bytes {
        match &self.own {
            Some(own) => Bytes::copy_from_slice(own),
            None => self.shared.clone(),
        }
    }

    /// The places of all members, in order.
    pub fn places(&self) -> Places<'_> {
        Places { bytes: self.bytes(), at: 0, left: self.count, last: None }
    }

    /// What is beside a member.
    pub fn get(&self, member: &[u8]) -> Result<Option<&[u8]>, Malformed> {
        let found = self.find(member)?.ok();
        Ok(found.map(|place| self.bytes().get(place.value).unwrap_or_default()))
    }

    /// For those who look for many members.
    pub fn index(&self) -> Result<Index<'_>, Malformed> {
        let (mut places, mut all) = (self.places(), Vec::new());
        while let Some(place) = places.ascend()? {
            all.push((place.member, place.value));
        }
        Ok(Index { bytes: self.bytes(), places: all })
    }

    /// Where a member is, or else where it would be.
    fn find(&self, member: &[u8]) -> Result<Result<Place, usize>, Malformed> {
        let bytes = self.bytes();
        let mut places = self.places();
        while let Some(place) = places.advance()? {
            match bytes.get(place.member.clone()).unwrap_or_default().cmp(member) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(Ok(place)),
                Ordering::Greater => return Ok(Err(place.whole.start)),
            }
        }
        places.end()?;
        Ok(Err(places.at))
    }

    /// Sets what is beside a member, which is added if it is not there; `false`, and nothing is
    /// changed, if all would then take more than so many bytes.
    pub fn put(&mut self, member: &[u8], value: &[u8], most: usize) -> Result<bool, Malformed> {
        let (range, is_new) = match self.find(member)? {
            Ok(place) => (place.whole, false),
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

    /// Puts a member and what is beside it in a place; `len` bytes it will be in all.
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

    /// Removes a member; what was beside it.
    pub fn remove(&mut self, member: &[u8]) -> Result<Option<Bytes>, Malformed> {
        let Ok(place) = self.find(member)? else { return Ok(None) };
        let value = self.bytes().get(place.value).unwrap_or_default();
        let value = Bytes::copy_from_slice(value);
        self.own.get_or_insert_with(|| self.shared.to_vec()).drain(place.whole);
        self.count = self.count.saturating_sub(1);
        Ok(Some(value))
    }

    /// An error if the members do not ascend, or are not all there is.
    pub fn validate(&self) -> Result<(), Malformed> {
        let mut places = self.places();
        while places.ascend()?.is_some() {}
        Ok(())
    }
}

/// The members one after the other.
#[derive(Debug)]
pub struct Places<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u16,
    /// The member that [`Places::ascend`] returned last.
    last: Option<Range<usize>>,
}

impl Places<'_> {
    /// The next member's; an error if the bytes end before it does.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<Place>, Malformed> {
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
        Ok(Some(Place { whole: start..value.end, member, value }))
    }

    /// The same; an error also if it is not greater than the one before, or if something follows
    /// the last one.
    pub fn ascend(&mut self) -> Result<Option<Place>, Malformed> {
        let Some(place) = self.advance()? else { return self.end().map(|()| None) };
        let last = self.last.replace(place.member.clone());
        let bytes = |range: Range<usize>| self.bytes.get(range).unwrap_or_default();
        if last.is_some_and(|last| bytes(last) >= bytes(place.member.clone())) {
            return Err(Malformed::Body);
        }
        Ok(Some(place))
    }

    /// An error if bytes follow those that were read.
    fn end(&self) -> Result<(), Malformed> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(Malformed::Body) }
    }
}

/// Where all members are, each with what is beside it: a look-up is a few comparisons.
#[derive(Debug)]
pub struct Index<'a> {
    bytes: &'a [u8],
    places: Vec<(Range<usize>, Range<usize>)>,
}

impl<'a> Index<'a> {
    /// What is beside a member.
    pub fn get(&self, member: &[u8]) -> Option<&'a [u8]> {
        let part = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        let found = self.places.binary_search_by(|(its, _)| part(its).cmp(member)).ok()?;
        self.places.get(found).map(|(_, value)| part(value))
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
        let (mut places, mut shown) = (packed.places(), Model::new());
        while let Some(place) = places.advance().unwrap() {
            let part = |range: Range<usize>| packed.bytes()[range].to_vec();
            shown.insert(part(place.member), part(place.value));
        }
        shown
    }

    fn change() -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
        let name = prop::collection::vec(0u8..3, 0..3);
        (name, prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..200)))
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(changes in prop::collection::vec(change(), 1..60)) {
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
                if packed.size() > 0 {
                    packed = Packed::decode(&record_of(&packed)).unwrap();
                }
                prop_assert_eq!((packed.size(), shown(&packed)), (model.len() as u64, model.clone()));
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_and_never_panic(bytes: Vec<u8>, member: Vec<u8>) {
            let record = Bytes::from([&[0x92; HEADER_BYTES], &bytes[..]].concat());
            let Ok(mut packed) = Packed::decode(&record) else { return Ok(()) };
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
        assert_eq!(Packed::decode(&broken).unwrap().validate(), Err(Malformed::Body));
        assert_eq!(Packed::decode(&broken).unwrap().get(b"b"), Err(Malformed::Body));
        let long = Bytes::from([&record[..], b"x"].concat());
        assert_eq!(Packed::decode(&long).unwrap().validate(), Err(Malformed::Body));
        let twice = Bytes::from_static(b"\x92\0\0\0\0\0\0\0\0\x02\0\x01a\0\x01a\0");
        assert_eq!(Packed::decode(&twice).unwrap().validate(), Err(Malformed::Body));
        let none = Bytes::from_static(b"\x92\0\0\0\0\0\0\0\0\0\0");
        assert!(Packed::decode(&none).is_err());
    }
}
