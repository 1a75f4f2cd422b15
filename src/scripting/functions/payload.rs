//! Libraries as bytes: the payload of FUNCTION DUMP, which is also how the store keeps them.
//!
//! ```text
//! each library: 0xF5, length, code
//! then:         version u16 little-endian, CRC-64 of all before it u64 little-endian
//! ```
//!
//! Lengths and strings are those of Redis's dump files: Redis may compress a string, this library
//! does not.

use crate::error::{Error, ErrorKind, Result};
use crate::rdb::{checksum, lzf};

/// The mark before a library.
const LIBRARY: u8 = 0xF5;
/// The version of dump files that Redis 7.0 writes.
const VERSION: u16 = 10;
const FOOTER: usize = 10;

fn wrong() -> Error {
    Error::new(ErrorKind::Invalid, "ERR DUMP payload version or checksum are wrong")
}

/// Encodes libraries.
pub(super) fn encode<'c>(codes: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(LIBRARY);
        match u32::try_from(code.len()).unwrap_or(u32::MAX) {
            length @ 0..64 => out.extend(length.to_be_bytes().last()),
            length @ 64..0x4000 => {
                let [_, _, high, low] = length.to_be_bytes();
                out.extend([0x40 | high, low]);
            }
            length => {
                out.push(0x80);
                out.extend(length.to_be_bytes());
            }
        }
        out.extend_from_slice(code);
    }
    out.extend(VERSION.to_le_bytes());
    let crc = checksum::update(0, &out);
    out.extend(crc.to_le_bytes());
    out
}

/// Decodes libraries.
pub(super) fn decode(payload: &[u8]) -> Result<Vec<Vec<u8>>> {
    let body = payload.len().checked_sub(FOOTER).ok_or_else(wrong)?;
    let (signed, crc) = payload.split_at_checked(body + 2).ok_or_else(wrong)?;
    let (mut rest, version) = signed.split_at_checked(body).ok_or_else(wrong)?;
    let version = version.iter().rev().fold(0, |value, byte| value << 8 | u16::from(*byte));
    if version > VERSION || crc != checksum::update(0, signed).to_le_bytes() {
        return Err(wrong());
    }
    let malformed = || Error::new(ErrorKind::Invalid, "ERR failed loading functions");
    let mut codes = Vec::new();
    while let Some((mark, after)) = rest.split_first() {
        if *mark != LIBRARY {
            return Err(Error::new(ErrorKind::Invalid, "ERR given type is not a function"));
        }
        let (code, after) = string(after).ok_or_else(malformed)?;
        codes.push(code);
        rest = after;
    }
    Ok(codes)
}

/// Reads a length and whether it is the code of an encoding instead.
fn length(bytes: &[u8]) -> Option<(usize, bool, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let low = usize::from(first & 0x3F);
    Some(match first >> 6 {
        0 => (low, false, rest),
        1 => {
            let (second, rest) = rest.split_first()?;
            (low << 8 | usize::from(*second), false, rest)
        }
        2 if low == 0 => {
            let (bytes, rest) = rest.split_at_checked(4)?;
            (bytes.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)), false, rest)
        }
        3 => (low, true, rest),
        _ => return None,
    })
}

fn string(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    /// The code of a compressed string.
    const COMPRESSED: usize = 3;
    match length(bytes)? {
        (length, false, rest) => {
            let (text, rest) = rest.split_at_checked(length)?;
            Some((text.to_vec(), rest))
        }
        (COMPRESSED, true, rest) => {
            let (packed, _, rest) = length(rest)?;
            let (full, _, rest) = length(rest)?;
            let (text, rest) = rest.split_at_checked(packed)?;
            Some((lzf::unpack(text, u64::try_from(full).ok()?)?, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_all_lengths_come_back() {
        let codes: Vec<Vec<u8>> =
            [0, 1, 63, 64, 16383, 16384, 70000].map(|length| vec![b'c'; length]).into();
        let payload = encode(codes.iter().map(Vec::as_slice));
        assert_eq!(decode(&payload).unwrap(), codes);
        assert_eq!(decode(&encode([].into_iter())).unwrap(), [[0u8; 0]; 0]);
    }

    #[test]
    fn a_compressed_string_is_read() {
        let compressed = b"\xc3\x06\x06\x02abc\x20\x00 rest";
        assert_eq!(string(compressed), Some((b"abcccc".to_vec(), &b" rest"[..])));
        let of_another_length = b"\xc3\x06\x05\x02abc\x20\x00";
        assert_eq!(string(of_another_length), None);
    }

    #[test]
    fn damage_is_refused() {
        let payload = encode([&b"code"[..]].into_iter());
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged).is_err(), "{at}");
            assert!(decode(&payload[..at]).is_err(), "{at}");
        }
        assert!(decode(b"").is_err());
    }
}
