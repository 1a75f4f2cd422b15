//! The cursors of scans, as a clean close saves them: the record `cursors` of the reserved space.
//!
//! ```text
//! record  = format u8 (1) | entry *, oldest first
//! entry   = number u64 LE | scope u64 LE | position (varint length, bytes)
//! ```

use crate::io::codec::{Reader, put_bytes, put_u64};

const FORMAT: u8 = 1;

/// The position of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number that the client was given.
    pub(crate) number: u64,
    /// A hash of what is being scanned.
    pub(crate) scope: u64,
    /// The bytes at which the scan continues.
    pub(crate) position: Vec<u8>,
}

/// Encodes the record of these cursors.
pub(crate) fn encode<'a>(cursors: impl Iterator<Item = &'a Cursor>) -> Vec<u8> {
    let mut record = vec![FORMAT];
    for cursor in cursors {
        put_u64(&mut record, cursor.number);
        put_u64(&mut record, cursor.scope);
        put_bytes(&mut record, &cursor.position);
    }
    record
}

/// Decodes the cursors in a record. Those that cannot be read are left out: their scans start
/// again.
pub(crate) fn decode(record: &[u8]) -> Vec<Cursor> {
    let mut reader = Reader::new(record);
    let mut cursors = Vec::new();
    if reader.u8() != Some(FORMAT) {
        return cursors;
    }
    while let (Some(number), Some(scope), Some(position)) =
        (reader.u64(), reader.u64(), reader.bytes())
    {
        cursors.push(Cursor { number, scope, position: position.to_vec() });
    }
    cursors
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_stands_as_drawn() {
        let cursor = Cursor { number: 0x0102, scope: 3, position: b"ab".to_vec() };
        let expected = [1, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b'];
        assert_eq!(encode([&cursor].into_iter()), expected);
        assert_eq!(decode(&expected), [cursor]);
        assert_eq!(decode(&[2, 0, 0]), [], "a later format");
    }

    proptest! {
        #[test]
        fn cursors_read_back_and_a_cut_leaves_the_first_ones(
            entries: Vec<(u64, u64, Vec<u8>)>, cut in 0usize..200,
        ) {
            let make = |(number, scope, position)| Cursor { number, scope, position };
            let cursors: Vec<_> = entries.into_iter().map(make).collect();
            let record = encode(cursors.iter());
            prop_assert_eq!(&decode(&record), &cursors);
            let cut = decode(&record[..cut.min(record.len())]);
            prop_assert_eq!(&cut[..], &cursors[..cut.len()]);
        }

        #[test]
        fn arbitrary_bytes_never_panic(record: Vec<u8>) {
            let _ = decode(&record);
        }
    }
}
