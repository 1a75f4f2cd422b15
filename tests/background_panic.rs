//! A defect in a background thread turns writes off and nothing else: reads go on, nobody waits
//! for ever, and what was acknowledged is there after the next open.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lsmkv::engine::{
    Batch, Engine, EngineConfig, Filter, FilterFactory, FilterJob, MemFs, TreeConfig, TreeId,
    WriteOptions,
};
use lsmkv::{ErrorKind, Options, Result};

const TREE: TreeId = TreeId(0);

#[derive(Debug)]
struct Defect;

impl FilterFactory for Defect {
    fn filter(&self, _: &FilterJob) -> Result<Option<Box<dyn Filter>>> {
        panic!("injected")
    }
}

fn open(fs: &MemFs, defect: bool) -> Engine {
    let mut tree = TreeConfig::named("only");
    if defect {
        tree.filter = Some(Arc::new(Defect));
    }
    let options = Options { write_buffer: 64 << 10, block_bytes: 1024, ..Options::default() };
    let config = EngineConfig { options, trees: vec![tree] };
    Engine::open(Arc::new(fs.clone()), Path::new("/db"), config).unwrap()
}

#[test]
fn a_panic_in_a_compaction_degrades_the_store_and_loses_nothing() {
    let fs = MemFs::new();
    let engine = open(&fs, true);
    let start = Instant::now();
    let mut acknowledged = 0u32;
    // Enough overlapping flushes to make a compaction due, then on until writes are refused.
    let refusal = loop {
        let mut batch = Batch::new();
        batch.put(TREE, &(acknowledged % 500).to_be_bytes(), &[7; 400]);
        batch.put(TREE, b"last", &acknowledged.to_be_bytes());
        match engine.write(&mut batch, WriteOptions::default()) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(start.elapsed() < Duration::from_secs(60), "writes were never refused");
    };
    assert_eq!(refusal.kind(), ErrorKind::Degraded);
    assert!(refusal.message().contains("injected"), "{refusal}");
    let last = (acknowledged - 1).to_be_bytes();
    assert_eq!(engine.get(TREE, b"last").unwrap().as_deref(), Some(&last[..]));
    assert_eq!(engine.close().unwrap_err().kind(), ErrorKind::Degraded);
    drop(engine);
    let engine = open(&fs, false);
    assert_eq!(engine.get(TREE, b"last").unwrap().as_deref(), Some(&last[..]));
}
