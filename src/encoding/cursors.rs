//! What a clean close saves of the cursors of scans: the record `cursors` of the reserved space.
//!
//! ```text
//! record  = format u8 (2) | landmark *, least recently used first
//! landmark = id u32 LE | bytes (varint length, bytes)
//! ```
//!
//! Format 1 listed positions of scans by number. Those numbers are no longer given.

use crate::io::codec::{Reader, put_bytes, put_u32};

const FORMAT: u8 = 2;

/// Encodes the record of these landmarks.
pub(crate) fn encode<'a>(landmarks: impl Iterator<Item = (u32, &'a [u8])>) -> Vec<u8> {
    let mut record = vec![FORMAT];
    for (id, bytes) in landmarks {
        put_u32(&mut record, id);
        put_bytes(&mut record, bytes);
    }
    record
}

/// Decodes the landmarks in a record. Those that cannot be read are left out: their scans start
/// again.
pub(crate) fn decode(record: &[u8]) -> Vec<(u32, &[u8])> {
    let mut reader = Reader::new(record);
    let mut landmarks = Vec::new();
    if reader.u8() != Some(FORMAT) {
        return landmarks;
    }
    while let (Some(id), Some(bytes)) = (reader.u32(), reader.bytes()) {
        landmarks.push((id, bytes));
    }
    landmarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_stands_as_drawn() {
        let expected = [2, 2, 1, 0, 0, 2, b'a', b'b'];
        assert_eq!(encode([(0x0102, &b"ab"[..])].into_iter()), expected);
        assert_eq!(decode(&expected), [(0x0102, &b"ab"[..])]);
        let earlier = [1, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b'];
        assert_eq!(decode(&earlier), [], "format 1");
        assert_eq!(decode(&[3, 0, 0]), [], "a later format");
    }

    proptest! {
        #[test]
        fn landmarks_read_back_and_a_cut_leaves_the_first_ones(
            landmarks: Vec<(u32, Vec<u8>)>, cut in 0usize..200,
        ) {
            let landmarks: Vec<_> = landmarks.iter().map(|(id, bytes)| (*id, &bytes[..])).collect();
            let record = encode(landmarks.iter().copied());
            prop_assert_eq!(&decode(&record), &landmarks);
            let cut = decode(&record[..cut.min(record.len())]);
            prop_assert_eq!(&cut[..], &landmarks[..cut.len()]);
        }

        #[test]
        fn arbitrary_bytes_never_panic(record: Vec<u8>) {
            let _ = decode(&record);
        }
    }
}
