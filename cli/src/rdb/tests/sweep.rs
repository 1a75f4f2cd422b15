//! A dump with a key of every encoding, damaged at random. The reader accepts it, or refuses it
//! with a reason, and never panics. `tests/tools/damaged_dumps.rs` tests the memory it takes.

use lsmkv::io::splitmix::SplitMix64;

use super::newer::{
    Entry, HASH_TIMED, HASH_TIMED_PACKED, HASH_TIMED_PACKED_RC, HASH_TIMED_RC, SET_LISTPACK,
    STREAM, STREAM_2, STREAM_3, listpack, long, stream, timed_hash, wide,
};
use super::{NOW, dump, read, short, ziplist};
use crate::rdb::RdbSource;
use crate::rdb::members::OpenKey;
use crate::transfer::{CHUNK_MEMBERS, Source as _};

/// Keys of every supported type, one after the other.
pub(super) fn every_form() -> Vec<u8> {
    let pack = listpack(&[Entry::Text("m"), Entry::Number(1)]);
    let list = ziplist(&[b"\x01m", &[0xf2]]);
    let intset = [&2u32.to_le_bytes()[..], &1u32.to_le_bytes(), &5i16.to_le_bytes()].concat();
    let stored: Vec<(u8, Vec<u8>)> = vec![
        (0, short(b"value")),
        (0, vec![0xc3, 4, 4, 0, b'a', 0x20, 0]),
        (1, b"\x02\x01a\x01b".to_vec()),
        (2, b"\x01\x01a".to_vec()),
        (3, b"\x01\x01m\x031.5".to_vec()),
        (4, b"\x01\x01f\x01v".to_vec()),
        (5, [&b"\x01\x01m"[..], &0.5f64.to_le_bytes()].concat()),
        (7, vec![0x42, 0, 2, 9, 5, 1, b'x', 0]),
        (9, short(b"\x01\x03foo\x03\x00bar\xff")),
        (10, short(&list)),
        (11, short(&intset)),
        (12, short(&list)),
        (13, short(&list)),
        (14, [&[1][..], &short(&list)].concat()),
        (16, short(&pack)),
        (17, short(&pack)),
        (18, [&[2, 1][..], &short(b"plain"), &[2], &short(&pack)].concat()),
        (SET_LISTPACK, short(&pack)),
        (STREAM, stream(STREAM)),
        (STREAM_2, stream(STREAM_2)),
        (STREAM_3, stream(STREAM_3)),
        (HASH_TIMED_RC, timed_hash(HASH_TIMED_RC)),
        (HASH_TIMED_PACKED_RC, timed_hash(HASH_TIMED_PACKED_RC)),
        (HASH_TIMED, timed_hash(HASH_TIMED)),
        (HASH_TIMED_PACKED, timed_hash(HASH_TIMED_PACKED)),
    ];
    let mut content = vec![0xfa, 1, b'a', 1, b'b', 0xfe, 0, 0xfb, 25, 2, 0xf4, 1, 2, 3];
    content.extend([0xf5, 2, b'f', b'n', 0xf7, 0x42, 0, 2, 1, 0]);
    for (kind, stored) in stored {
        content.extend([0xfc, 1, 2, 3, 4, 5, 6, 7, 0, 0xf8, 5, 0xf9, 7]);
        content.extend([&[kind][..], &short(format!("key {kind}").as_bytes()), &stored].concat());
    }
    content
}

/// Changes some bytes, cuts, duplicates a part, or inserts a length that is too large.
fn damage(bytes: &mut Vec<u8>, random: &mut SplitMix64) {
    const LENGTHS: [&[u8]; 5] = [
        &[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x81, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x80, 0xff, 0xff, 0xff, 0xff],
        &[0x80, 0x1f, 0xff, 0xff, 0xff],
        &[0xc3, 0x05, 0x80, 0x1f, 0xff, 0xff, 0xff],
    ];
    let at = |random: &mut SplitMix64, bytes: &Vec<u8>| random.below(bytes.len() as u64) as usize;
    for _ in 0..=random.below(3) {
        let place = at(random, bytes);
        match random.below(6) {
            0 | 1 => bytes[place] ^= 1 << random.below(8),
            2 => bytes[place] = random.next_u64() as u8,
            3 => bytes.truncate(place.max(1)),
            4 => {
                let length = LENGTHS[random.below(5) as usize];
                let end = (place + random.below(3) as usize).min(bytes.len());
                bytes.splice(place..end, length.iter().copied());
            }
            _ => {
                let end = (place + random.below(40) as usize).min(bytes.len());
                let part = bytes[place..end].to_vec();
                bytes.splice(place..place, part);
            }
        }
    }
}

#[test]
fn the_undamaged_dump_is_read_to_its_end() {
    let chunks = read(&dump(12, &every_form())).unwrap();
    // All but the key of a module and three streams.
    assert_eq!(chunks.len(), 25 - 4);
}

#[test]
fn numbers_of_keys_that_are_promised_may_be_any() {
    let many = [&[0xfb][..], &wide(u64::MAX), &wide(u64::MAX)].concat();
    let content = [&many[..], &many, &[0, 1, b'k', 1, b'v']].concat();
    assert_eq!(read(&dump(12, &content)).unwrap().len(), 1);
}

#[test]
fn a_pack_that_unfolds_to_many_members_comes_in_parts() {
    // Two bytes each in the file; some 40 each in memory if all were read at once.
    let count = 300_000;
    let elements = [7u8, 1].repeat(count);
    let mut pack = (elements.len() as u32 + 7).to_le_bytes().to_vec();
    pack.extend_from_slice(&[0xff, 0xff]);
    pack.extend_from_slice(&elements);
    pack.push(0xff);
    let content = [&[18, 1, b'k', 1, 2][..], &long(&pack)].concat();
    let bytes = dump(12, &content);
    let mut source = RdbSource::new(&bytes[..], NOW).unwrap();
    let mut found = 0;
    while let Some(chunk) = source.next().unwrap() {
        assert!(chunk.body.len() <= CHUNK_MEMBERS);
        let waiting = source.open.as_ref().map_or(0, OpenKey::waiting);
        assert!(waiting <= 2, "{waiting} members wait in memory");
        found += chunk.body.len();
    }
    assert_eq!(found, count);
}

#[test]
fn whatever_is_changed_is_read_or_refused_with_a_reason() {
    let good = every_form();
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..20_000 {
        let mut random = SplitMix64::new(seed);
        let mut content = good.clone();
        damage(&mut content, &mut random);
        let mut bytes = dump(12, &content);
        // A checksum of zero means none, so the damage itself must be noticed.
        let end = bytes.len();
        bytes[end - 8..].fill(0);
        match read(&bytes) {
            Ok(_) => accepted += 1,
            Err(failure) => {
                refused += 1;
                assert!(failure.to_string().contains("damaged"), "seed {seed}: {failure}");
            }
        }
    }
    // Many changes only alter a value, so both outcomes are frequent.
    assert!(refused > 5000 && accepted > 1000, "{refused} refused, {accepted} accepted");
}
