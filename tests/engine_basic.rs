//! The engine's stories in small: put, reopen, check.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::{
    Batch, Engine, EngineConfig, IterOptions, MemFs, TreeConfig, TreeId, WriteOptions,
};
use lsmkv::{ErrorKind, Options};

const META: TreeId = TreeId(0);
const DATA: TreeId = TreeId(1);

fn config(options: Options) -> EngineConfig {
    let trees = ["meta", "data", "score"].map(TreeConfig::named).to_vec();
    EngineConfig { options, trees }
}

fn small() -> Options {
    Options {
        write_buffer: 64 << 10,
        table_bytes: 64 << 10,
        block_bytes: 1024,
        ..Options::default()
    }
}

fn open(fs: &MemFs, options: Options) -> Engine {
    Engine::open(Arc::new(fs.clone()), Path::new("/db"), config(options)).unwrap()
}

fn put(engine: &Engine, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, key, value);
    engine.write(&mut batch, WriteOptions::default()).unwrap();
}

fn key(i: u32) -> Vec<u8> {
    format!("key{:08}", i.wrapping_mul(2_654_435_761) % 100_000).into_bytes()
}

#[test]
fn what_was_written_is_read_after_flush_compaction_and_reopen() {
    for threads in [0, 1] {
        let options = Options { background_threads: threads, ..small() };
        let fs = MemFs::new();
        let engine = open(&fs, options.clone());
        for i in 0..20_000 {
            put(&engine, DATA, &key(i), &i.to_le_bytes().repeat(10));
        }
        let check = |engine: &Engine| {
            for i in (0..20_000).step_by(7) {
                let value = engine.get(DATA, &key(i)).unwrap();
                assert_eq!(value.as_deref(), Some(&i.to_le_bytes().repeat(10)[..]), "{i}");
                assert_eq!(engine.get(META, &key(i)).unwrap(), None);
            }
            let mut it = engine.iter(DATA, IterOptions::default()).unwrap();
            it.seek_to_first().unwrap();
            let (mut count, mut last) = (0, Vec::new());
            while it.valid() {
                assert!(it.key() > &last[..]);
                last = it.key().to_vec();
                count += 1;
                it.next().unwrap();
            }
            assert_eq!(count, 20_000);
        };
        check(&engine);
        engine.wait_idle().unwrap();
        check(&engine);
        engine.compact().unwrap();
        check(&engine);
        engine.verify().unwrap();
        let stats = engine.stats();
        assert!(stats.flushes > 1 && stats.merges > 1, "{stats:?}");
        engine.close().unwrap();
        let engine = open(&fs, options.clone());
        check(&engine);
        drop(engine);
        let engine = open(&fs, options);
        check(&engine);
    }
}

#[test]
fn a_store_dropped_without_close_has_everything_in_its_log() {
    let fs = MemFs::new();
    let engine = open(&fs, small());
    put(&engine, META, b"a", b"1");
    put(&engine, DATA, b"b", b"2");
    drop(engine);
    for _ in 0..3 {
        let engine = open(&fs, small());
        assert_eq!(engine.get(META, b"a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(engine.get(DATA, b"b").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

#[test]
fn a_second_handle_on_a_directory_is_busy() {
    let fs = MemFs::new();
    let engine = open(&fs, small());
    let second = Engine::open(Arc::new(fs.clone()), Path::new("/db"), config(small()));
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
    engine.close().unwrap();
    open(&fs, small());
}
