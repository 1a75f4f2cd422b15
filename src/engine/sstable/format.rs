//! The frame of a table file: block trailers, handles and the footer.
//!
//! ```text
//! file    = data block*  [filter]  index  properties  footer
//! block   = payload | compression u8 | crc u32
//! footer  = index handle 12 | filter handle 12 | properties handle 12
//!           | file number u64 | version u32 | crc u32 | magic 8          (60 bytes)
//! handle  = offset u64 | payload length u32
//! ```
//!
//! Every checksum also covers the file number and the offset, so that bytes from another place or
//! another file never verify. The parts fill the file without gaps: each length is checked against
//! the next offset before it is used.

use crc32fast::Hasher;

use crate::engine::files::FileNumber;
use crate::io::codec::{Reader, put_u32, put_u64};

/// Bytes after each payload: compression type and checksum.
pub(super) const TRAILER_BYTES: u32 = 5;
/// Size of the footer.
pub(super) const FOOTER_BYTES: usize = 60;
/// The last bytes of a table.
pub(super) const MAGIC: [u8; 8] = *b"lsmkvtab";
/// The version of tables without features; see `properties`.
const PLAIN_VERSION: u32 = 1;
/// The version of tables that may have features, and the newest that this code reads.
const VERSION: u32 = 2;

/// Trailer value of a payload stored as it is.
pub(super) const STORED: u8 = 0;
/// Trailer value of a payload `original length u32 | LZ4 block`.
pub(super) const LZ4: u8 = 1;

/// Why bytes that match their checksum are still not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// The position of a payload. Its trailer follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl Handle {
    /// The offset after payload and trailer.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.length))?.checked_add(u64::from(TRAILER_BYTES))
    }

    fn put(self, out: &mut Vec<u8>) {
        put_u64(out, self.offset);
        put_u32(out, self.length);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { offset: reader.u64()?, length: reader.u32()? })
    }
}

/// The checksum of bytes at `offset` of file `number`. It covers the bytes, the type, the file
/// number and the offset.
pub(super) fn checksum(parts: &[&[u8]], kind: u8, number: FileNumber, offset: u64) -> u32 {
    let mut place = [kind; 17];
    let (_, rest) = place.split_at_mut(1);
    let (number_at, offset_at) = rest.split_at_mut(8);
    number_at.copy_from_slice(&number.to_le_bytes());
    offset_at.copy_from_slice(&offset.to_le_bytes());
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.update(&place);
    hasher.finalize()
}

/// The positions of the parts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) index: Handle,
    /// Has length 0 if the table has no filter. It then takes no bytes, not even a trailer.
    pub(super) filter: Handle,
    pub(super) properties: Handle,
}

/// Why a footer was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadFooter {
    /// The bytes are damaged.
    Damaged(String),
    /// The bytes are intact, but have a format version that this code does not know.
    Version(u32),
}

impl Footer {
    /// Encodes a footer for `offset` of file `number`. `features` tells whether the properties name
    /// any.
    pub(super) fn encode(&self, number: FileNumber, offset: u64, features: bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.index.put(&mut out);
        self.filter.put(&mut out);
        self.properties.put(&mut out);
        put_u64(&mut out, number);
        put_u32(&mut out, if features { VERSION } else { PLAIN_VERSION });
        let crc = checksum(&[&out], 0, number, offset);
        put_u32(&mut out, crc);
        out.extend_from_slice(&MAGIC);
        out
    }

    /// Decodes and checks the footer at `offset` of file `number`.
    pub(super) fn decode(bytes: &[u8], number: FileNumber, offset: u64) -> Result<Self, BadFooter> {
        let short = || BadFooter::Damaged("the footer is too short".into());
        let mut reader = Reader::new(bytes);
        let mut handle = || Handle::take(&mut reader);
        let footer = Self {
            index: handle().ok_or_else(short)?,
            filter: handle().ok_or_else(short)?,
            properties: handle().ok_or_else(short)?,
        };
        let found = reader.u64().ok_or_else(short)?;
        let version = reader.u32().ok_or_else(short)?;
        let (covered, _) = bytes.split_at_checked(48).ok_or_else(short)?;
        let crc = reader.u32().ok_or_else(short)?;
        if reader.rest() != MAGIC {
            return Err(BadFooter::Damaged("this is no table: the magic is wrong".into()));
        }
        let expected = checksum(&[covered], 0, number, offset);
        if crc != expected {
            let detail = format!("footer checksum {crc:08x}, expected {expected:08x}");
            return Err(BadFooter::Damaged(detail));
        }
        if found != number {
            return Err(BadFooter::Damaged(format!("file number {found}, expected {number}")));
        }
        if !(PLAIN_VERSION..=VERSION).contains(&version) {
            return Err(BadFooter::Version(version));
        }
        footer.check_tiling(offset)?;
        Ok(footer)
    }

    /// The offset after the last data block.
    pub(super) fn data_end(&self) -> u64 {
        self.filter.offset
    }

    fn check_tiling(&self, footer_at: u64) -> Result<(), BadFooter> {
        let filter_end =
            if self.filter.length == 0 { Some(self.filter.offset) } else { self.filter.end() };
        let tiled = filter_end == Some(self.index.offset)
            && self.index.end() == Some(self.properties.offset)
            && self.properties.end() == Some(footer_at);
        if tiled {
            return Ok(());
        }
        Err(BadFooter::Damaged("the parts named in the footer do not fill the file".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer() -> Footer {
        Footer {
            filter: Handle { offset: 100, length: 10 },
            index: Handle { offset: 115, length: 20 },
            properties: Handle { offset: 140, length: 5 },
        }
    }

    #[test]
    fn a_footer_reads_back_only_at_its_own_place_in_its_own_file() {
        let bytes = footer().encode(7, 150, true);
        assert_eq!(bytes.len(), FOOTER_BYTES);
        assert_eq!(Footer::decode(&bytes, 7, 150), Ok(footer()));
        assert_eq!(Footer::decode(&footer().encode(7, 150, false), 7, 150), Ok(footer()));
        assert!(Footer::decode(&bytes, 8, 150).is_err());
        assert!(Footer::decode(&bytes, 7, 151).is_err());
    }

    #[test]
    fn a_newer_version_is_told_apart_from_damage() {
        let mut bytes = footer().encode(7, 150, false);
        bytes[44..48].copy_from_slice(&3u32.to_le_bytes());
        let crc = checksum(&[&bytes[..48]], 0, 7, 150);
        bytes[48..52].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Footer::decode(&bytes, 7, 150), Err(BadFooter::Version(3)));
    }

    #[test]
    fn parts_that_overlap_or_leave_a_gap_are_refused() {
        let mut wrong = footer();
        wrong.index.length = u32::MAX;
        assert!(Footer::decode(&wrong.encode(7, 150, false), 7, 150).is_err());
        let mut wrong = footer();
        wrong.properties.offset = u64::MAX;
        assert!(Footer::decode(&wrong.encode(7, 150, false), 7, 150).is_err());
    }
}
