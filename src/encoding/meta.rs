//! Records of the meta tree: the value of a user key, or how to find it.
//!
//! ```text
//! every record   [flags:1][expire_ms:8 LE][...]
//! String         [flags:1][expire_ms:8 LE][value]
//! Hash Set ZSet  [flags:1][expire_ms:8 LE][version:8 LE][size:8 LE][tombstones]
//! List           [flags:1][expire_ms:8 LE][version:8 LE][head:8 LE][tail:8 LE]
//! packed         [flags:1][expire_ms:8 LE][members], a small Hash, Set or ZSet: encoding::packed
//! chunked        a String whose value is in rows: encoding::chunked
//!
//! flags          bit 7 always set; bits 4-6 the encoding, 1 packed, 2 chunked, else 0; bits 0-3 the
//!                type
//! expire_ms      milliseconds since 1970 at which the key ceases to exist; 0 = never
//! version        which rows of the data and score trees are this collection's
//! size           number of members, never 0
//! tombstones     what removals have left behind (encoding::tombstones), mostly nothing
//! head, tail     the list's elements have the indexes head..tail, never none
//! ```

use bytes::Bytes;

use crate::encoding::header::{ALWAYS_SET, ENCODING_MASK, PACKED};
pub use crate::encoding::header::{HEADER_BYTES, Header, Malformed, Type};
use crate::encoding::packed::Packed;
use crate::encoding::tombstones::TombstoneStats;
use crate::io::codec::{Reader, put_u64};

/// Encodes the record of a string.
pub fn encode_string(value: &[u8], expire_ms: u64) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER_BYTES + value.len());
    record.push(ALWAYS_SET | Type::String as u8);
    put_u64(&mut record, expire_ms);
    record.extend_from_slice(value);
    record
}

/// The part of a collection's record after the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A hash, set or sorted set whose members have rows.
    Members {
        /// The version that names the rows.
        version: u64,
        /// The number of members.
        size: u64,
        /// What removals have left behind.
        tombstones: TombstoneStats,
    },
    /// A list.
    Span {
        /// The version that names the rows.
        version: u64,
        /// The index of the first element.
        head: u64,
        /// The index after the last element.
        tail: u64,
    },
    /// A hash, set or sorted set whose members are in the record.
    Packed(Packed),
}

/// Whether a record holds its members itself and names no rows.
#[inline]
pub fn is_packed(record: &[u8]) -> bool {
    record.first().is_some_and(|flags| flags & ENCODING_MASK == PACKED)
}

impl Body {
    /// The version that names the rows of the collection, if it has rows.
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Members { version, .. } | Self::Span { version, .. } => Some(*version),
            Self::Packed(_) => None,
        }
    }

    /// The number of members or elements.
    pub fn size(&self) -> u64 {
        match self {
            Self::Members { size, .. } => *size,
            Self::Span { head, tail, .. } => tail.saturating_sub(*head),
            Self::Packed(packed) => packed.size(),
        }
    }

    /// Decodes what follows the header of a collection's record.
    pub fn decode(kind: Type, record: &[u8]) -> Result<Self, Malformed> {
        if is_packed(record) {
            return Packed::decode(Bytes::copy_from_slice(record)).map(Self::Packed);
        }
        let mut reader = Reader::new(record.get(HEADER_BYTES..).unwrap_or_default());
        let body = (|| {
            let version = reader.u64()?;
            match kind {
                Type::String => None,
                Type::List => {
                    let (head, tail) = (reader.u64()?, reader.u64()?);
                    (head < tail).then_some(Self::Span { version, head, tail })
                }
                Type::Hash | Type::Set | Type::ZSet => {
                    let (size, tombstones) = (reader.u64()?, TombstoneStats::decode(&mut reader)?);
                    (size > 0).then_some(Self::Members { version, size, tombstones })
                }
            }
        })();
        body.filter(|_| reader.is_empty()).ok_or(Malformed::Body)
    }
}

/// Encodes the record of a collection.
pub fn encode_collection(header: Header, body: &Body) -> Vec<u8> {
    match body {
        Body::Members { version, size, tombstones } => {
            encode_members(header, *version, *size, tombstones)
        }
        Body::Span { version, head, tail } => encode_span(header, *version, *head, *tail),
        Body::Packed(packed) => encode_packed(header, packed),
    }
}

/// Encodes the record of a hash, set or sorted set whose members have rows.
pub fn encode_members(
    header: Header,
    version: u64,
    size: u64,
    tombstones: &TombstoneStats,
) -> Vec<u8> {
    let mut record = header_record(header, 0, 16 + tombstones.encoded_len());
    put_u64(&mut record, version);
    put_u64(&mut record, size);
    tombstones.encode(&mut record);
    record
}

/// Encodes the record of a list.
fn encode_span(header: Header, version: u64, head: u64, tail: u64) -> Vec<u8> {
    let mut record = header_record(header, 0, 24);
    put_u64(&mut record, version);
    put_u64(&mut record, head);
    put_u64(&mut record, tail);
    record
}

/// Encodes the record of a hash, set or sorted set that holds its members itself.
pub fn encode_packed(header: Header, packed: &Packed) -> Vec<u8> {
    let mut record = header_record(header, PACKED, packed.encoded_len());
    packed.encode(&mut record);
    record
}

/// A header with room for exactly `rest` more bytes: a record that has room to spare is copied
/// once more when it becomes `Bytes`.
fn header_record(header: Header, encoding: u8, rest: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER_BYTES + rest);
    record.push(ALWAYS_SET | encoding | header.kind as u8);
    put_u64(&mut record, header.expire_ms);
    record
}

/// Returns a record with another expiry; `None` if it is no record.
pub fn with_expiry(record: &[u8], expire_ms: u64) -> Option<Vec<u8>> {
    let mut changed = record.to_vec();
    changed.get_mut(1..HEADER_BYTES)?.copy_from_slice(&expire_ms.to_le_bytes());
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_string_record_is_flags_expiry_and_the_value() {
        let record = encode_string(b"hi", 0x0102_0304);
        assert_eq!(record, [0x81, 4, 3, 2, 1, 0, 0, 0, 0, b'h', b'i']);
    }

    #[test]
    fn a_key_exists_until_its_expiry_and_for_ever_without_one() {
        let header = Header { kind: Type::String, expire_ms: 1000 };
        assert!(!header.expired(999));
        assert!(header.expired(1000));
        assert!(header.expired(1001));
        assert!(!Header { expire_ms: 0, ..header }.expired(u64::MAX));
    }

    #[test]
    fn what_no_version_writes_is_told_apart_from_what_a_later_one_may() {
        let with_flags = |flags| Header::decode(&[flags, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(with_flags(0x01), Err(Malformed::Flags(0x01)));
        assert_eq!(with_flags(0x80), Err(Malformed::Flags(0x80)));
        assert_eq!(with_flags(0x86), Err(Malformed::Flags(0x86)));
        for later in [0x91, 0x93, 0xa2, 0xb1, 0xf5] {
            assert_eq!(with_flags(later), Err(Malformed::Encoding(later)));
        }
        assert_eq!(with_flags(0x92).unwrap().kind, Type::Hash);
        assert_eq!(with_flags(0xa1).unwrap().kind, Type::String);
        assert_eq!(with_flags(0x85).unwrap().kind, Type::ZSet);
        assert_eq!(Header::decode(&[0x81; 8]), Err(Malformed::Short(8)));
    }

    proptest! {
        #[test]
        fn every_collection_reads_back(
            kind in prop::sample::select(vec![Type::Hash, Type::List, Type::Set, Type::ZSet]),
            expire_ms: u64, later: u64, version: u64, a in 1u64..u64::MAX, b in 1u64..100,
            removed: u32,
        ) {
            let header = Header { kind, expire_ms };
            let body = match kind {
                Type::List => Body::Span { version, head: a.saturating_sub(b), tail: a },
                _ => {
                    let mut tombstones = TombstoneStats::default();
                    tombstones.count_removed(removed);
                    Body::Members { version, size: a, tombstones }
                }
            };
            let record = encode_collection(header, &body);
            prop_assert_eq!(Header::decode(&record), Ok(header));
            prop_assert_eq!(Body::decode(kind, &record), Ok(body.clone()));
            let moved = with_expiry(&record, later).unwrap();
            prop_assert_eq!(Header::decode(&moved), Ok(Header { kind, expire_ms: later }));
            prop_assert_eq!(Body::decode(kind, &moved), Ok(body));
            prop_assert_eq!(Body::decode(kind, &record[..record.len() - 1]), Err(Malformed::Body));
        }

        #[test]
        fn every_string_reads_back(value: Vec<u8>, expire_ms: u64) {
            let record = encode_string(&value, expire_ms);
            let header = Header::decode(&record).unwrap();
            prop_assert_eq!(header, Header { kind: Type::String, expire_ms });
            prop_assert_eq!(&record[HEADER_BYTES..], &value[..]);
        }

        #[test]
        fn arbitrary_bytes_never_panic(record: Vec<u8>) {
            if Header::decode(&record).is_ok() {
                prop_assert!(record.len() >= HEADER_BYTES);
            }
        }
    }
}
