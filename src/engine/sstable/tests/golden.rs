//! A table of format 1, kept in tests/testdata, parsed byte by byte as docs/FORMAT.md says, by
//! code that shares nothing with the reader. The expected values are the entries the file was
//! made of and arithmetic on them.

use super::support::{Entry, TestFile, delete, open, put, write};
use crate::engine::cursor::Cursor;
use crate::engine::entry::{MAX_SEQUENCE, Tag};
use crate::engine::hash::{HashSeed, HashedKey, stable_hash};
use crate::engine::sstable::{CacheFill, Collector, WriterOptions};
use crate::options::Compression;

const GOLDEN: &[u8] = include_bytes!("../../../../tests/testdata/format-1.table");
const NUMBER: u64 = 7;

/// What the golden table holds: one list a data block.
fn golden_blocks() -> [Vec<Entry>; 4] {
    [
        vec![put(b"", 9, b"empty key"), put(b"apple", 12, b"red"), delete(b"apple", 4)],
        vec![put(b"apricot", 5, &[b'x'; 200])],
        vec![put(b"banana", 7, &[b'0'; 40])],
        vec![put(b"banana", 6, b"0123456789abcdefghijklmnopqrstuvwxyzABCD")],
    ]
}

/// The property `colour = yes` in the golden table.
struct Colour;

impl Collector for Colour {
    fn add(&mut self, _key: &[u8], _tag: Tag, _value: &[u8]) {}

    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(b"colour".to_vec(), b"yes".to_vec())]
    }
}

/// Takes bytes off the front, panicking when there are too few.
struct Parser<'a>(&'a [u8]);

impl<'a> Parser<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
    }

    /// All varints of the golden table that are below 128 or of two bytes.
    fn varint(&mut self) -> u64 {
        match self.number(1) {
            low if low < 128 => low,
            low => low - 128 + 128 * self.number(1),
        }
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = self.varint();
        self.take(usize::try_from(length).unwrap())
    }
}

/// The CRC-32 of zlib, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &b| (0..8).fold(crc ^ u32::from(b), step))
}

/// Checks the trailer of the block at `offset`; gives its compression type and payload.
fn framed(offset: u64, length: u64) -> (u8, &'static [u8]) {
    let mut parser = Parser(&GOLDEN[usize::try_from(offset).unwrap()..]);
    let payload = parser.take(usize::try_from(length).unwrap());
    let kind = parser.take(1)[0];
    let place = [NUMBER.to_le_bytes(), offset.to_le_bytes()].concat();
    let expected = crc32(&[payload, &[kind], &place].concat());
    assert_eq!(parser.number(4), u64::from(expected), "checksum of the block at {offset}");
    (kind, payload)
}

struct Parts {
    index: (u64, u64),
    filter: (u64, u64),
    properties: (u64, u64),
}

fn parse_footer() -> Parts {
    let at = GOLDEN.len() - 60;
    let mut footer = Parser(&GOLDEN[at..]);
    let mut handle = || (footer.number(8), footer.number(4));
    let parts = Parts { index: handle(), filter: handle(), properties: handle() };
    assert_eq!(footer.number(8), NUMBER);
    assert_eq!(footer.number(4), 1, "version");
    let place = [NUMBER.to_le_bytes(), (at as u64).to_le_bytes()].concat();
    let expected = crc32(&[&GOLDEN[at..at + 48], &[0], &place].concat());
    assert_eq!(footer.number(4), u64::from(expected), "checksum of the footer");
    assert_eq!(footer.0, b"lsmkvtab");
    assert_eq!(parts.properties.0 + parts.properties.1 + 5, at as u64);
    assert_eq!(parts.index.0 + parts.index.1 + 5, parts.properties.0);
    assert_eq!(parts.filter.0 + parts.filter.1 + 5, parts.index.0);
    parts
}

fn check_data_block(payload: &[u8], entries: &[Entry]) {
    let mut parser = Parser(payload);
    assert_eq!(parser.number(4), entries.len() as u64, "count");
    let mut keys: Vec<_> = entries.iter().map(|e| &e.0).collect();
    keys.dedup();
    let buckets = parser.number(2);
    assert_eq!(buckets, keys.len() as u64 * 4 / 3 + 1);
    assert_eq!((parser.number(1), parser.number(1)), (0, 2), "group shift, offset width");
    let mut expected = vec![255u8; usize::try_from(buckets).unwrap()];
    for key in keys {
        let low = stable_hash(key) % (1 << 32);
        let slot = &mut expected[usize::try_from(low * buckets / (1 << 32)).unwrap()];
        let first = u8::try_from(entries.iter().position(|e| &e.0 == key).unwrap()).unwrap();
        *slot = if *slot == 255 { first } else { 254 };
    }
    assert_eq!(parser.take(expected.len()), expected, "buckets");
    let offsets: Vec<_> = entries.iter().map(|_| parser.number(2)).collect();
    let area = parser.0;
    for (i, (key, tag, value)) in entries.iter().enumerate() {
        assert_eq!(offsets[i], (area.len() - parser.0.len()) as u64, "offset of entry {i}");
        let anchor = &entries[0].0;
        let same = anchor.iter().zip(key).take_while(|(a, b)| a == b).count();
        let shared = if i == 0 { 0 } else { same };
        assert_eq!(parser.varint(), shared as u64);
        assert_eq!(parser.varint(), (key.len() - shared) as u64);
        assert_eq!(parser.number(8), tag.sequence() * 256 + u64::from(!tag.is_delete()));
        assert_eq!(parser.take(key.len() - shared), &key[shared..]);
        assert_eq!(parser.take(value.len()), value);
    }
    assert!(parser.0.is_empty());
}

/// Checks the index and gives the blocks' lengths.
fn parse_index(payload: &[u8]) -> [u64; 4] {
    let mut parser = Parser(payload);
    assert_eq!(parser.number(4), 4, "blocks");
    assert_eq!(parser.bytes(), b"", "common prefix");
    let mut lengths = [0; 4];
    // "apple" <= "apq" < "apricot"; "apricot" <= "b" < "banana"; one key in two blocks; the end.
    let separators: [(&[u8], Option<u64>); 4] =
        [(b"apq", None), (b"b", None), (b"banana", Some(7 * 256 + 1)), (b"banana", None)];
    for (length, (key, tag)) in lengths.iter_mut().zip(separators) {
        assert_eq!(parser.bytes(), key);
        assert_eq!(parser.number(1), u64::from(tag.is_some()));
        assert_eq!(tag.map(|_| parser.number(8)), tag);
        *length = parser.varint();
    }
    assert!(parser.0.is_empty());
    lengths
}

fn check_filter(payload: &[u8]) {
    // Four distinct keys of ten bits need one line; 10 * 0.62 is six bits a key.
    assert_eq!((payload.len(), payload[64]), (65, 6));
    let mut expected = [0u8; 64];
    for key in [&b""[..], b"apple", b"apricot", b"banana"] {
        let mut mixed = stable_hash(key);
        for _ in 0..6 {
            mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bit = usize::try_from(mixed >> 55).unwrap();
            expected[bit / 8] |= 1 << (bit % 8);
        }
    }
    assert_eq!(payload[..64], expected);
}

fn check_properties(payload: &[u8]) {
    let mut parser = Parser(payload);
    let all: Vec<_> = golden_blocks().concat();
    assert_eq!(parser.varint(), 6, "entries");
    assert_eq!(parser.varint(), 1, "tombstones");
    assert_eq!(parser.varint(), all.iter().map(|e| e.0.len() as u64).sum(), "key bytes");
    assert_eq!(parser.varint(), all.iter().map(|e| e.2.len() as u64).sum(), "value bytes");
    assert_eq!((parser.varint(), parser.varint()), (4, 12), "sequences");
    assert_eq!(parser.varint(), 4, "blocks");
    assert_eq!((parser.bytes(), parser.bytes()), (&b""[..], &b"banana"[..]));
    assert_eq!(parser.varint(), 1, "collected");
    assert_eq!((parser.bytes(), parser.bytes()), (&b"colour"[..], &b"yes"[..]));
    assert!(parser.0.is_empty());
}

#[test]
fn the_golden_table_is_what_the_format_says_byte_by_byte() {
    let parts = parse_footer();
    let (kind, index) = framed(parts.index.0, parts.index.1);
    assert_eq!(kind, 0);
    let mut offset = 0;
    for (i, (length, entries)) in parse_index(index).into_iter().zip(golden_blocks()).enumerate() {
        let (kind, payload) = framed(offset, length);
        assert_eq!(kind, u8::from(matches!(i, 1 | 2)), "compression of block {i}");
        if kind == 1 {
            let (original, packed) = payload.split_at(4);
            let original = Parser(original).number(4);
            let size = usize::try_from(original).unwrap();
            check_data_block(&lz4_flex::block::decompress(packed, size).unwrap(), &entries);
        } else {
            check_data_block(payload, &entries);
        }
        offset += length + 5;
    }
    assert_eq!(offset, parts.filter.0, "data blocks fill the file up to the filter");
    let (kind, filter) = framed(parts.filter.0, parts.filter.1);
    assert_eq!(kind, 0);
    check_filter(filter);
    let (kind, properties) = framed(parts.properties.0, parts.properties.1);
    assert_eq!(kind, 0);
    check_properties(properties);
}

#[test]
fn the_golden_table_opens_and_reads() {
    let table = open(&TestFile::holding(GOLDEN)).unwrap();
    table.verify().unwrap();
    let mut cursor = table.cursor(CacheFill::Fill);
    cursor.seek_to_first().unwrap();
    for (key, tag, value) in golden_blocks().concat() {
        assert_eq!((cursor.key(), cursor.tag(), cursor.value()), (&key[..], tag, &value[..]));
        cursor.next().unwrap();
        let hit = table
            .get(&HashedKey::new(&key, HashSeed::NONE), tag.sequence(), CacheFill::Fill)
            .unwrap()
            .unwrap();
        assert_eq!((hit.tag, hit.value()), (tag, &value[..]));
    }
    assert!(!cursor.valid());
    assert!(
        table
            .get(&HashedKey::new(b"banana", HashSeed::NONE), 5, CacheFill::Fill)
            .unwrap()
            .is_none()
    );
    assert!(
        table
            .get(&HashedKey::new(b"cherry", HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill)
            .unwrap()
            .is_none()
    );
    assert_eq!(table.properties().collected(b"colour"), Some(&b"yes"[..]));
}

/// A new encoder of LZ4 may pack blocks 1 and 2 differently: then, and only then, this test may
/// compare all but those.
#[test]
fn the_writer_still_writes_format_1() {
    let options = WriterOptions {
        block_bytes: 100,
        bloom_bits: 10,
        compression: Compression::Lz4,
        hash_seed: HashSeed::NONE,
    };
    let entries = golden_blocks().concat();
    let (file, _) = write(&entries, options, vec![Box::new(Colour)]);
    let table = open(&file).unwrap();
    table.verify().unwrap();
    assert_eq!(*file.bytes.lock(), GOLDEN);
}
