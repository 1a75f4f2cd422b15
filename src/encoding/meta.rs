//! Records of the meta tree: what a user key names, and until when.
//!
//! ```text
//! every record   [flags:1][expire_ms:8 LE][...]
//! String         [flags:1][expire_ms:8 LE][value]
//! Hash Set ZSet  [flags:1][expire_ms:8 LE][version:8 LE][size:8 LE][wear]
//! List           [flags:1][expire_ms:8 LE][version:8 LE][head:8 LE][tail:8 LE]
//! packed         [flags:1][expire_ms:8 LE][members], a small Hash, Set or ZSet: encoding::packed
//!
//! flags          bit 7 always set; bits 4-6 the encoding, 1 for packed, else 0; bits 0-3 the type
//! expire_ms      milliseconds since 1970 at which the key ceases to exist; 0 = never
//! version        which rows of the data and score trees are this collection's
//! size           number of members, never 0
//! wear           what removals left behind (encoding::wear), mostly nothing
//! head, tail     the list's elements have the indexes head..tail, never none
//! ```

use std::fmt;

use bytes::Bytes;

use crate::encoding::packed::Packed;
use crate::encoding::wear::Wear;
use crate::io::codec::{Reader, put_u64};

/// Bytes before the part that depends on the type.
pub const HEADER_BYTES: usize = 9;

const ALWAYS_SET: u8 = 0x80;
const ENCODING_MASK: u8 = 0x70;
const TYPE_MASK: u8 = 0x0f;
const PACKED: u8 = 0x10;

/// The type of a key. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// Bytes.
    String = 1,
    /// Fields with values.
    Hash = 2,
    /// Elements by position.
    List = 3,
    /// Members.
    Set = 4,
    /// Members by score.
    ZSet = 5,
}

impl Type {
    fn from_flags(flags: u8) -> Option<Self> {
        match flags & TYPE_MASK {
            1 => Some(Self::String),
            2 => Some(Self::Hash),
            3 => Some(Self::List),
            4 => Some(Self::Set),
            5 => Some(Self::ZSet),
            _ => None,
        }
    }
}

/// What every record begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the key.
    pub kind: Type,
    /// When the key ceases to exist, in milliseconds since 1970; 0 = never.
    pub expire_ms: u64,
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than a header has.
    Short(usize),
    /// Flags that no version writes.
    Flags(u8),
    /// An encoding of a later version.
    Encoding(u8),
    /// The part after the header is not that of its type.
    Body,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(found) => {
                write!(f, "a record needs {HEADER_BYTES} bytes or more, found {found}")
            }
            Self::Body => write!(f, "a record's length or bounds do not fit its type"),
            Self::Flags(flags) => write!(f, "no record has flags {flags:#04x}"),
            Self::Encoding(flags) => {
                write!(f, "flags {flags:#04x} name an encoding of a later version of lsmkv")
            }
        }
    }
}

impl Header {
    /// Reads the front of a record.
    #[inline]
    pub fn decode(record: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(record);
        let (Some(flags), Some(expire_ms)) = (reader.u8(), reader.u64()) else {
            return Err(Malformed::Short(record.len()));
        };
        if flags & ALWAYS_SET == 0 {
            return Err(Malformed::Flags(flags));
        }
        let kind = Type::from_flags(flags).ok_or(Malformed::Flags(flags))?;
        match (flags & ENCODING_MASK, kind) {
            (0, _) | (PACKED, Type::Hash | Type::Set | Type::ZSet) => Ok(Self { kind, expire_ms }),
            _ => Err(Malformed::Encoding(flags)),
        }
    }

    /// Whether the key has ceased to exist at `now_ms`.
    #[inline]
    pub fn expired(&self, now_ms: u64) -> bool {
        self.expire_ms != 0 && now_ms >= self.expire_ms
    }
}

/// The record of a String.
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
    /// Hash, Set, ZSet.
    Members {
        /// Names its rows.
        version: u64,
        /// How many there are.
        size: u64,
        /// What removals left behind.
        wear: Wear,
    },
    /// List.
    Span {
        /// Names its rows.
        version: u64,
        /// Index of the first element.
        head: u64,
        /// Index after the last one.
        tail: u64,
    },
    /// Hash, Set, ZSet: all there is of it.
    Packed(Packed),
}

/// Whether a record holds its members itself: it names no rows.
#[inline]
pub fn is_packed(record: &[u8]) -> bool {
    record.first().is_some_and(|flags| flags & ENCODING_MASK == PACKED)
}

impl Body {
    /// Names the rows of the collection, if it has any.
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Members { version, .. } | Self::Span { version, .. } => Some(*version),
            Self::Packed(_) => None,
        }
    }

    /// How many members or elements it has.
    pub fn size(&self) -> u64 {
        match self {
            Self::Members { size, .. } => *size,
            Self::Span { head, tail, .. } => tail.saturating_sub(*head),
            Self::Packed(packed) => packed.size(),
        }
    }

    /// Reads what follows the header of a record that is no String.
    pub fn decode(kind: Type, record: &[u8]) -> Result<Self, Malformed> {
        if is_packed(record) {
            return Packed::decode(&Bytes::copy_from_slice(record)).map(Self::Packed);
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
                    let (size, wear) = (reader.u64()?, Wear::decode(&mut reader)?);
                    (size > 0).then_some(Self::Members { version, size, wear })
                }
            }
        })();
        body.filter(|_| reader.is_empty()).ok_or(Malformed::Body)
    }
}

/// The record of a collection.
pub fn encode_collection(header: Header, body: &Body) -> Vec<u8> {
    // Exactly: a record that has room to spare is copied once more when it becomes `Bytes`.
    let rest = match body {
        Body::Members { wear, .. } => 16 + wear.encoded_len(),
        Body::Span { .. } => 24,
        Body::Packed(packed) => packed.encoded_len(),
    };
    let mut record = Vec::with_capacity(HEADER_BYTES + rest);
    let encoding = if matches!(body, Body::Packed(_)) { PACKED } else { 0 };
    record.push(ALWAYS_SET | encoding | header.kind as u8);
    put_u64(&mut record, header.expire_ms);
    match body {
        Body::Members { version, size, wear } => {
            put_u64(&mut record, *version);
            put_u64(&mut record, *size);
            wear.encode(&mut record);
        }
        Body::Span { version, head, tail } => {
            put_u64(&mut record, *version);
            put_u64(&mut record, *head);
            put_u64(&mut record, *tail);
        }
        Body::Packed(packed) => packed.encode(&mut record),
    }
    record
}

/// The same record with another expiry; `None` if it is no record.
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
        for later in [0x91, 0x93, 0xa2, 0xf5] {
            assert_eq!(with_flags(later), Err(Malformed::Encoding(later)));
        }
        assert_eq!(with_flags(0x92).unwrap().kind, Type::Hash);
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
                    let mut wear = Wear::default();
                    wear.count_removed(removed);
                    Body::Members { version, size: a, wear }
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
