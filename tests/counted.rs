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

fn row(n: u64) -> Vec<u8> {
    // Rows of one collection, written in no order.
    let scattered = (n ^ (n >> 15)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    format!("zset:followers:{scattered:013}").into_bytes()
}

/// A store with `rows` counted rows in many tables of several levels, and a few in memtables.
fn filled(rows: u64, options: &Options) -> (MemFs, Engine) {
    let fs = MemFs::new();
    let engine = open(&fs, options);
    for n in (0..rows).step_by(50) {
        write(&engine, |batch| {
            (n..rows.min(n + 50)).for_each(|n| batch.put_absent(DATA, &row(n), b"12345678"));
        });
    }
    (fs, engine)
}

/// How many blocks a call looks at, in the cache or in files.
fn blocks(engine: &Engine, call: impl FnOnce()) -> u64 {
    let looked = |engine: &Engine| {
        let tree = &engine.stats().trees[DATA.index()];
        tree.cache_hits + tree.cache_misses
    };
    let before = looked(engine);
    call();
    looked(engine) - before
}

#[test]
fn counts_and_selections_look_at_few_blocks_whatever_the_number_of_rows() {
    let options = Options {
        write_buffer: 64 << 10,
        table_bytes: 128 << 10,
        background_threads: 0,
        ..Options::default()
    };
    for rows in [1_000, 100_000] {
        let (_fs, engine) = filled(rows, &options);
        engine.wait_idle().unwrap();
        let levels = engine.stats().trees[DATA.index()].levels;
        let deep = levels[1..].iter().filter(|level| level.files > 0).count() as u64;
        let sources = levels[0].files + deep;
        let (mut counted, mut selected) = (0, 0);
        for n in 0..50 {
            let reader = engine.reader().unwrap();
            let (a, b) = (row(n * 17 % rows), row(n * 31 % rows + 1));
            let (lower, upper) = (a.clone().min(b.clone()), a.max(b));
            counted = counted.max(blocks(&engine, || {
                reader.count(DATA, &lower, &upper).unwrap();
            }));
            selected = selected.max(blocks(&engine, || {
                reader.select(DATA, b"", b"", (n * 7919) % rows).unwrap().unwrap();
            }));
        }
        // A count reads a block at each end. A selection counts all, counts again up to a place near,
        // perhaps corrects that, and walks.
        assert!(counted <= 2 * sources, "{counted} blocks of {sources} sources, {rows} rows");
        assert!(selected <= 8 * sources, "{selected} blocks of {sources} sources, {rows} rows");
        println!("{rows} rows, {sources} sources: {counted} and {selected} blocks");
    }
}

#[test]
fn sums_take_less_than_a_fiftieth_of_the_tables() {
    let size = |counted: bool| {
        let fs = MemFs::new();
        let engine = open(&fs, &Options { background_threads: 0, ..Options::default() });
        for n in (0..20_000).step_by(50) {
            write(&engine, |batch| {
                for n in n..n + 50 {
                    match counted {
                        true => batch.put_absent(DATA, &row(n), b"12345678"),
                        false => batch.put(DATA, &row(n), b"12345678"),
                    }
                }
            });
        }
        engine.compact().unwrap();
        engine.stats().trees[DATA.index()].levels.iter().map(|level| level.bytes).sum::<u64>()
    };
    let (plain, counted) = (size(false), size(true));
    println!("{plain} bytes, {counted} with counted rows");
    assert!(counted * 50 < plain * 51, "{counted} bytes instead of {plain}");
}
