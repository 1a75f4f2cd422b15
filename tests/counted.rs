//! Counted keys: a store tells how many keys of a range are set and which is the nth.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

mod support;

use lsmkv::Options;
use lsmkv::engine::{Batch, Engine, MemFs, WriteOptions};
use support::{DATA, open, tiny};

fn write(engine: &Engine, fill: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    fill(&mut batch);
    engine.write(&mut batch, WriteOptions::default()).unwrap();
}

#[test]
fn counting_begins_when_a_store_is_created_and_stays_through_reopens() {
    let fs = MemFs::new();
    let engine = open(&fs, &tiny());
    assert_eq!(engine.counted_from(), 1);
    assert!(engine.reserve_number().number() >= 1);
    write(&engine, |batch| batch.put_absent(DATA, b"a", b"1"));
    drop(engine);
    for options in [tiny(), Options { read_only: true, ..tiny() }, tiny()] {
        let engine = open(&fs, &options);
        assert_eq!(engine.counted_from(), 1);
        assert_eq!(engine.reader().unwrap().count(DATA, b"", b"").unwrap(), 1);
    }
}

#[test]
fn counts_and_selections_see_what_is_set_in_the_range() {
    let fs = MemFs::new();
    let engine = open(&fs, &tiny());
    write(&engine, |batch| {
        for key in [b"a", b"b", b"c", b"d"] {
            batch.put_absent(DATA, key, b"1");
        }
    });
    let before = engine.snapshot().unwrap();
    write(&engine, |batch| {
        batch.delete_present(DATA, b"b");
        batch.put(DATA, b"c", b"2");
        batch.put_absent(DATA, b"e", b"2");
    });
    let check = |engine: &Engine| {
        let reader = engine.reader().unwrap();
        assert_eq!(reader.count(DATA, b"", b"").unwrap(), 4);
        assert_eq!(reader.count(DATA, b"a", b"d").unwrap(), 2);
        assert_eq!(reader.count(DATA, b"d", b"a").unwrap(), 0);
        let nth = |n| reader.select(DATA, b"aa", b"", n).unwrap();
        assert_eq!([0, 1, 2].map(nth).map(Option::unwrap), [&b"c"[..], b"d", b"e"]);
        assert_eq!(nth(3), None);
        assert_eq!(reader.select(DATA, b"a", b"c", 1).unwrap(), None);
        assert_eq!(reader.select(DATA, b"", b"", u64::MAX).unwrap(), None);
    };
    let check_before = || {
        let reader = before.reader().unwrap();
        assert_eq!(reader.count(DATA, b"", b"").unwrap(), 4);
        assert_eq!(reader.select(DATA, b"", b"", 1).unwrap().unwrap(), b"b"[..]);
    };
    check(&engine);
    check_before();
    engine.flush().unwrap();
    check(&engine);
    check_before();
    engine.compact().unwrap();
    check(&engine);
    check_before();
    drop(before);
    engine.compact().unwrap();
    engine.close().unwrap();
    check(&open(&fs, &tiny()));
}
