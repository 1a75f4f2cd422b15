//! The record of a string whose bytes are in rows of the data tree.
//!
//! ```text
//! [flags:1][expire_ms:8 LE][version:8 LE][length:8 LE][rows:8 LE][shift:1]
//!
//! version   which rows of the data tree are this string's
//! length    number of bytes of the string, never 0
//! rows      number of rows: at most one for each chunk of the length
//! shift     the chunks have 1 << shift bytes
//! ```
//!
//! Chunk `i` holds the bytes from `i << shift` on. Its row has the sub key `i`, 8 bytes big-endian,
//! and may be shorter than the chunk: what it lacks is zeros. A chunk without a row is zeros. So a
//! lost row looks like zeros, and only the number of rows tells.

use bytes::{Buf, Bytes};

use crate::encoding::header::{
    ALWAYS_SET, CHUNKED, ENCODING_MASK, HEADER_BYTES, Header, Malformed,
};
use crate::io::codec::{Reader, put_u64};

/// The longest string that a record may name.
pub const MOST_BYTES: u64 = 512 << 20;
/// The smallest and largest chunks are `1 << shift` bytes long.
pub const SHIFTS: std::ops::RangeInclusive<u8> = 4..=20;

/// Where the bytes of a string are that has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// The version that names the rows.
    pub version: u64,
    /// The number of bytes of the string.
    pub len: u64,
    /// The number of rows.
    pub rows: u64,
    /// The chunks have `1 << shift` bytes.
    pub shift: u8,
}

impl Chunks {
    /// The number of bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// The number of chunks that a string of `len` bytes has.
    pub fn count_of(&self, len: u64) -> u64 {
        len.div_ceil(self.chunk_bytes())
    }

    /// Encodes the record.
    pub fn encode(&self, header: Header) -> Vec<u8> {
        let mut record = Vec::with_capacity(HEADER_BYTES + 25);
        record.push(ALWAYS_SET | CHUNKED | header.kind as u8);
        put_u64(&mut record, header.expire_ms);
        put_u64(&mut record, self.version);
        put_u64(&mut record, self.len);
        put_u64(&mut record, self.rows);
        record.push(self.shift);
        record
    }

    /// Decodes the record of a string that has rows.
    pub fn decode(record: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(record.get(HEADER_BYTES..).unwrap_or_default());
        let chunks = (|| {
            let (version, len, rows) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let shift = reader.u8().filter(|shift| SHIFTS.contains(shift))?;
            let chunks = Self { version, len, rows, shift };
            let fits = (1..=MOST_BYTES).contains(&len) && rows <= chunks.count_of(len);
            fits.then_some(chunks)
        })();
        chunks.filter(|_| reader.is_empty()).ok_or(Malformed::Body)
    }
}

/// The value of a string, as its record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StringBody {
    /// The value.
    Whole(Bytes),
    /// The value is in rows.
    Chunked(Chunks),
}

/// Whether the record of a string names rows instead of holding the value.
#[inline]
pub fn is_chunked(record: &[u8]) -> bool {
    record.first().is_some_and(|flags| flags & ENCODING_MASK == CHUNKED)
}

impl StringBody {
    /// Decodes what follows the header of a string's record.
    #[inline]
    pub fn decode(mut record: Bytes) -> Result<Self, Malformed> {
        if is_chunked(&record) {
            return Chunks::decode(&record).map(Self::Chunked);
        }
        record.advance(HEADER_BYTES.min(record.len()));
        Ok(Self::Whole(record))
    }

    /// The length of the string.
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Whole(value) => value.len() as u64,
            Self::Chunked(chunks) => chunks.len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::header::Type;
    use crate::encoding::meta::{encode_string, with_expiry};
    use proptest::prelude::*;

    const HEADER: Header = Header { kind: Type::String, expire_ms: 0x0102 };

    #[test]
    fn a_record_is_flags_expiry_version_length_rows_and_shift() {
        let chunks = Chunks { version: 7, len: 0x0001_0001, rows: 2, shift: 14 };
        let record = chunks.encode(HEADER);
        let mut expected = vec![0xa1, 2, 1, 0, 0, 0, 0, 0, 0];
        expected.extend([7, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([1, 0, 1, 0, 0, 0, 0, 0]);
        expected.extend([2, 0, 0, 0, 0, 0, 0, 0]);
        expected.push(14);
        assert_eq!(record, expected);
    }

    #[test]
    fn what_cannot_be_is_no_record() {
        let good = Chunks { version: 7, len: 100, rows: 7, shift: 4 };
        for (bad, why) in [
            (Chunks { len: 0, rows: 0, ..good }, "empty"),
            (Chunks { len: MOST_BYTES + 1, ..good }, "longer than any string"),
            (Chunks { rows: 8, ..good }, "more rows than chunks"),
            (Chunks { shift: 3, ..good }, "chunks too small"),
            (Chunks { shift: 21, ..good }, "chunks too large"),
        ] {
            assert_eq!(Chunks::decode(&bad.encode(HEADER)), Err(Malformed::Body), "{why}");
        }
        let record = good.encode(HEADER);
        assert_eq!(Chunks::decode(&record), Ok(good));
        assert_eq!(Chunks::decode(&record[..record.len() - 1]), Err(Malformed::Body));
        assert_eq!(Chunks::decode(&[&record[..], &[0]].concat()), Err(Malformed::Body));
    }

    proptest! {
        #[test]
        fn every_string_reads_back_in_both_forms(
            value: Vec<u8>, version: u64, len in 1..=MOST_BYTES, shift in 4u8..=20, share in 0u64..=4,
            expire_ms: u64, later: u64,
        ) {
            let whole = Bytes::from(encode_string(&value, expire_ms));
            prop_assert_eq!(StringBody::decode(whole), Ok(StringBody::Whole(value.into())));
            let chunks = Chunks { version, len, rows: 0, shift };
            let chunks = Chunks { rows: chunks.count_of(len) * share / 4, ..chunks };
            let record = chunks.encode(Header { expire_ms, ..HEADER });
            prop_assert_eq!(Header::decode(&record), Ok(Header { expire_ms, ..HEADER }));
            let record = with_expiry(&record, later).unwrap();
            prop_assert_eq!(Header::decode(&record), Ok(Header { expire_ms: later, ..HEADER }));
            let body = StringBody::decode(record.into());
            prop_assert_eq!(body, Ok(StringBody::Chunked(chunks)));
        }
    }
}
