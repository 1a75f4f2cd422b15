//! Dumps built here byte by byte: encodings of old versions that no current server writes, and
//! dumps with false lengths. Other tests read the dumps of a real server.

#![expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]

use bytes::Bytes;
use lsmkv::rdb::checksum::update;

use super::RdbSource;
use crate::failure::Failure;
use crate::transfer::{Body, Chunk, Source};

mod newer;
mod sweep;

/// The time at which these dumps are read.
const NOW: u64 = 1_800_000_000_000;

/// A dump with this content and its checksum.
fn dump(version: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = format!("REDIS{version:04}").into_bytes();
    bytes.extend_from_slice(content);
    bytes.push(0xff);
    if version >= 5 {
        bytes.extend_from_slice(&update(0, &bytes).to_le_bytes());
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<Chunk>, Failure> {
    let mut source = RdbSource::new(bytes, NOW)?;
    let mut chunks = Vec::new();
    while let Some(chunk) = source.next()? {
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// Reads a dump with one key that has these bytes after its type and name.
fn value(kind: u8, stored: &[u8]) -> Body {
    let content = [&[kind, 1, b'k'], stored].concat();
    let chunks = read(&dump(9, &content)).unwrap();
    assert_eq!(chunks.len(), 1);
    assert!(chunks[0].first && chunks[0].last);
    chunks[0].body.clone()
}

fn all(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect()
}

/// A string of less than 64 bytes.
fn short(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 64);
    [&[bytes.len() as u8], bytes].concat()
}

/// A ziplist of these entries; each lacks the length of the entry before it.
fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        body.push(0);
        body.extend_from_slice(entry);
    }
    let total = 10 + body.len() as u32 + 1;
    let mut bytes = total.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes.push(0xff);
    bytes
}

#[test]
fn strings_come_as_bytes_numbers_and_compressed() {
    let text = |bytes: &[u8]| Body::whole_string(Bytes::copy_from_slice(bytes));
    assert_eq!(value(0, b"\x03abc"), text(b"abc"));
    assert_eq!(value(0, &[0xc0, 0xfe]), text(b"-2"));
    assert_eq!(value(0, &[0xc1, 0x39, 0x30]), text(b"12345"));
    assert_eq!(value(0, &[0xc2, 0x15, 0xcd, 0x5b, 0x07]), text(b"123456789"));
    // LZF: 4 bytes that expand to 4 `a`s.
    assert_eq!(value(0, &[0xc3, 4, 4, 0, b'a', 0x20, 0]), text(b"aaaa"));
    // Lengths of 14, 32 and 64 bits.
    assert_eq!(value(0, &[0x40, 2, b'h', b'i']), text(b"hi"));
    assert_eq!(value(0, &[0x80, 0, 0, 0, 2, b'h', b'i']), text(b"hi"));
    assert_eq!(value(0, &[0x81, 0, 0, 0, 0, 0, 0, 0, 2, b'h', b'i']), text(b"hi"));
}

#[test]
fn plain_collections_of_old_versions() {
    assert_eq!(value(1, b"\x02\x01a\x01b"), Body::List(all(&["a", "b"])));
    assert_eq!(value(2, b"\x01\x01a"), Body::Set(all(&["a"])));
    let pairs = vec![(Bytes::from_static(b"f"), Bytes::from_static(b"v"))];
    assert_eq!(value(4, b"\x01\x01f\x01v"), Body::Hash(pairs));
    let scored = |score: f64| Body::ZSet(vec![(Bytes::from_static(b"m"), score)]);
    assert_eq!(value(3, b"\x01\x01m\x031.5"), scored(1.5));
    assert_eq!(value(3, b"\x01\x01m\xfe"), scored(f64::INFINITY));
    assert_eq!(value(3, b"\x01\x01m\xff"), scored(f64::NEG_INFINITY));
    let binary = [&b"\x01\x01m"[..], &(-0.1f64).to_le_bytes()].concat();
    assert_eq!(value(5, &binary), scored(-0.1));
}

#[test]
fn every_entry_of_a_ziplist_is_read() {
    let list = ziplist(&[
        b"\x02hi",
        b"\x40\x03abc",
        b"\x80\x00\x00\x00\x01x",
        &[0xc0, 0x39, 0x30],
        &[0xd0, 0x15, 0xcd, 0x5b, 0x07],
        &[0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0xf0, 0xff, 0xff, 0xff],
        &[0xfe, 0x80],
        &[0xf1],
        &[0xfd],
    ]);
    let expected =
        ["hi", "abc", "x", "12345", "123456789", "9223372036854775807", "-1", "-128", "0", "12"];
    let stored = [&[0x40, list.len() as u8][..], &list].concat();
    assert_eq!(value(10, &stored), Body::List(all(&expected)));
    // A quicklist of two such nodes.
    let node = short(&ziplist(&[b"\x01a"]));
    assert_eq!(value(14, &[&[2][..], &node, &node].concat()), Body::List(all(&["a", "a"])));
    let pair = short(&ziplist(&[b"\x01m", &[0xf3]]));
    assert_eq!(value(12, &pair), Body::ZSet(vec![(Bytes::from_static(b"m"), 2.0)]));
    let hash = vec![(Bytes::from_static(b"m"), Bytes::from_static(b"2"))];
    assert_eq!(value(13, &pair), Body::Hash(hash));
}

#[test]
fn sets_of_integers_of_each_width() {
    for (width, numbers) in [(2u32, &[-1i64, 300][..]), (4, &[-70_000, 5]), (8, &[i64::MIN, 0])] {
        let mut set = width.to_le_bytes().to_vec();
        set.extend_from_slice(&2u32.to_le_bytes());
        for number in numbers {
            set.extend_from_slice(&number.to_le_bytes()[..width as usize]);
        }
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(value(11, &short(&set)), Body::Set(all(&texts)), "{width}");
    }
}

#[test]
fn hashes_of_the_oldest_form() {
    let map = b"\x02\x03foo\x03\x00bar\x01x\x02\x03yz???\xff";
    let pair = |a: &'static str, b: &'static str| (Bytes::from(a), Bytes::from(b));
    assert_eq!(value(9, &short(map)), Body::Hash(vec![pair("foo", "bar"), pair("x", "yz")]));
}

#[test]
fn expiry_and_database_belong_to_the_keys_that_follow() {
    let mut content = vec![0xfe, 3, 0xfb, 2, 1];
    content.extend_from_slice(&[0xfd, 10, 0, 0, 0, 0, 1, b'a', 1, b'x']);
    content.extend_from_slice(&[0, 1, b'b', 1, b'y']);
    content.push(0xfc);
    content.extend_from_slice(&1_700_000_000_123u64.to_le_bytes());
    content.extend_from_slice(&[0xf8, 5, 0xf9, 7, 0, 1, b'c', 1, b'z']);
    let chunks = read(&dump(9, &content)).unwrap();
    let found: Vec<_> = chunks.iter().map(|it| (it.database, it.expire_ms)).collect();
    assert_eq!(found, [(3, 10_000), (3, 0), (3, 1_700_000_000_123)]);
}

#[test]
fn what_has_no_place_here_is_skipped_and_counted() {
    // A key of a module, its data, a function; then a string.
    let mut content = vec![7, 1, b'm', 0x42, 0, 2, 9, 5, 1, b'x', 0];
    content.extend_from_slice(&[0xf7, 0x42, 0, 2, 1, 0]);
    content.extend_from_slice(&[0xf5, 2, b'f', b'n']);
    content.extend_from_slice(&[0, 1, b'k', 1, b'v']);
    let bytes = dump(11, &content);
    let mut source = RdbSource::new(&bytes[..], NOW).unwrap();
    assert_eq!(source.next().unwrap().unwrap().key, "k");
    assert_eq!(source.next().unwrap(), None);
    let skipped: Vec<_> = source.skipped().iter().map(|(what, count)| (*what, *count)).collect();
    assert_eq!(skipped, [("functions", 1), ("keys of modules", 1), ("modules' own data", 1)]);
}

#[test]
fn a_big_collection_comes_in_parts() {
    let mut content = vec![2, 1, b'k', 0x80];
    content.extend_from_slice(&2000u32.to_be_bytes());
    for n in 0..2000 {
        content.extend_from_slice(&short(format!("member {n}").as_bytes()));
    }
    let chunks = read(&dump(9, &content)).unwrap();
    assert!(chunks.len() > 2);
    assert_eq!(chunks.iter().map(|chunk| chunk.body.len()).sum::<usize>(), 2000);
    let marks: Vec<_> = chunks.iter().map(|chunk| (chunk.first, chunk.last)).collect();
    assert_eq!(marks.first(), Some(&(true, false)));
    assert_eq!(marks.last(), Some(&(false, true)));
    assert!(marks[1..marks.len() - 1].iter().all(|mark| *mark == (false, false)));
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed_or_harmless() {
    let listpack = b"\x0b\x00\x00\x00\x02\x00\x81f\x02\x07\x01\xff";
    let mut content = vec![0xfe, 0, 17, 1, b'z'];
    let mut packed = listpack.to_vec();
    packed[0] = packed.len() as u8;
    content.extend_from_slice(&short(&packed));
    content.extend_from_slice(&[0, 1, b'k', 3, b'a', b'b', b'c']);
    let good = dump(9, &content);
    assert_eq!(read(&good).unwrap().len(), 2);
    for bit in 72..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&bad).is_err(), "bit {bit}");
    }
    for length in 0..good.len() {
        assert!(read(&good[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_dump_without_checksum_and_of_old_versions_is_read_and_newer_ones_are_not() {
    let content = [0, 1, b'k', 1, b'v'];
    assert_eq!(read(&dump(3, &content)).unwrap().len(), 1);
    let mut bytes = dump(9, &content);
    let end = bytes.len();
    bytes[end - 8..].fill(0);
    assert_eq!(read(&bytes).unwrap().len(), 1);
    assert!(read(&dump(99, &content)).unwrap_err().to_string().contains("version 99"));
    assert!(read(b"something").is_err());
}
