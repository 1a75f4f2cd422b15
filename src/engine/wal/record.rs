//! The frame of log and manifest records.
//!
//! ```text
//!  0        4      8      12             16       24
//!  | magic  | crc  | len  | kind | check | synced | payload | zeros to 8 |
//! ```
//! All integers are little-endian. `len` is the length of the payload without the padding. `kind`
//! is one byte, `check` three. `crc` covers the number of the file and the offset of the record,
//! and then the bytes from `len` to the end of the payload, with `check` taken as zero. So a record
//! that was moved, or is left over from another file, is not valid.
//!
//! `synced` tells how far the log or manifest was durable when the record was written, which is
//! never beyond the record itself. The upper 24 bits hold the difference of the segment numbers,
//! the lower 40 bits the offset in units of 8. All ones mean that nothing is known.
//!
//! `check` is the upper 24 bits of that crc before the payload. It makes a header verifiable on its
//! own, so that a scan follows no length that was not written here. Without it, a torn commit of a
//! value that looks like many headers could make a scan take hours.

use crc32fast::Hasher;

use crate::engine::wal::position::LogPosition;
use crate::io::codec::{Reader, put_u32, put_u64};

/// Number of bytes before the payload.
pub const RECORD_HEADER_BYTES: usize = 24;

/// Records start at multiples of this number.
pub const RECORD_ALIGNMENT: u64 = 8;

/// The first bytes of every record. They are unlikely in text, zeros and small integers.
pub const RECORD_MAGIC: [u8; 4] = [0xD7, 0x4C, 0x9B, 0xE1];

/// Length of the payload of a link: segment and offset.
pub const LINK_PAYLOAD_BYTES: usize = 16;

/// The kind of a record. The numbers are part of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordKind {
    /// A commit, or a version edit.
    Data = 1,
    /// A link: the number of the segment before this one, and the offset at which it ended.
    Link = 2,
}

/// The header of a record. Its payload is not compared with the checksum yet.
#[derive(Clone, Debug)]
pub struct RecordHeader {
    /// The kind of payload.
    pub kind: RecordKind,
    /// How far the log or manifest was durable when the record was written.
    pub synced: LogPosition,
    /// Length of the payload.
    pub len: u32,
    /// The stored checksum.
    pub crc: u32,
    /// The checksum of everything before the payload.
    pub hasher: Hasher,
}

/// Length of a record with `payload` bytes of payload, padding included.
pub fn framed_len(payload: u64) -> u64 {
    (RECORD_HEADER_BYTES as u64).saturating_add(payload).next_multiple_of(RECORD_ALIGNMENT)
}

/// Encodes a record for the position `at` and appends it to `out`.
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
    let mut hasher = header_checksum(at, len, kind, synced);
    let kind_and_check = kind as u32 | header_check(&hasher) << 8;
    hasher.update(payload);
    let padding = payload.len().next_multiple_of(8) - payload.len();
    // At once: the padding of a huge record would double the buffer.
    out.reserve(RECORD_HEADER_BYTES + payload.len() + padding);
    out.extend_from_slice(&RECORD_MAGIC);
    put_u32(out, hasher.finalize());
    put_u32(out, len);
    put_u32(out, kind_and_check);
    put_u64(out, pack_synced(at, synced));
    out.extend_from_slice(payload);
    out.extend(std::iter::repeat_n(0, padding));
}

/// The checksum of the position of a record and the fields of its header.
fn header_checksum(at: LogPosition, len: u32, kind: RecordKind, synced: LogPosition) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&at.segment.to_le_bytes());
    hasher.update(&at.offset.to_le_bytes());
    hasher.update(&len.to_le_bytes());
    hasher.update(&(kind as u32).to_le_bytes());
    hasher.update(&pack_synced(at, synced).to_le_bytes());
    hasher
}

const OFFSET_BITS: u32 = 40;
const NOTHING_SYNCED: u64 = u64::MAX;

/// Packs the synced position into eight bytes. A position that does not fit, for which it takes
/// millions of files or a segment of terabytes, is left out: missing evidence is not wrong
/// evidence.
fn pack_synced(at: LogPosition, synced: LogPosition) -> u64 {
    let back = at.segment.saturating_sub(synced.segment);
    let units = synced.offset / RECORD_ALIGNMENT;
    let fits = back < 1 << (64 - OFFSET_BITS) && units < 1 << OFFSET_BITS;
    if fits && synced.segment <= at.segment { back << OFFSET_BITS | units } else { NOTHING_SYNCED }
}

/// Unpacks the position that `pack_synced` packed; `None` if no record at `at` could contain it.
fn unpack_synced(at: LogPosition, packed: u64) -> Option<LogPosition> {
    if packed == NOTHING_SYNCED {
        return Some(LogPosition::default());
    }
    let segment = at.segment.checked_sub(packed >> OFFSET_BITS)?;
    let units = packed & ((1 << OFFSET_BITS) - 1);
    Some(LogPosition::new(segment, units * RECORD_ALIGNMENT))
}

fn header_check(hasher: &Hasher) -> u32 {
    hasher.clone().finalize() >> 8
}

/// Decodes the header of a record at `at`; `None` if no record was written there.
pub fn decode_header(bytes: &[u8], at: LogPosition) -> Option<RecordHeader> {
    let rest = bytes.strip_prefix(&RECORD_MAGIC)?;
    let mut reader = Reader::new(rest);
    let (crc, len, kind_and_check) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let synced = unpack_synced(at, reader.u64()?)?;
    let kind = match kind_and_check & 0xff {
        1 => RecordKind::Data,
        2 if len as usize == LINK_PAYLOAD_BYTES => RecordKind::Link,
        _ => return None,
    };
    let hasher = header_checksum(at, len, kind, synced);
    let written_here = header_check(&hasher) == kind_and_check >> 8 && synced <= at;
    written_here.then_some(RecordHeader { kind, synced, len, crc, hasher })
}

/// Encodes the payload of a link to the segment that ended at `previous`.
pub fn encode_link(previous: LogPosition) -> [u8; LINK_PAYLOAD_BYTES] {
    let fields = u128::from(previous.segment) | u128::from(previous.offset) << 64;
    fields.to_le_bytes()
}

/// Decodes the payload of a link.
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
        let place = [[2, 1, 0, 0, 0, 0, 0, 0], [64, 0, 0, 0, 0, 0, 0, 0]].concat();
        // 0x0102 - 3 segments back, offset 40 / 8.
        let synced = [5, 0, 0, 0, 0, 0xff, 0, 0];
        let covered = [&place[..], &[5, 0, 0, 0, 1, 0, 0, 0], &synced].concat();
        let check = crc32fast::hash(&covered).to_le_bytes();
        let crc = crc32fast::hash(&[&covered[..], b"hello"].concat()).to_le_bytes();
        let expected = [
            &[0xD7, 0x4C, 0x9B, 0xE1][..],
            &crc,
            &[5, 0, 0, 0],
            &[1, check[1], check[2], check[3]],
            &synced,
            b"hello\0\0\0",
        ];
        assert_eq!(out, expected.concat());
        assert_eq!(framed_len(5), 32);
        assert_eq!(framed_len(8), 32);
        assert_eq!(framed_len(9), 40);
    }

    /// A header whose check is right, whatever it says.
    fn header(at: LogPosition, len: u32, kind: u32, synced: LogPosition) -> Vec<u8> {
        let mut hasher = Hasher::new();
        for word in [at.segment, at.offset] {
            hasher.update(&word.to_le_bytes());
        }
        let back = at.segment.wrapping_sub(synced.segment);
        let tail = ((back << 40) | (synced.offset / 8)).to_le_bytes();
        let fields = [len.to_le_bytes(), kind.to_le_bytes()].concat();
        hasher.update(&[&fields[..], &tail].concat());
        let check = hasher.finalize() >> 8;
        let kind = kind | check << 8;
        [&RECORD_MAGIC[..], &[0; 4], &len.to_le_bytes(), &kind.to_le_bytes(), &tail].concat()
    }

    #[test]
    fn a_header_that_claims_a_later_sync_or_an_unknown_kind_is_refused() {
        let at = LogPosition::new(5, 32);
        let decode = |len, kind, synced| decode_header(&header(at, len, kind, synced), at);
        assert!(decode(16, 1, at).is_some());
        assert!(decode(16, 2, at).is_some());
        assert!(decode(16, 1, LogPosition::new(5, 40)).is_none(), "synced beyond itself");
        assert!(decode(16, 1, LogPosition::new(6, 32)).is_none(), "a later segment");
        assert!(decode(16, 0, at).is_none());
        assert!(decode(16, 3, at).is_none());
        assert!(decode(17, 2, at).is_none(), "a link of another length");
        assert!(decode_header(&header(at, 16, 1, at)[..23], at).is_none());
    }

    #[test]
    fn a_changed_or_moved_header_is_refused_without_its_payload() {
        let at = LogPosition::new(5, 64);
        let good = header(at, 5, 1, LogPosition::new(4, 32));
        for bit in (0..32).chain(64..192) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_header(&bad, at).is_none(), "bit {bit}");
        }
        assert!(decode_header(&good, LogPosition::new(5, 72)).is_none());
        assert!(decode_header(&good, LogPosition::new(6, 64)).is_none());
    }

    #[test]
    fn a_synced_position_reads_back_or_is_left_out() {
        let at = LogPosition::new(1 << 30, 4096);
        let near = LogPosition::new((1 << 30) - 5, 1 << 20);
        for known in [at, near, LogPosition::new(1 << 30, 0)] {
            assert_eq!(unpack_synced(at, pack_synced(at, known)), Some(known));
        }
        for unknown in [LogPosition::new(3, 8), LogPosition::new(1 << 30, 1 << 50)] {
            let nothing = Some(LogPosition::default());
            assert_eq!(unpack_synced(at, pack_synced(at, unknown)), nothing);
        }
    }

    #[test]
    fn a_link_reads_back_and_nothing_else_is_one() {
        let end = LogPosition::new(u64::MAX, 7);
        assert_eq!(decode_link(&encode_link(end)), Some(end));
        assert_eq!(decode_link(&[0; 15]), None);
        assert_eq!(decode_link(&[0; 17]), None);
    }
}
