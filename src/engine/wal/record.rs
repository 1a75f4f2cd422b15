//! The framing of log and manifest records.
//!
//! ```text
//!  0        4      8      12     16               24              32
//!  | magic  | crc  | len  | kind | synced segment | synced offset | payload | zeros to 8 |
//! ```
//! All integers little-endian; `len` is the payload's length without the padding. `crc` covers
//! the file's number and the record's offset, then the bytes from `len` to the payload's end: a
//! record that was moved, or left over from another file, is not valid. The synced position says
//! how far the log (or manifest) was known to be durable when the record was written, and is
//! never beyond the record itself.

use crc32fast::Hasher;

use crate::engine::files::FileNumber;
use crate::engine::wal::position::LogPosition;
use crate::io::codec::Reader;

/// Bytes before the payload.
pub const RECORD_HEADER_BYTES: usize = 32;

/// Records start at multiples of this.
pub const RECORD_ALIGNMENT: u64 = 8;

/// The first bytes of every record, chosen to be unlikely in text, zeros and small integers.
pub const RECORD_MAGIC: [u8; 4] = [0xD7, 0x4C, 0x9B, 0xE1];

/// Bytes of a link's payload: segment and offset.
pub const LINK_PAYLOAD_BYTES: usize = 16;

/// What a record carries. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordKind {
    /// A commit, or a version edit.
    Data = 1,
    /// The number of the segment before this one and the offset at which it ended.
    Link = 2,
}

/// The checked fields of a record's header; its crc is still to be compared.
#[derive(Clone, Copy, Debug)]
pub struct RecordHeader {
    /// What the payload is.
    pub kind: RecordKind,
    /// How far the file's kind was durable when this was written.
    pub synced: LogPosition,
    /// Claimed length of the payload: only as good as the crc.
    pub len: u32,
    /// The stored checksum.
    pub crc: u32,
}

/// Bytes a record with `payload` bytes takes, padding included.
pub fn framed_len(payload: u64) -> u64 {
    (RECORD_HEADER_BYTES as u64).saturating_add(payload).next_multiple_of(RECORD_ALIGNMENT)
}

/// Appends the record that is to stand at `offset` of file `number`.
pub fn encode(
    out: &mut Vec<u8>,
    at: LogPosition,
    kind: RecordKind,
    synced: LogPosition,
    payload: &[u8],
) {
    debug_assert!(at.offset.is_multiple_of(RECORD_ALIGNMENT) && synced <= at);
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    debug_assert_eq!(len as usize, payload.len(), "the caller limits payloads");
    let mut covered = [0; RECORD_HEADER_BYTES - 8];
    write_fields(&mut covered, len, kind, synced);
    let mut hasher = checksum_of(at.segment, at.offset, &covered);
    hasher.update(payload);
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&hasher.finalize().to_le_bytes());
    out.extend_from_slice(&covered);
    out.extend_from_slice(payload);
    let padding = payload.len().next_multiple_of(8) - payload.len();
    out.extend(std::iter::repeat_n(0, padding));
}

fn write_fields(out: &mut [u8; 24], len: u32, kind: RecordKind, synced: LogPosition) {
    let fields = u128::from(len) | u128::from(kind as u32) << 32 | u128::from(synced.segment) << 64;
    let (first, last) = out.split_at_mut(16);
    first.copy_from_slice(&fields.to_le_bytes());
    last.copy_from_slice(&synced.offset.to_le_bytes());
}

/// A checksum begun with what binds a record to its place and with its header after the crc.
pub fn checksum_of(number: FileNumber, offset: u64, covered_header: &[u8]) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(covered_header);
    hasher
}

/// Reads the header of a record at `at`; `None` if no valid record can start like that.
pub fn decode_header(bytes: &[u8], at: LogPosition) -> Option<RecordHeader> {
    let rest = bytes.strip_prefix(&RECORD_MAGIC)?;
    let mut reader = Reader::new(rest);
    let crc = reader.u32()?;
    let len = reader.u32()?;
    let kind = match reader.u32()? {
        1 => RecordKind::Data,
        2 if len as usize == LINK_PAYLOAD_BYTES => RecordKind::Link,
        _ => return None,
    };
    let synced = LogPosition::new(reader.u64()?, reader.u64()?);
    (synced <= at).then_some(RecordHeader { kind, synced, len, crc })
}

/// The payload of a link to the segment that ended at `previous`.
pub fn encode_link(previous: LogPosition) -> [u8; LINK_PAYLOAD_BYTES] {
    let fields = u128::from(previous.segment) | u128::from(previous.offset) << 64;
    fields.to_le_bytes()
}

/// Reads a link's payload.
pub fn decode_link(payload: &[u8]) -> Option<LogPosition> {
    let mut reader = Reader::new(payload);
    let position = LogPosition::new(reader.u64()?, reader.u64()?);
    reader.is_empty().then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_documented_bytes() {
        let mut out = Vec::new();
        let at = LogPosition::new(0x0102, 64);
        encode(&mut out, at, RecordKind::Data, LogPosition::new(3, 40), b"hello");
        let mut expected = vec![0xD7, 0x4C, 0x9B, 0xE1];
        let covered: Vec<u8> = [
            &[5, 0, 0, 0][..],
            &[1, 0, 0, 0],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[40, 0, 0, 0, 0, 0, 0, 0],
            b"hello",
        ]
        .concat();
        let place = [[2, 1, 0, 0, 0, 0, 0, 0], [64, 0, 0, 0, 0, 0, 0, 0]].concat();
        let crc = crc32fast::hash(&[&place[..], &covered].concat());
        expected.extend_from_slice(&crc.to_le_bytes());
        expected.extend_from_slice(&covered);
        expected.extend_from_slice(&[0, 0, 0]);
        assert_eq!(out, expected);
        assert_eq!(framed_len(5), 40);
        assert_eq!(framed_len(8), 40);
        assert_eq!(framed_len(9), 48);
    }

    #[test]
    fn a_header_that_claims_a_later_sync_or_an_unknown_kind_is_refused() {
        let at = LogPosition::new(5, 32);
        let mut out = Vec::new();
        encode(&mut out, at, RecordKind::Link, at, &encode_link(LogPosition::new(4, 96)));
        assert!(decode_header(&out, at).is_some());
        assert!(decode_header(&out, LogPosition::new(5, 24)).is_none(), "synced beyond itself");
        let mut unknown = out.clone();
        unknown[12] = 3;
        assert!(decode_header(&unknown, at).is_none());
        let mut long_link = out.clone();
        long_link[8] = 17;
        assert!(decode_header(&long_link, at).is_none());
        assert!(decode_header(&out[..31], at).is_none());
    }

    #[test]
    fn a_link_reads_back_and_nothing_else_is_one() {
        let end = LogPosition::new(u64::MAX, 7);
        assert_eq!(decode_link(&encode_link(end)), Some(end));
        assert_eq!(decode_link(&[0; 15]), None);
        assert_eq!(decode_link(&[0; 17]), None);
    }
}
