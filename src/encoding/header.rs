//! The header of a record: the type and the expiry of a key.
//!
//! ```text
//! [flags:1][expire_ms:8 LE]
//!
//! flags          bit 7 always set; bits 4-6 the encoding, 1 packed, 2 chunked, else 0; bits 0-3 the
//!                type
//! expire_ms      milliseconds since 1970 at which the key ceases to exist; 0 = never
//! ```

use std::fmt;

use crate::io::codec::Reader;

/// The length of the header.
pub const HEADER_BYTES: usize = 9;

pub(super) const ALWAYS_SET: u8 = 0x80;
pub(super) const ENCODING_MASK: u8 = 0x70;
const TYPE_MASK: u8 = 0x0f;
pub(super) const PACKED: u8 = 0x10;
pub(super) const CHUNKED: u8 = 0x20;

/// The type of a key. The numbers are part of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// One byte string.
    String = 1,
    /// Fields with values.
    Hash = 2,
    /// Elements by position.
    List = 3,
    /// Members without order.
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

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the key.
    pub kind: Type,
    /// When the key expires, in milliseconds since 1970; 0 = never.
    pub expire_ms: u64,
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// There are fewer bytes than a header has.
    Short(usize),
    /// No version writes these flags.
    Flags(u8),
    /// The flags name an encoding of a later version.
    Encoding(u8),
    /// The part after the header does not fit the type.
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
    /// Decodes the header of a record.
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
            (0, _) | (PACKED, Type::Hash | Type::Set | Type::ZSet) | (CHUNKED, Type::String) => {
                Ok(Self { kind, expire_ms })
            }
            _ => Err(Malformed::Encoding(flags)),
        }
    }

    /// Whether the key has expired at `now_ms`.
    #[inline]
    pub fn expired(&self, now_ms: u64) -> bool {
        self.expire_ms != 0 && now_ms >= self.expire_ms
    }
}
