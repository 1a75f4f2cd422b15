use std::collections::HashMap;
use std::path::Path;

use super::*;
use crate::engine::{Batch, CacheFill, Engine, EngineConfig, Reader, TreeConfig, WriteOptions};
use crate::io::mem::MemFs;
use crate::io::splitmix::SplitMix64;
use crate::options::Options;

const TREE: TreeId = TreeId(0);

fn open() -> Engine {
    let trees = vec![TreeConfig::named("only")];
    let config = EngineConfig { options: Options::default(), trees };
    Engine::open(Arc::new(MemFs::untracked()), Path::new("/db"), config).unwrap()
}

fn key(n: u32) -> Vec<u8> {
    format!("k{n:05}").into_bytes()
}

fn put(engine: &Engine, keys: Range<u32>, value: &[u8]) {
    let mut batch = Batch::new();
    for n in keys {
        batch.put(TREE, &key(n), value);
    }
    engine.commit(&mut batch, WriteOptions::default()).unwrap();
}

fn delete(engine: &Engine, keys: Range<u32>) {
    let mut batch = Batch::new();
    for n in keys {
        batch.delete(TREE, &key(n));
    }
    engine.commit(&mut batch, WriteOptions::default()).unwrap();
}

fn bounds(lower: &[u8], upper: Option<&[u8]>) -> IterOptions {
    let upper = upper.map(Bytes::copy_from_slice);
    IterOptions { lower: Some(Bytes::copy_from_slice(lower)), upper, cache_fill: CacheFill::Fill }
}

/// How often each key and value of `[lower, upper)` comes in so many successful draws, and how
/// many draws that took.
fn tally(
    reader: &Reader,
    (lower, upper): (&[u8], Option<&[u8]>),
    wanted: u32,
) -> (HashMap<Drawn, u32>, u32) {
    let sampler = reader.sampler(TREE, bounds(lower, upper)).unwrap();
    let mut random = SplitMix64::new(11);
    let (mut counts, mut found, mut draws) = (HashMap::new(), 0, 0);
    while found < wanted {
        draws += 1;
        assert!(draws < wanted * 100, "{found} of {wanted}");
        if let Some(drawn) = sampler.draw(&mut |below| random.below(below)).unwrap() {
            *counts.entry(drawn).or_insert(0) += 1;
            found += 1;
        }
    }
    (counts, draws)
}

/// A hundred each: the standard deviation is ten.
fn even(counts: &HashMap<Drawn, u32>) {
    let odd: Vec<_> = counts.iter().filter(|(_, count)| !(50..=150).contains(*count)).collect();
    assert!(odd.is_empty(), "{odd:?}");
}

#[test]
fn every_key_that_is_shown_is_equally_likely_wherever_it_lies() {
    let engine = open();
    put(&engine, 0..900, b"first");
    engine.flush().unwrap();
    put(&engine, 300..600, b"second");
    delete(&engine, 100..200);
    engine.flush().unwrap();
    put(&engine, 500..1000, b"third");
    put(&engine, 950..1000, b"fourth");
    delete(&engine, 0..50);
    let reader = engine.reader().unwrap();
    put(&engine, 0..2000, b"too late");
    let (counts, _) = tally(&reader, (b"", None), 85_000);
    even(&counts);
    assert_eq!(counts.len(), 850);
    for ((drawn, value), _) in counts {
        let expected = reader.get(TREE, &drawn).unwrap().unwrap();
        assert_eq!(value, expected, "{}", drawn.escape_ascii());
    }
}

#[test]
fn only_keys_within_the_bounds_are_drawn() {
    let engine = open();
    put(&engine, 0..3000, b"v");
    engine.flush().unwrap();
    put(&engine, 1000..1100, b"w");
    let part = (&key(900)[..], Some(&key(1200)[..]));
    let (counts, _) = tally(&engine.reader().unwrap(), part, 30_000);
    even(&counts);
    assert_eq!(counts.len(), 300);
    assert!(counts.keys().all(|(drawn, _)| (key(900)..key(1200)).contains(drawn)));
    let nothing = engine.reader().unwrap().sampler(TREE, bounds(b"z", None)).unwrap();
    assert_eq!(nothing.draw(&mut |below| below - 1).unwrap(), None);
}

/// Blocks of large values hold few entries, blocks of small ones many: those are drawn as often.
#[test]
fn blocks_of_different_density_are_made_up_for() {
    let engine = open();
    put(&engine, 0..100, &[7; 200]);
    put(&engine, 100..400, &[8; 60]);
    engine.compact().unwrap();
    let (counts, draws) = tally(&engine.reader().unwrap(), (b"", None), 40_000);
    even(&counts);
    assert_eq!(counts.len(), 400);
    assert!(draws < 40_000 * 6, "{draws}");
}

#[test]
fn a_draw_looks_at_a_block_or_two_and_not_at_the_range() {
    let engine = open();
    put(&engine, 0..50_000, b"value");
    engine.compact().unwrap();
    let looked_at = |engine: &Engine| {
        let stats = engine.stats();
        stats.trees[0].cache_hits + stats.trees[0].cache_misses
    };
    let reader = engine.reader().unwrap();
    let before = looked_at(&engine);
    let (_, draws) = tally(&reader, (b"", None), 1000);
    let blocks = looked_at(&engine) - before;
    assert!(blocks <= u64::from(draws) + 1000 && draws < 6000, "{blocks} blocks, {draws} draws");
}
