//! A manifest that has grown is replaced while the store is open.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use lsmkv::Options;
use lsmkv::engine::{
    Batch, CrashMode, Engine, EngineConfig, MemFs, TreeConfig, TreeId, WriteOptions,
};

/// Each flush adds a table of every tree to the manifest.
const TREES: u8 = 32;

fn open(fs: &MemFs) -> Engine {
    let trees = (0..TREES).map(|tree| TreeConfig::named(&format!("tree{tree}"))).collect();
    let options = Options { background_threads: 0, ..Options::default() };
    let config = EngineConfig { options, trees };
    Engine::open(Arc::new(fs.clone()), Path::new("/db"), config).unwrap()
}

/// Keys as long as the bounds that a manifest stores.
fn key(i: u32) -> Vec<u8> {
    format!("{:0>240}", i % 10).into_bytes()
}

/// Writes and flushes one key of every tree.
fn flush(engine: &Engine, i: u32) {
    let mut batch = Batch::new();
    (0..TREES).for_each(|tree| batch.put(TreeId(tree), &key(i), &i.to_le_bytes()));
    engine.write(&mut batch, WriteOptions::default()).unwrap();
    engine.flush().unwrap();
}

/// The names of the manifests.
fn manifests(fs: &MemFs) -> Vec<String> {
    let names = fs
        .paths()
        .into_iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    names.filter(|name| name.starts_with("MANIFEST")).collect()
}

/// The store holds the last value of every key, written before `end`, and one manifest.
fn check(fs: &MemFs, end: u32) {
    let engine = open(fs);
    for i in end.saturating_sub(9)..end {
        for tree in 0..TREES {
            let value = engine.get(TreeId(tree), &key(i)).unwrap();
            assert_eq!(value.as_deref(), Some(&i.to_le_bytes()[..]), "{i} in tree {tree}");
        }
    }
    engine.verify().unwrap();
    assert_eq!(manifests(fs).len(), 1, "the others were removed");
}

#[test]
fn the_store_is_whole_after_a_roll_and_after_a_power_cut_at_every_sync_of_it() {
    let fs = MemFs::new();
    let engine = open(&fs);
    let first = manifests(&fs);
    // The states at every sync while there are two manifests, and just after the old one went.
    let cuts: Arc<Mutex<Vec<MemFs>>> = Arc::default();
    let seen = Arc::clone(&cuts);
    fs.on_sync(move |fs, _| {
        if manifests(fs).len() > 1 {
            let modes = [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic];
            let mut seen = seen.lock().unwrap();
            let seed = seen.len() as u64;
            seen.extend(modes.map(|mode| fs.crash_clone(seed, mode)));
        }
    });
    let mut flushes = 0;
    while manifests(&fs) == first {
        flush(&engine, flushes);
        flushes += 1;
        assert!(flushes < 2000, "the manifest grew by {TREES} tables a flush and was kept");
    }
    assert_eq!(manifests(&fs).len(), 1);
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    assert!(cuts.len() >= 9, "a roll syncs the manifest, CURRENT and the directory");
    // Whatever manifest is current, it holds all flushes: the edit that made it roll is in both.
    for fs in cuts {
        check(&fs, flushes);
    }
    flush(&engine, flushes);
    check(&fs.crash_clone(1, CrashMode::DropUnsynced), flushes + 1);
    engine.close().unwrap();
    check(&fs, flushes + 1);
}
