//! Counts and selections against a model, in random histories, and how much they look at.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{
    Batch, CrashMode, Engine, EngineConfig, MemFs, Reader, Snapshot, TreeConfig, TreeId,
    WriteOptions,
};
use crate::io::splitmix::SplitMix64;
use crate::options::Options;

const TREE: TreeId = TreeId(1);

type Keys = BTreeSet<Vec<u8>>;

fn open(fs: &MemFs, options: &Options) -> Engine {
    let trees = ["meta", "data"].map(TreeConfig::named).to_vec();
    let config = EngineConfig { options: options.clone(), trees };
    Engine::open(Arc::new(fs.clone()), Path::new("/db"), config).unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("zset:{:05}", n).into_bytes()
}

/// Many memtables, tables and levels for few keys.
fn tiny(random: &mut SplitMix64) -> Options {
    Options {
        write_buffer: [4 << 10, 32 << 10, 256 << 10][random.below(3) as usize],
        table_bytes: [2 << 10, 16 << 10][random.below(2) as usize],
        block_bytes: [100, 500][random.below(2) as usize],
        level_ratio: 3,
        log_segment_bytes: 64 << 10,
        memory_budget: 4 << 20,
        background_threads: 0,
        ..Options::default()
    }
}

fn compare(reader: &Reader, model: &Keys, random: &mut SplitMix64) {
    let all: Vec<&Vec<u8>> = model.iter().collect();
    assert_eq!(reader.count(TREE, b"", b"").unwrap(), all.len() as u64);
    for _ in 0..4 {
        let (lower, upper) = (key(random.below(3000)), key(random.below(3000)));
        let first = all.partition_point(|key| **key < lower);
        let inside = all.partition_point(|key| **key < upper).saturating_sub(first);
        assert_eq!(reader.count(TREE, &lower, &upper).unwrap(), inside as u64);
        let nth = random.below(inside as u64 + 2);
        let expected = all.get(first + nth as usize).filter(|_| (nth as usize) < inside);
        let selected = reader.select(TREE, &lower, &upper, nth).unwrap();
        assert_eq!(selected.as_deref(), expected.map(|key| &key[..]), "{nth} of {inside}");
        let nth = random.below(all.len() as u64 + 1);
        let selected = reader.select(TREE, b"", b"", nth).unwrap();
        assert_eq!(selected.as_deref(), all.get(nth as usize).map(|key| &key[..]), "{nth}");
    }
}

/// Writes some keys, one of them perhaps twice, as a writer who knows what is set.
fn write(engine: &Engine, model: &mut Keys, random: &mut SplitMix64) {
    let mut batch = Batch::new();
    let at = random.below(3000);
    for n in 0..=random.below(60) {
        let spread = if random.below(2) == 0 { n / 2 } else { random.below(3000) };
        let key = key((at + spread) % 3000);
        match (random.below(3) != 0, model.contains(&key)) {
            (true, true) => batch.put(TREE, &key, b"again"),
            (true, false) => batch.put_absent(TREE, &key, &[b'v'; 20]),
            (false, true) => batch.delete_present(TREE, &key),
            (false, false) => batch.delete(TREE, &key),
        }
        match batch.operations().last().unwrap().unwrap().kind as u8 & 1 {
            1 => model.insert(key),
            _ => model.remove(&key),
        };
    }
    engine.write(&mut batch, WriteOptions::default()).unwrap();
}

fn history(seed: u64, steps: u32) {
    let mut random = SplitMix64::new(seed);
    let options = tiny(&mut random);
    let mut fs = MemFs::new();
    let mut engine = open(&fs, &options);
    let mut model = Keys::new();
    let mut snapshots: Vec<(Snapshot, Keys)> = Vec::new();
    for _ in 0..steps {
        match random.below(24) {
            0 => engine.flush().unwrap(),
            1 => engine.compact().unwrap(),
            2 => engine.wait_idle().unwrap(),
            3 | 4 => snapshots.push((engine.snapshot().unwrap(), model.clone())),
            5 if !snapshots.is_empty() => {
                let at = random.below(snapshots.len() as u64) as usize;
                drop(snapshots.swap_remove(at));
            }
            6 if random.below(4) == 0 => {
                snapshots.clear();
                engine.sync().unwrap();
                let mode = CrashMode::ALL[random.below(4) as usize];
                fs = fs.crash_clone(random.below(u64::MAX), mode);
                drop(engine);
                engine = open(&fs, &options);
            }
            7 if random.below(4) == 0 => {
                snapshots.clear();
                engine.close().unwrap();
                engine = open(&fs, &options);
            }
            _ => (0..10).for_each(|_| write(&engine, &mut model, &mut random)),
        }
        compare(&engine.reader().unwrap(), &model, &mut random);
        for (snapshot, then) in &snapshots {
            compare(&snapshot.reader().unwrap(), then, &mut random);
        }
        if snapshots.len() > 4 {
            drop(snapshots.remove(0));
        }
    }
    engine.verify().unwrap();
}

#[test]
fn counts_and_selections_agree_with_a_model_in_random_histories() {
    let histories = std::env::var("LSMKV_RANK_HISTORIES").ok().and_then(|n| n.parse().ok());
    (0..histories.unwrap_or(12)).for_each(|seed| history(seed, 150));
}

/// A reader in the middle of the writes of another thread sees one moment.
#[test]
fn a_count_beside_writes_is_that_of_its_moment() {
    let fs = MemFs::new();
    let engine = open(&fs, &Options { write_buffer: 64 << 10, ..Options::default() });
    let writes = 3000u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each batch adds a key and, from the hundredth on, removes one: so there are 99 or 100
            // keys, never another number.
            for n in 0..writes {
                let mut batch = Batch::new();
                batch.put_absent(TREE, &key(n * 7 % 3000), b"");
                if n >= 100 {
                    batch.delete_present(TREE, &key((n - 100) * 7 % 3000));
                }
                engine.write(&mut batch, WriteOptions::default()).unwrap();
            }
        });
        loop {
            let reader = engine.reader().unwrap();
            let count = reader.count(TREE, b"", b"").unwrap();
            let mut iter = reader.iter(TREE, crate::engine::IterOptions::default()).unwrap();
            iter.seek_to_first().unwrap();
            let mut walked = 0;
            while iter.valid() {
                walked += 1;
                iter.next().unwrap();
            }
            assert_eq!(count, walked);
            if reader.sequence() == writes {
                break;
            }
        }
    });
}
