//! Encodings that no server of version 7.0 writes: packed sets and streams of 7.2, hashes of 7.4
//! with expiring fields, streams of 5.0. The type numbers and layouts are those of Redis's `rdb.h`.

use bytes::Bytes;

use super::{NOW, all, dump, short, value};
use crate::rdb::RdbSource;
use crate::transfer::{Body, Source};

pub(super) const STREAM: u8 = 15;
pub(super) const STREAM_2: u8 = 19;
pub(super) const SET_LISTPACK: u8 = 20;
pub(super) const STREAM_3: u8 = 21;
pub(super) const HASH_TIMED_RC: u8 = 22;
pub(super) const HASH_TIMED_PACKED_RC: u8 = 23;
pub(super) const HASH_TIMED: u8 = 24;
pub(super) const HASH_TIMED_PACKED: u8 = 25;

/// An entry of a listpack.
pub(super) enum Entry<'a> {
    Text(&'a str),
    Number(i64),
}

/// A listpack: total size, count, entries each followed by its length backwards, end.
pub(super) fn listpack(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        let encoded = match entry {
            Entry::Text(text) => [&[0x80 | text.len() as u8], text.as_bytes()].concat(),
            Entry::Number(number) => [&[0xf4][..], &number.to_le_bytes()].concat(),
        };
        assert!(encoded.len() < 64);
        body.extend_from_slice(&encoded);
        body.push(encoded.len() as u8);
    }
    let mut bytes = (body.len() as u32 + 7).to_le_bytes().to_vec();
    bytes.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes.push(0xff);
    bytes
}

/// A string of any length, stored with a length of 32 bits.
pub(super) fn long(bytes: &[u8]) -> Vec<u8> {
    [&[0x80][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// A length of 64 bits.
pub(super) fn wide(number: u64) -> Vec<u8> {
    [&[0x81][..], &number.to_be_bytes()].concat()
}

/// A stream of type `kind` with an entry, a group, a consumer and a pending entry.
pub(super) fn stream(kind: u8) -> Vec<u8> {
    let entries = [Entry::Number(1), Entry::Text("f"), Entry::Text("v")];
    let (id, time) = ([7; 16], NOW.to_le_bytes());
    let mut bytes = vec![1];
    bytes.extend(short(&id));
    bytes.extend(long(&listpack(&entries)));
    bytes.extend([1]);
    bytes.extend([wide(NOW), wide(0)].concat());
    if kind >= STREAM_2 {
        // The first id, the last deleted id, the number of entries ever added.
        bytes.extend([wide(NOW), wide(0), wide(0), wide(0), vec![1]].concat());
    }
    bytes.extend([1]);
    bytes.extend(short(b"group"));
    bytes.extend([wide(NOW), wide(0)].concat());
    if kind >= STREAM_2 {
        bytes.extend([1]);
    }
    bytes.push(1);
    bytes.extend([&id[..], &time, &[3]].concat());
    bytes.push(1);
    bytes.extend(short(b"consumer"));
    bytes.extend(time);
    if kind >= STREAM_3 {
        bytes.extend(time);
    }
    bytes.push(1);
    bytes.extend(id);
    bytes
}

/// A hash with one field without expiry, one that will expire and one that has expired.
pub(super) fn timed_hash(kind: u8) -> Vec<u8> {
    let (earlier, later) = (NOW - 5000, NOW + 5000);
    let packed = || {
        let mut entries = Vec::new();
        for (field, when) in [("gone", earlier), ("soon", later), ("stays", 0)] {
            entries.push(Entry::Text(field));
            entries.push(Entry::Text("v"));
            entries.push(Entry::Number(when as i64));
        }
        long(&listpack(&entries))
    };
    let fields = |first: Option<u64>| {
        let stored = |when: u64| first.map_or(when, |first| when - first + 1);
        let mut bytes = vec![3];
        for (field, when) in [("gone", stored(earlier)), ("soon", stored(later)), ("stays", 0)] {
            bytes.extend([wide(when), short(field.as_bytes()), short(b"v")].concat());
        }
        bytes
    };
    match kind {
        HASH_TIMED_RC => fields(None),
        HASH_TIMED => [&earlier.to_le_bytes()[..], &fields(Some(earlier))].concat(),
        HASH_TIMED_PACKED_RC => packed(),
        _ => [&earlier.to_le_bytes()[..], &packed()].concat(),
    }
}

fn skipped(source: &RdbSource<&[u8]>) -> Vec<(&'static str, u64)> {
    source.skipped().iter().map(|(what, count)| (*what, *count)).collect()
}

#[test]
fn a_packed_set_has_texts_and_numbers() {
    let pack = listpack(&[Entry::Text("a"), Entry::Number(-7), Entry::Text("")]);
    assert_eq!(value(SET_LISTPACK, &short(&pack)), Body::Set(all(&["a", "-7", ""])));
}

#[test]
fn fields_that_expire_come_without_their_expiry_and_those_that_have_expired_not_at_all() {
    for kind in [HASH_TIMED_RC, HASH_TIMED_PACKED_RC, HASH_TIMED, HASH_TIMED_PACKED] {
        let bytes = dump(12, &[&[kind, 1, b'k'][..], &timed_hash(kind)].concat());
        let mut source = RdbSource::new(&bytes[..], NOW).unwrap();
        let chunk = source.next().unwrap().unwrap();
        let pair = |field: &'static str| (Bytes::from(field), Bytes::from("v"));
        assert_eq!(chunk.body, Body::Hash(vec![pair("soon"), pair("stays")]), "type {kind}");
        assert!(chunk.first && chunk.last);
        assert_eq!(source.next().unwrap(), None);
        let expected =
            [("expiries of fields, which are kept without", 1), ("fields that have expired", 1)];
        assert_eq!(skipped(&source), expected, "type {kind}");
    }
}

#[test]
fn a_hash_of_which_nothing_is_left_is_no_key() {
    let pack = listpack(&[Entry::Text("f"), Entry::Text("v"), Entry::Number((NOW - 1) as i64)]);
    let content = [&[HASH_TIMED_PACKED_RC, 1, b'k'][..], &short(&pack), &[0, 1, b'a', 1, b'v']];
    let bytes = dump(12, &content.concat());
    let mut source = RdbSource::new(&bytes[..], NOW).unwrap();
    assert_eq!(source.next().unwrap().unwrap().key, "a");
    assert_eq!(source.next().unwrap(), None);
    assert_eq!(skipped(&source), [("fields that have expired", 1), ("keys without members", 1)]);
}

#[test]
fn a_time_of_a_field_that_cannot_be_is_damage() {
    let fields = [&[1][..], &wide(u64::MAX), b"\x01f\x01v"].concat();
    let late = [&u64::MAX.to_le_bytes()[..], &fields].concat();
    let text = short(&listpack(&[Entry::Text("f"), Entry::Text("v"), Entry::Text("x")]));
    let two = short(&listpack(&[Entry::Text("f"), Entry::Text("v")]));
    for (kind, stored) in
        [(HASH_TIMED, late), (HASH_TIMED_PACKED_RC, text), (HASH_TIMED_PACKED_RC, two)]
    {
        let bytes = dump(12, &[&[kind, 1, b'k'][..], &stored].concat());
        let mut source = RdbSource::new(&bytes[..], NOW).unwrap();
        let failure = source.next().unwrap_err().to_string();
        assert!(failure.contains("damaged"), "{failure}");
    }
}

#[test]
fn streams_of_every_version_are_skipped_to_their_end() {
    for kind in [STREAM, STREAM_2, STREAM_3] {
        let content = [&[kind, 1, b's'][..], &stream(kind), &[0, 1, b'a', 1, b'v']].concat();
        let bytes = dump(11, &content);
        let mut source = RdbSource::new(&bytes[..], NOW).unwrap();
        assert_eq!(source.next().unwrap().unwrap().key, "a", "type {kind}");
        assert_eq!(source.next().unwrap(), None);
        assert_eq!(skipped(&source), [("streams", 1)]);
    }
}
