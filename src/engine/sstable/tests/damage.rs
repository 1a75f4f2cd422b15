//! Damaged and hostile files: an error or the right answer, never a wrong one.

use std::sync::Arc;

use super::support::{Entry, PLAIN, TestFile, delete, open, open_cached, put, write, write_as};
use crate::engine::cursor::Cursor;
use crate::engine::entry::MAX_SEQUENCE;
use crate::engine::hash::{HashSeed, HashedKey};
use crate::engine::sstable::format::{FOOTER_BYTES, Footer, Handle, checksum};
use crate::engine::sstable::{CacheFill, Table, TableCursor, WriterOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Compression;

fn small() -> Vec<Entry> {
    let mut entries = Vec::new();
    for i in 0..12 {
        let key = format!("key{i:02}");
        entries.push(put(key.as_bytes(), 30, &[b'v'; 20]));
        entries.push(delete(key.as_bytes(), 20));
        entries.push(put(key.as_bytes(), 10, key.as_bytes()));
    }
    entries
}

fn tiny_blocks(compression: Compression) -> WriterOptions {
    WriterOptions { block_bytes: 200, bloom_bits: 10, compression, hash_seed: HashSeed::NONE }
}

/// Reads everything there is to read, in every way. Whatever is answered before an error must be
/// true. Returns the errors.
fn read_all(table: &Arc<Table>, entries: &[Entry], what: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for (key, tag, value) in entries {
        match table.get(&HashedKey::new(key, HashSeed::NONE), tag.sequence(), CacheFill::Fill) {
            Ok(hit) => {
                let found = hit.as_ref().map(|hit| (hit.tag, hit.value()));
                assert_eq!(found, Some((*tag, &value[..])), "{what}: {key:?}");
            }
            Err(error) => errors.push(error),
        }
    }
    for fill in [CacheFill::Fill, CacheFill::Skip] {
        let mut cursor = table.cursor(fill);
        let start = cursor.seek_to_first();
        let walked = walk(&mut cursor, start, entries.iter(), TableCursor::next, what);
        errors.extend(walked.err());
        let start = cursor.seek_to_last();
        let walked = walk(&mut cursor, start, entries.iter().rev(), TableCursor::prev, what);
        errors.extend(walked.err());
    }
    errors
}

fn walk<'e>(
    cursor: &mut TableCursor,
    start: Result<()>,
    expected: impl Iterator<Item = &'e Entry>,
    step: impl Fn(&mut TableCursor) -> Result<()>,
    what: &str,
) -> Result<()> {
    start?;
    for (key, tag, value) in expected {
        assert!(cursor.valid(), "{what}: the end came before {key:?}");
        assert_eq!((cursor.key(), cursor.tag(), cursor.value()), (&key[..], *tag, &value[..]));
        step(cursor)?;
    }
    assert!(!cursor.valid(), "{what}: more than there is");
    Ok(())
}

/// Whether damage was noticed, by opening, by reading or by verifying; wrong answers panic.
fn must_not_lie(bytes: &[u8], entries: &[Entry], what: &str) -> bool {
    let Ok(table) = open(&TestFile::holding(bytes)) else { return true };
    let mut errors = read_all(&table, entries, what);
    errors.extend(table.verify().err());
    for error in &errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}");
        assert!(error.message().contains("000007.table"), "{error}");
    }
    !errors.is_empty()
}

#[test]
fn every_changed_byte_is_noticed() {
    let entries = small();
    for compression in [Compression::None, Compression::Lz4] {
        let good = write(&entries, tiny_blocks(compression), Vec::new()).0.bytes.lock().clone();
        assert!(!must_not_lie(&good, &entries, "undamaged"));
        for at in 0..good.len() {
            for flip in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                let noticed = must_not_lie(&bytes, &entries, &format!("byte {at} ^ {flip:#x}"));
                assert!(noticed, "byte {at} ^ {flip:#x} went unnoticed");
            }
        }
    }
}

#[test]
fn every_truncation_and_every_extension_is_refused() {
    let (file, summary) = write(&small(), tiny_blocks(Compression::None), Vec::new());
    let good = file.bytes.lock().clone();
    for length in 0..good.len() {
        let cut = TestFile::holding(&good[..length]);
        let told = open_cached(&cut, summary.file_size, 0).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Corrupt, "{length}");
        // Even if the manifest agreed with the cut file.
        assert_eq!(open(&cut).unwrap_err().kind(), ErrorKind::Corrupt, "{length}");
    }
    let longer = TestFile::holding(&[&good[..], &[0]].concat());
    assert_eq!(open_cached(&longer, summary.file_size, 0).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(open(&longer).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// A file cut while it is open.
#[test]
fn a_file_that_shrinks_later_fails_reads_as_damage() {
    let entries = small();
    let (file, summary) = write(&entries, tiny_blocks(Compression::None), Vec::new());
    // Nothing that open has read is kept.
    let table = open_cached(&file, summary.file_size, 0).unwrap();
    table.evict_resident();
    file.bytes.lock().truncate(100);
    let errors = read_all(&table, &entries, "cut");
    assert!(errors.len() > 4 && errors.iter().all(|e| e.kind() == ErrorKind::Corrupt));
}

/// Blocks of one size with the same keys, so that only the checksum can tell them apart.
#[test]
fn a_block_in_the_place_of_another_does_not_verify() {
    let entries: Vec<_> = (0..40u8).map(|i| put(&[b'k', i], 5, &[i; 60])).collect();
    let (file, _) = write(&entries, tiny_blocks(Compression::None), Vec::new());
    let table = open(&file).unwrap();
    let resident = table.resident().unwrap();
    let (a, b) = (resident.index.handle(0).unwrap(), resident.index.handle(1).unwrap());
    assert_eq!(a.length, b.length, "the test needs blocks of one size");
    let framed = usize::try_from(b.offset).unwrap();
    let mut swapped = file.bytes.lock().clone();
    let (first, rest) = swapped.split_at_mut(framed);
    first.swap_with_slice(&mut rest[..framed]);
    assert!(must_not_lie(&swapped, &entries, "swapped blocks"));
    let mut copied = file.bytes.lock().clone();
    copied.copy_within(..framed, framed);
    assert!(must_not_lie(&copied, &entries, "copied block"));
}

#[test]
fn a_block_or_a_whole_table_of_another_file_does_not_verify() {
    let entries = small();
    let other: Vec<_> =
        entries.iter().map(|(k, t, v)| (k.clone(), *t, vec![b'w'; v.len()])).collect();
    let options = tiny_blocks(Compression::None);
    let good = write(&entries, options, Vec::new()).0.bytes.lock().clone();
    let foreign = write_as(8, &other, options, Vec::new()).0.bytes.lock().clone();
    assert_eq!(open(&TestFile::holding(&foreign)).unwrap_err().kind(), ErrorKind::Corrupt);
    let mut mixed = good.clone();
    mixed[..150].copy_from_slice(&foreign[..150]);
    assert!(must_not_lie(&mixed, &entries, "the start of another file"));
    let end = {
        let table = open(&TestFile::holding(&good)).unwrap();
        let end = table.resident().unwrap().index.offset(1);
        usize::try_from(end).unwrap()
    };
    mixed = good;
    mixed[..end].copy_from_slice(&foreign[..end]);
    assert!(must_not_lie(&mixed, &entries, "a block of another file"));
}

/// Puts a part with a right checksum where `handle` says, as an attacker or a bug would.
fn forge(bytes: &mut Vec<u8>, cut_at: u64, parts: [&[u8]; 2]) {
    bytes.truncate(usize::try_from(cut_at).unwrap());
    let mut handles = Vec::new();
    for payload in parts {
        let handle =
            Handle { offset: bytes.len() as u64, length: u32::try_from(payload.len()).unwrap() };
        bytes.extend_from_slice(payload);
        bytes.push(0);
        let crc = checksum(&[payload], 0, 7, handle.offset);
        bytes.extend_from_slice(&crc.to_le_bytes());
        handles.push(handle);
    }
    let filter = Handle { offset: cut_at, length: 0 };
    let footer = Footer { index: handles[0], filter, properties: handles[1] };
    let at = bytes.len() as u64;
    bytes.extend_from_slice(&footer.encode(7, at, false));
}

#[test]
fn a_hostile_index_is_refused_without_allocating_what_it_claims() {
    let entries = small();
    let (file, _) = write(&entries, PLAIN, Vec::new());
    let table = open(&file).unwrap();
    let data_end = table.footer.data_end();
    let good = file.bytes.lock().clone();
    let properties = table.properties().encode();
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let one_block = |length: &[u8]| [&[1, 0, 0, 0, 0, 1, b'z', 0][..], length].concat();
    let hostile: [Vec<u8>; 5] = [
        [&[0xff; 4][..], &[0; 40]].concat(),
        [&[1, 0, 0, 0][..], &huge].concat(),
        [&[1, 0, 0, 0, 0][..], &huge].concat(),
        one_block(&huge),
        one_block(&[0xff; 9]),
    ];
    for index in hostile {
        let mut bytes = good.clone();
        forge(&mut bytes, data_end, [&index, &properties]);
        let table = open(&TestFile::holding(&bytes)).unwrap();
        let error = table
            .get(&HashedKey::new(b"key01", HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(
            table.cursor(CacheFill::Fill).seek_to_first().unwrap_err().kind(),
            ErrorKind::Corrupt
        );
    }
}

#[test]
fn a_hostile_footer_is_refused() {
    let (file, _) = write(&small(), PLAIN, Vec::new());
    let good = file.bytes.lock().clone();
    let at = good.len() - FOOTER_BYTES;
    let genuine = open(&file).unwrap().footer;
    let everything = Handle { offset: 0, length: u32::MAX };
    let beyond = Handle { offset: u64::MAX - 3, length: 10 };
    for wrong in [everything, beyond] {
        for footer in [
            Footer { index: wrong, ..genuine },
            Footer { filter: wrong, ..genuine },
            Footer { properties: wrong, ..genuine },
        ] {
            let bytes = [&good[..at], &footer.encode(7, at as u64, false)].concat();
            let error = open(&TestFile::holding(&bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }
}

/// A compressed block whose stored length is more than LZ4 can make of its bytes.
#[test]
fn a_compressed_block_cannot_claim_more_than_it_can_hold() {
    let entries = vec![put(b"k", 1, &[0; 4000])];
    let (file, _) = write(&entries, tiny_blocks(Compression::Lz4), Vec::new());
    let table = open(&file).unwrap();
    let handle = table.resident().unwrap().index.handle(0).unwrap();
    let length = handle.length as usize;
    let mut bytes = file.bytes.lock().clone();
    assert_eq!(bytes[length], 1, "the test needs a compressed block");
    for claim in [u32::MAX, 3_999, 5_000] {
        bytes[..4].copy_from_slice(&claim.to_le_bytes());
        let crc = checksum(&[&bytes[..length]], 1, 7, 0);
        bytes[length + 1..length + 5].copy_from_slice(&crc.to_le_bytes());
        assert!(must_not_lie(&bytes, &entries, "a forged length"));
    }
}

#[test]
fn an_io_error_is_no_damage_and_a_failed_cursor_stays_failed() {
    let entries: Vec<_> = (0..100u8).map(|i| put(&[i], 1, &[i; 50])).collect();
    for fill in [CacheFill::Fill, CacheFill::Skip] {
        let (file, summary) = write(&entries, tiny_blocks(Compression::None), Vec::new());
        let table = open_cached(&file, summary.file_size, 0).unwrap();
        let mut cursor = table.cursor(fill);
        cursor.seek_to_first().unwrap();
        *file.broken.lock() = true;
        let mut seen = 0;
        let error = loop {
            match cursor.next() {
                Ok(()) => seen += 1,
                Err(error) => break error,
            }
        };
        assert!(seen < 10 && error.kind() == ErrorKind::Io && error.os_errno() == 5);
        *file.broken.lock() = false;
        assert!(!cursor.valid());
        assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Io, "no end of data");
        assert_eq!(cursor.prev().unwrap_err().kind(), ErrorKind::Io, "no start of data");
        cursor.seek(&[3], entries[3].1).unwrap();
        assert_eq!(cursor.key(), [3]);
    }
}
