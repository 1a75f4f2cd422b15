//! The whole format of today: hash seeds, counted rows, strings in chunks, shortened bounds, and
//! tables of which a merge that was cut short has used up the front. Functions, swapped databases
//! and expiry come along.
//!
//! Such a store has two lives. The first ends in the middle of a merge on a disk with little space.
//! The second writes the last part.

use std::path::Path;
use std::sync::{Arc, Mutex};

use lsmkv::engine::MemFs;
use lsmkv::io::clock::RealClock;
use lsmkv::io::mem::SyncStage;
use lsmkv::{Compression, Db, Options};

use super::{FIRST, LAST, SECOND, ask, copy_files, directory, large, options, run};

/// The stores, and whether they were closed.
const STORES: [(&str, bool); 2] =
    [("format-2-today-killed", false), ("format-2-today-closed", true)];

/// The features of a manifest: hash seed, counted rows, strings in chunks, shortened bounds, raised
/// bounds.
const ALL_FEATURES: u8 = 31;
const RAISED_BOUNDS: u8 = 16;

const FAR: u64 = 4_102_444_800_000;
const MEMBERS: u32 = 600;
const DOCUMENT_BYTES: usize = 20_000;
const LIBRARY: &str = "#!lua name=golden\nredis.register_function{function_name='answer', \
                       flags={'no-writes'}, callback=function() return 42 end}";

/// Without scripts a store with functions opens all the same, and all else is there.
const RUNS_SCRIPTS: bool = cfg!(feature = "scripting");

/// A member of the collections is written by part `i % 3`. The part after it removes a quarter.
fn is_removed(i: u32) -> bool {
    matches!(i % 12, 0 | 1)
}

/// The score of a member. No two are alike.
fn score(i: u32) -> f64 {
    f64::from(i * 77 % MEMBERS) / 4.0
}

fn members() -> impl DoubleEndedIterator<Item = u32> + Clone {
    (0..MEMBERS).filter(|i| !is_removed(*i))
}

/// A key that is longer than a bound.
fn long_key(part: u32) -> String {
    format!("!{}{part}", "k".repeat(1500))
}

fn write(db: &Db, part: u32) {
    for i in part * 50..part * 50 + 80 {
        run(db, &format!("SET text:{i} part-{part}"));
    }
    for i in (0..part * 50).step_by(7) {
        run(db, &format!("DEL text:{i}"));
    }
    for i in (0..MEMBERS).filter(|i| i % 3 == part) {
        run(db, &format!("ZADD ranking {} member:{i}", score(i)));
        run(db, &format!("HSET fields field:{i} value:{i}"));
        run(db, &format!("SADD group member:{i}"));
        run(db, &format!("RPUSH queue element:{i}"));
    }
    for i in (0..MEMBERS).filter(|i| i % 12 + 1 == part) {
        run(db, &format!("ZREM ranking member:{i}"));
        run(db, &format!("HDEL fields field:{i}"));
        run(db, &format!("SREM group member:{i}"));
    }
    run(db, &format!("HSET small field:{part} {part}"));
    run(db, &format!("SET {} {part}", long_key(part)));
    run(db, &format!("SET far:{part} kept PXAT {}", FAR + u64::from(part)));
    run(db, &format!("SET near:{part} gone PX 1"));
    // From the second part on beyond what is kept whole, with chunks that have no row.
    run(db, &format!("SETBIT sparse {} 1", part * 400_000 + 7));
    run(&db.select(5).unwrap(), &format!("SET only-here {part}"));
    (0..200).for_each(|i| _ = run(&db.select(9).unwrap(), &format!("SADD emptied {i}")));
    run(&db.select(9).unwrap(), "FLUSHDB");
    match part {
        FIRST => {
            db.set(b"document", &large(DOCUMENT_BYTES)).unwrap();
            if RUNS_SCRIPTS {
                db.function_load(LIBRARY, false).unwrap();
            }
            run(&db.select(2).unwrap(), "SET swapped 2");
            (0..200).for_each(|i| _ = run(db, &format!("HSET replaced field:{i} {i}")));
        }
        SECOND => {
            run(db, "SETRANGE document 5000 changed");
            run(db, &format!("PEXPIREAT fields {FAR}"));
            run(db, "SWAPDB 2 3");
            run(db, "LPOP queue 50");
        }
        _ => {
            run(db, "APPEND document appended");
            run(db, "DEL replaced");
            run(db, "LTRIM queue 50 -1");
        }
    }
}

fn check(db: &Db) {
    check_strings(db);
    check_collections(db);
    check_ranks(db);
    assert_eq!(ask(&db.select(5).unwrap(), "GET only-here"), LAST.to_string());
    assert_eq!(ask(&db.select(3).unwrap(), "GET swapped"), "2");
    assert_eq!(ask(&db.select(2).unwrap(), "DBSIZE"), "0");
    assert_eq!(ask(&db.select(9).unwrap(), "DBSIZE"), "0");
    if RUNS_SCRIPTS {
        assert_eq!(ask(db, "FCALL_RO answer 0"), "42");
    }
    assert_eq!(db.check().unwrap(), [""; 0]);
}

/// The part that wrote this string last, if it is there.
fn text(i: u32) -> Option<u32> {
    (i >= LAST * 50 || !i.is_multiple_of(7)).then_some((i / 50).min(LAST))
}

fn check_strings(db: &Db) {
    for i in 0..LAST * 50 + 80 {
        let expected = text(i).map_or("nil".to_owned(), |part| format!("part-{part}"));
        assert_eq!(ask(db, &format!("GET text:{i}")), expected, "text:{i}");
    }
    for part in [FIRST, SECOND, LAST] {
        assert_eq!(ask(db, &format!("GET {}", long_key(part))), part.to_string());
        let expires = FAR + u64::from(part);
        assert_eq!(ask(db, &format!("PEXPIRETIME far:{part}")), expires.to_string());
        assert_eq!(ask(db, &format!("EXISTS near:{part}")), "0");
    }
    let mut document = large(DOCUMENT_BYTES);
    document[5000..5007].copy_from_slice(b"changed");
    document.extend_from_slice(b"appended");
    assert!(db.get(b"document").unwrap().unwrap() == document);
    assert_eq!(db.getrange(b"document", 4990, 5020).unwrap(), document[4990..=5020]);
    let mut sparse = vec![0; LAST as usize * 50_000 + 1];
    (0..=LAST as usize).for_each(|part| sparse[part * 50_000] = 1);
    assert!(db.get(b"sparse").unwrap().unwrap() == sparse);
    assert_eq!(ask(db, "BITPOS sparse 1 1"), "400007");
    let strings = (0..LAST * 50 + 80).filter(|i| text(*i).is_some()).count();
    // The strings, the long keys, those that expire late, the collections, document and sparse.
    assert_eq!(ask(db, "DBSIZE"), (strings + 3 + 3 + 5 + 2).to_string());
}

fn check_collections(db: &Db) {
    for i in 0..MEMBERS {
        let there = !is_removed(i);
        let or_nil = |value: String| if there { value } else { "nil".to_owned() };
        assert_eq!(ask(db, &format!("HGET fields field:{i}")), or_nil(format!("value:{i}")));
        assert_eq!(ask(db, &format!("ZSCORE ranking member:{i}")), or_nil(score(i).to_string()));
        assert_eq!(ask(db, &format!("SISMEMBER group member:{i}")), i32::from(there).to_string());
    }
    let count = members().count();
    for command in ["HLEN fields", "ZCARD ranking", "SCARD group"] {
        assert_eq!(ask(db, command), count.to_string(), "{command}");
    }
    for part in [FIRST, SECOND, LAST] {
        assert_eq!(ask(db, &format!("HGET small field:{part}")), part.to_string());
    }
    assert_eq!(ask(db, "PEXPIRETIME fields"), FAR.to_string());
    assert_eq!(ask(db, "EXISTS replaced"), "0");
    let pushed = (0..3).flat_map(|part| (0..MEMBERS).filter(move |i| i % 3 == part));
    let elements: Vec<_> = pushed.skip(100).map(|i| format!("element:{i}")).collect();
    assert_eq!(ask(db, "LRANGE queue 0 -1"), format!("[{}]", elements.join(" ")));
    assert_eq!(ask(db, "LINDEX queue 300"), elements[300]);
}

/// What is answered from counts.
fn check_ranks(db: &Db) {
    let mut order: Vec<u32> = members().collect();
    order.sort_by(|a, b| score(*a).total_cmp(&score(*b)));
    for (rank, i) in order.iter().enumerate() {
        assert_eq!(ask(db, &format!("ZRANK ranking member:{i}")), rank.to_string());
        let above = format!("ZCOUNT ranking ({} +inf", score(*i));
        assert_eq!(ask(db, &above), (order.len() - rank - 1).to_string(), "{above}");
    }
    for first in (0..order.len() - 1).step_by(7) {
        let expected = format!("[member:{} member:{}]", order[first], order[first + 1]);
        assert_eq!(ask(db, &format!("ZRANGE ranking {first} {}", first + 1)), expected);
    }
    for command in ["ZRANDMEMBER ranking", "SRANDMEMBER group", "HRANDFIELD fields"] {
        let drawn = ask(db, &format!("{command} 100"));
        let drawn: std::collections::HashSet<_> = drawn.split(' ').collect();
        assert_eq!(drawn.len(), 100, "{command}");
    }
}

/// The features that each edit of a manifest names.
fn features(manifest: &[u8]) -> Vec<u8> {
    let begins = |at: &usize| manifest[*at..].starts_with(&[0xD7, 0x4C, 0x9B, 0xE1]);
    let records = (0..manifest.len()).step_by(8).filter(begins);
    // After the record's header of 24 bytes: field 7 comes first.
    records.map(|at| if manifest[at + 24] == 7 { manifest[at + 25] } else { 0 }).collect()
}

fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"))
}

/// Opens the store, compares everything, goes on writing, and compares again.
fn opens_and_goes_on(dir: &Path) {
    let manifests = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifests.filter(|path| is_manifest(path)).max().unwrap();
    // The state with which the second life began had tables with raised bounds.
    assert_eq!(features(&std::fs::read(manifest).unwrap())[0], ALL_FEATURES);
    check(&Db::open(dir, Options { read_only: true, ..options() }).unwrap());
    let db = Db::open(dir, options()).unwrap();
    check(&db);
    for command in [
        "ZADD ranking -1 member:0",
        "ZREM ranking member:0",
        "ZADD ranking 1000 member:2",
        &format!("ZADD ranking {} member:2", score(2)),
        "HSET fields field:0 new field:2 other",
        "HSET fields field:2 value:2",
        "HDEL fields field:0",
        "SMOVE group moved member:599",
        "SMOVE moved group member:599",
        "LPUSH queue new",
        "LPOP queue",
        "SETRANGE document 5000 another",
        "SETRANGE document 5000 changed",
        "SETBIT sparse 300000 1",
        "SETBIT sparse 300000 0",
        "RENAME group renamed",
        "RENAME renamed group",
    ] {
        run(&db, command);
    }
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.compact().unwrap();
    check(&db);
    db.close().unwrap();
    check(&Db::open(dir, options()).unwrap());
}

fn open(fs: &MemFs, options: Options) -> Db {
    let disk = Arc::new(fs.clone());
    Db::open_on(disk, Path::new("/store"), options, Arc::new(RealClock)).unwrap()
}

fn options_to_write() -> Options {
    Options { table_bytes: 4 << 10, inline_max_bytes: 4 << 10, chunk_bytes: 1 << 10, ..options() }
}

/// The disk in the middle of the last merge of the first life; `None` if the threads of the store had
/// merged everything before its disk became small.
fn first_life() -> Option<MemFs> {
    let fs = MemFs::new();
    fs.set_capacity(64 << 20);
    let db = open(&fs, options_to_write());
    write(&db, FIRST);
    db.compact().unwrap();
    write(&db, SECOND);
    db.flush().unwrap();
    // A merge runs in pieces when its result may not fit beside its inputs.
    fs.set_capacity(fs.bytes_in_use() + (512 << 10));
    let seen = Arc::new(Mutex::new(None));
    let taken = Arc::clone(&seen);
    fs.on_sync(move |fs, point| {
        let is_edit = point.stage == SyncStage::After && is_manifest(point.path);
        let edits = is_edit.then(|| features(&fs.read_file(point.path).unwrap()));
        if edits.is_some_and(|edits| edits.last().is_some_and(|last| last & RAISED_BOUNDS != 0)) {
            *taken.lock().unwrap() = Some(fs.deep_clone());
        }
    });
    db.compact().unwrap();
    seen.lock().unwrap().take()
}

/// Lets the second life write the last part, and returns its disk.
fn second_life(fs: &MemFs, closed: bool) -> MemFs {
    fs.set_capacity(u64::MAX);
    let compression = if closed { Compression::Lz4 } else { Compression::None };
    // Nothing is flushed before the close.
    let options = Options { compression, write_buffer: 1 << 20, ..options_to_write() };
    let db = open(fs, options);
    write(&db, LAST);
    db.sync().unwrap();
    // Until the key that lives for a millisecond has expired.
    std::thread::sleep(std::time::Duration::from_millis(2));
    check(&db);
    if closed {
        db.close().unwrap();
    }
    fs.deep_clone()
}

/// Copies a store to a directory, without the space that is set aside for a full disk.
fn export(fs: &MemFs, dir: &Path) {
    std::fs::create_dir_all(dir).unwrap();
    for path in fs.paths() {
        let name = path.file_name().unwrap();
        if !name.to_string_lossy().starts_with("RESERVE") {
            std::fs::write(dir.join(name), fs.read_file(&path).unwrap()).unwrap();
        }
    }
}

#[test]
fn a_store_of_the_whole_format_of_today_opens_holds_what_was_written_and_goes_on() {
    for (name, _) in STORES {
        let scratch = tempfile::tempdir().unwrap();
        copy_files(&directory(name), scratch.path());
        opens_and_goes_on(scratch.path());
    }
}

/// This build still writes what the golden stores hold.
#[test]
fn make_golden_stores_of_today() {
    for (name, closed) in STORES {
        let first = (0..20).find_map(|_| first_life()).expect("a merge in pieces");
        let fs = second_life(&first, closed);
        let scratch = tempfile::tempdir().unwrap();
        export(&fs, scratch.path());
        // The stores that are kept have functions.
        if let Some(target) = std::env::var_os("LSMKV_MAKE_GOLDEN").filter(|_| RUNS_SCRIPTS) {
            copy_files(scratch.path(), &Path::new(&target).join(name));
        }
        opens_and_goes_on(scratch.path());
    }
}
