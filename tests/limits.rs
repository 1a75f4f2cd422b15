//! The edges of what a store accepts: what is too large or wrong is refused and changes nothing,
//! what is allowed survives log, memtable, flush, compaction and reopen.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may")]

mod fault_support;

use std::path::Path;
use std::sync::Arc;

use fault_support::{Contents, DIR, Shape, assert_same, config, nothing, open_mem, read_all, scan};
use lsmkv::engine::{Batch, Engine, EngineConfig, MemFs, TreeConfig, TreeId, WriteOptions};
use lsmkv::{Db, ErrorKind, Options, Reply, SyncMode};

const SHAPE: Shape = Shape { keys: 100, value_bytes: 200, marks: false };
const MIB: usize = 1 << 20;

fn small() -> Options {
    Options {
        sync: SyncMode::Off,
        write_buffer: 64 << 10,
        log_segment_bytes: 64 << 10,
        memory_budget: 8 << 20,
        ..Options::default()
    }
}

fn write(engine: &Engine, batch: &mut Batch) -> lsmkv::Result<()> {
    engine.write(batch, WriteOptions::default()).map(|_| ())
}

fn put(engine: &Engine, model: &mut Contents, tree: u8, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(TreeId(tree), key, value);
    write(engine, &mut batch).unwrap();
    model[usize::from(tree)].insert(key.to_vec(), value.to_vec());
}

/// In the log, in tables, in tables of the last level, and after each by way of a reopen.
fn check_everywhere(fs: &MemFs, engine: Engine, options: &Options, model: &Contents) {
    let check = |engine: &Engine, where_: &str| {
        assert_same(&read_all(engine, model).unwrap(), model, where_);
    };
    check(&engine, "as written");
    drop(engine);
    let engine = open_mem(fs, options.clone()).unwrap();
    check(&engine, "from the log");
    engine.flush().unwrap();
    check(&engine, "flushed");
    drop(engine);
    let engine = open_mem(fs, options.clone()).unwrap();
    check(&engine, "flushed and reopened");
    engine.compact().unwrap();
    check(&engine, "compacted");
    engine.verify().unwrap();
    engine.close().unwrap();
    check(&open_mem(fs, options.clone()).unwrap(), "compacted and reopened");
}

/// A batch that is refused whole, with good writes before and after the bad one.
fn refuse(engine: &Engine, kind: ErrorKind, model: &Contents, bad: impl Fn(&mut Batch)) {
    let sequence = engine.sequence();
    let mut batch = Batch::new();
    batch.put(TreeId(0), b"before", b"1");
    bad(&mut batch);
    batch.put(TreeId(1), b"after", b"2");
    let error = write(engine, &mut batch).unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    assert_eq!(engine.sequence(), sequence);
    assert_same(&read_all(engine, model).unwrap(), model, "after a refusal");
    assert!(engine.degraded().is_none());
}

#[test]
fn keys_and_values_over_their_limit_are_refused_and_change_nothing() {
    let options = Options { max_key_bytes: 100, max_value_bytes: 1000, ..small() };
    let fs = MemFs::new();
    let engine = open_mem(&fs, options.clone()).unwrap();
    let mut model = nothing();
    put(&engine, &mut model, 0, &[b'k'; 100], &[b'v'; 1000]);
    put(&engine, &mut model, 2, b"k", b"v");
    for tree in [0, 1, 2].map(TreeId) {
        refuse(&engine, ErrorKind::TooLarge, &model, |b| b.put(tree, &[b'k'; 101], b"v"));
        refuse(&engine, ErrorKind::TooLarge, &model, |b| b.put(tree, b"k", &[b'v'; 1001]));
        refuse(&engine, ErrorKind::TooLarge, &model, |b| b.delete(tree, &[b'k'; 101]));
    }
    put(&engine, &mut model, 1, b"still", b"works");
    check_everywhere(&fs, engine, &options, &model);
}

/// Keys of Redis's 512 MiB are possible for who wants them; by default a store does not take what fills
/// its memory several times over.
#[test]
fn a_key_has_at_most_16_mib_unless_more_are_asked_for() {
    let key = vec![b'k'; (16 << 20) + 1];
    let db = Db::open(":memory:", Options::default()).unwrap();
    let error = db.set(&key, b"v").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("16777216: see max_key_bytes"), "{error}");
    db.hset(b"h", &[(&key, b"v")]).unwrap();
    let larger = Options { max_key_bytes: key.len() as u64, ..Options::default() };
    let db = Db::open(":memory:", larger).unwrap();
    db.set(&key, b"v").unwrap();
    assert_eq!(db.get(&key).unwrap().as_deref(), Some(b"v".as_slice()));
}

#[test]
fn a_batch_that_names_an_unknown_tree_is_misuse_and_changes_nothing() {
    let fs = MemFs::new();
    let engine = open_mem(&fs, small()).unwrap();
    let mut model = nothing();
    put(&engine, &mut model, 2, b"k", b"v");
    for tree in [3, 64, 255].map(TreeId) {
        refuse(&engine, ErrorKind::Misuse, &model, |b| b.put(tree, b"k", b"v"));
        refuse(&engine, ErrorKind::Misuse, &model, |b| b.delete(tree, b"k"));
        assert_eq!(engine.get(tree, b"k").unwrap_err().kind(), ErrorKind::Misuse);
        let options = lsmkv::engine::IterOptions::default();
        assert_eq!(engine.iter(tree, options).unwrap_err().kind(), ErrorKind::Misuse);
    }
    check_everywhere(&fs, engine, &small(), &model);
}

/// A batch that was refused is not left half used: what it is filled with next stands alone.
#[test]
fn a_refused_batch_can_be_used_again() {
    let fs = MemFs::new();
    let engine = open_mem(&fs, Options { max_key_bytes: 10, ..small() }).unwrap();
    let mut batch = Batch::new();
    batch.put(TreeId(0), &[0; 11], b"");
    write(&engine, &mut batch).unwrap_err();
    batch.clear();
    batch.put(TreeId(0), b"k", b"v");
    write(&engine, &mut batch).unwrap();
    assert!(batch.is_empty());
    assert_eq!(scan(&engine).unwrap()[0].len(), 1);
}

#[test]
fn an_empty_batch_is_no_error_and_changes_nothing() {
    let fs = MemFs::new();
    let engine = open_mem(&fs, small()).unwrap();
    write(&engine, &mut Batch::new()).unwrap();
    engine
        .write(
            &mut Batch::new(),
            WriteOptions { sync: Some(SyncMode::Always), ..Default::default() },
        )
        .unwrap();
    check_everywhere(&fs, engine, &small(), &nothing());
}

#[test]
fn keys_and_values_of_no_bytes_are_like_any_others() {
    let fs = MemFs::new();
    let engine = open_mem(&fs, small()).unwrap();
    let mut model = nothing();
    put(&engine, &mut model, 0, b"", b"");
    put(&engine, &mut model, 0, b"\0", b"");
    put(&engine, &mut model, 1, b"", b"value");
    put(&engine, &mut model, 1, b"\xff\xff", b"");
    put(&engine, &mut model, 2, b"", b"gone");
    let mut batch = Batch::new();
    batch.delete(TreeId(2), b"");
    write(&engine, &mut batch).unwrap();
    model[2].clear();
    check_everywhere(&fs, engine, &small(), &model);
}

#[test]
fn a_key_of_a_mebibyte_sorts_and_is_found_like_any_other() {
    let fs = MemFs::new();
    let engine = open_mem(&fs, small()).unwrap();
    let mut model = nothing();
    let long = vec![b'k'; MIB];
    put(&engine, &mut model, 0, &long, b"long");
    put(&engine, &mut model, 0, &long[1..], b"a little shorter");
    put(&engine, &mut model, 0, b"k", b"short");
    put(&engine, &mut model, 0, b"l", b"after");
    check_everywhere(&fs, engine, &small(), &model);
}

#[test]
fn a_value_of_64_mib_goes_all_the_way() {
    for options in [small(), Options { background_threads: 0, ..small() }] {
        let fs = MemFs::untracked();
        let engine = open_mem(&fs, options.clone()).unwrap();
        let mut model = nothing();
        let value: Vec<u8> =
            (0..64 * MIB as u64).map(|i| (i ^ (i >> 9)).to_le_bytes()[0]).collect();
        put(&engine, &mut model, 1, b"before", b"small");
        put(&engine, &mut model, 1, b"large", &value);
        put(&engine, &mut model, 1, b"later", b"small");
        check_everywhere(&fs, engine, &options, &model);
    }
}

#[test]
fn a_batch_larger_than_a_log_segment_is_whole() {
    for sync in [SyncMode::Off, SyncMode::Always] {
        let options = Options { sync, ..small() };
        let fs = MemFs::new();
        let engine = open_mem(&fs, options.clone()).unwrap();
        let mut model = nothing();
        put(&engine, &mut model, 0, b"first", b"1");
        let mut batch = Batch::new();
        for n in 0..3000u32 {
            let (tree, key) = (n % 3, format!("key{n:05}").into_bytes());
            batch.put(TreeId(u8::try_from(tree).unwrap()), &key, &[n.to_le_bytes()[0]; 200]);
            model[tree as usize].insert(key, vec![n.to_le_bytes()[0]; 200]);
        }
        assert!(batch.bytes() as u64 > 8 * options.log_segment_bytes);
        write(&engine, &mut batch).unwrap();
        put(&engine, &mut model, 0, b"last", b"2");
        check_everywhere(&fs, engine, &options, &model);
    }
}

fn open_with_trees(fs: &MemFs, names: &[&str]) -> lsmkv::Result<Engine> {
    let trees = names.iter().map(|name| TreeConfig::named(name)).collect();
    let config = EngineConfig { options: small(), trees };
    Engine::open(Arc::new(fs.clone()), Path::new(DIR), config)
}

/// A manifest with edits after the first record took the wrong trees for damage.
#[test]
fn trees_that_do_not_match_are_incompatible() {
    for closed in [true, false] {
        let fs = MemFs::new();
        let engine = open_mem(&fs, small()).unwrap();
        (0..20).for_each(|n| SHAPE.write(&engine, n, SyncMode::Off).unwrap());
        engine.flush().unwrap();
        (20..30).for_each(|n| SHAPE.write(&engine, n, SyncMode::Off).unwrap());
        if closed {
            engine.close().unwrap();
        }
        drop(engine);
        for names in [
            &["meta", "data"][..],
            &["meta", "data", "score", "more"],
            &["meta", "score", "data"],
            &["meta", "data", "Score"],
            &["one"],
        ] {
            let error = open_with_trees(&fs, names).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Incompatible, "{names:?}: {error:?}");
        }
        let engine = open_mem(&fs, small()).unwrap();
        let expected = SHAPE.after(0..30);
        assert_same(&read_all(&engine, &expected).unwrap(), &expected, "after the refusals");
    }
}

#[test]
fn no_trees_or_too_many_are_misuse() {
    let fs = MemFs::new();
    let names: Vec<String> = (0..65).map(|n| format!("tree{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(open_with_trees(&fs, &[]).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(open_with_trees(&fs, &names).unwrap_err().kind(), ErrorKind::Misuse);
    let engine = open_with_trees(&fs, &names[..64]).unwrap();
    let mut batch = Batch::new();
    batch.put(TreeId(63), b"k", b"v");
    write(&engine, &mut batch).unwrap();
    engine.close().unwrap();
    let engine = open_with_trees(&fs, &names[..64]).unwrap();
    assert_eq!(engine.get(TreeId(63), b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_closed_store_says_so_to_everyone() {
    let fs = MemFs::new();
    let engine = Engine::open(Arc::new(fs), Path::new(DIR), config(small())).unwrap();
    SHAPE.write(&engine, 0, SyncMode::Off).unwrap();
    let snapshot = engine.snapshot().unwrap();
    engine.close().unwrap();
    engine.close().unwrap();
    let kinds = [
        SHAPE.write(&engine, 1, SyncMode::Always).unwrap_err().kind(),
        engine.get(TreeId(0), b"k").unwrap_err().kind(),
        engine.sync().unwrap_err().kind(),
        engine.flush().unwrap_err().kind(),
        engine.compact().unwrap_err().kind(),
        engine.resume().unwrap_err().kind(),
        engine.verify().unwrap_err().kind(),
        engine.snapshot().unwrap_err().kind(),
        snapshot.get(TreeId(0), b"k").unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Closed; 9]);
}

/// A full transaction said that a string was too long, by the name of an option of Redis.
#[test]
fn a_full_transaction_says_so_as_a_reply_too() {
    let options = Options { txn_max_bytes: 64 << 10, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    let txn = db.begin().unwrap();
    let value = [b'v'; 40_000];
    txn.command(&[b"SET", b"a", &value]).unwrap();
    let full =
        Reply::Error("ERR the transaction would exceed 65536 bytes: see txn_max_bytes".into());
    assert_eq!(txn.command(&[b"SET", b"b", &value]).unwrap(), full);
}
