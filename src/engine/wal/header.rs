//! The header of a log segment or manifest: its type, number and size, in the first 32 bytes.
//!
//! ```text
//!  0        8          12       16       24     32
//!  | magic  | version  | crc    | number | size |
//! ```
//! All integers are little-endian. `crc` covers the other fields. `size` is the length of the whole
//! file for segments, whose length is fixed, and 0 for manifests.

use std::path::Path;

use crate::engine::files::FileNumber;
use crate::error::{Error, ErrorKind, Result};
use crate::io::codec::Reader;

/// Length of the header, and the offset of the first record.
pub const FILE_HEADER_BYTES: u64 = 32;

/// The version of both kinds of file. There is no other yet.
const FORMAT_VERSION: u32 = 1;

/// The first bytes of every log segment.
pub const SEGMENT_MAGIC: [u8; 8] = *b"LSMKVLOG";

/// The first bytes of every manifest.
pub const MANIFEST_MAGIC: [u8; 8] = *b"LSMKVMAN";

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The type of the file.
    pub magic: [u8; 8],
    /// The number in the name of the file.
    pub number: FileNumber,
    /// The length of the file, or 0 if it grows.
    pub size: u64,
}

impl FileHeader {
    /// Encodes the header.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_version(FORMAT_VERSION)
    }

    fn encode_version(&self, version: u32) -> Vec<u8> {
        let crc = self.checksum(version);
        [
            &self.magic[..],
            &version.to_le_bytes(),
            &crc.to_le_bytes(),
            &self.number.to_le_bytes(),
            &self.size.to_le_bytes(),
        ]
        .concat()
    }

    fn checksum(&self, version: u32) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.magic);
        hasher.update(&version.to_le_bytes());
        hasher.update(&self.number.to_le_bytes());
        hasher.update(&self.size.to_le_bytes());
        hasher.finalize()
    }

    /// Decodes the header of the file at `path`, which must have the type `magic` and the number
    /// `number`. A valid header of another version is `Incompatible`, any other mismatch `Corrupt`.
    pub fn decode(bytes: &[u8], path: &Path, magic: [u8; 8], number: FileNumber) -> Result<Self> {
        let Some((header, version, crc)) = Self::fields(bytes) else {
            return Err(Error::corrupt(path, 0, "the file is too short for its header"));
        };
        if header.magic != magic {
            return Err(Error::corrupt(path, 0, "the magic of this kind of file is missing"));
        }
        if crc != header.checksum(version) {
            return Err(Error::corrupt(path, 0, "the header does not match its checksum"));
        }
        if header.number != number {
            let found = header.number;
            return Err(Error::corrupt(path, 16, format!("this is the file numbered {found}")));
        }
        if version != FORMAT_VERSION {
            let text = format!(
                "{} has format version {version}, this library reads {FORMAT_VERSION}",
                path.display()
            );
            return Err(Error::new(ErrorKind::Incompatible, text));
        }
        Ok(header)
    }

    fn fields(bytes: &[u8]) -> Option<(Self, u32, u32)> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let mut rest = Reader::new(rest);
        let version = rest.u32()?;
        let crc = rest.u32()?;
        let header = Self { magic: *magic, number: rest.u64()?, size: rest.u64()? };
        Some((header, version, crc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FileHeader = FileHeader { magic: SEGMENT_MAGIC, number: 7, size: 4096 };

    fn decode(bytes: &[u8]) -> Result<FileHeader> {
        FileHeader::decode(bytes, Path::new("000007.log"), SEGMENT_MAGIC, 7)
    }

    #[test]
    fn a_header_has_the_documented_bytes_and_reads_back() {
        let bytes = HEADER.encode();
        assert_eq!(bytes.len() as u64, FILE_HEADER_BYTES);
        assert_eq!(&bytes[..8], b"LSMKVLOG");
        assert_eq!(bytes[8..12], [1, 0, 0, 0]);
        assert_eq!(bytes[16..24], [7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..32], [0, 0x10, 0, 0, 0, 0, 0, 0]);
        let covered = [&bytes[..12], &bytes[16..]].concat();
        assert_eq!(bytes[12..16], crc32fast::hash(&covered).to_le_bytes());
        assert_eq!(decode(&bytes).unwrap(), HEADER);
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_corrupt() {
        let good = HEADER.encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad).unwrap_err().kind(), ErrorKind::Corrupt, "bit {bit}");
        }
        for len in 0..good.len() {
            assert_eq!(decode(&good[..len]).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn a_header_of_another_file_is_corrupt_and_of_a_later_version_incompatible() {
        let other = FileHeader { number: 8, ..HEADER }.encode();
        assert_eq!(decode(&other).unwrap_err().kind(), ErrorKind::Corrupt);
        let manifest = FileHeader { magic: MANIFEST_MAGIC, ..HEADER }.encode();
        assert_eq!(decode(&manifest).unwrap_err().kind(), ErrorKind::Corrupt);
        let later = HEADER.encode_version(2);
        assert_eq!(decode(&later).unwrap_err().kind(), ErrorKind::Incompatible);
    }
}
