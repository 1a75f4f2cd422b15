//! Keys that agree in more bytes than the bounds of a table keep, in tables so small that every few
//! of them begin a new one: reads, walks and merges tell them apart.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod support;

use std::collections::BTreeMap;

use lsmkv::engine::{Engine, IterOptions, MemFs};
use lsmkv::io::splitmix::SplitMix64;
use support::{META, Reads, delete, open, put, tiny};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key of one of a few families, which share 0 to 3,000 bytes.
fn key(random: &mut SplitMix64) -> Vec<u8> {
    let shared = [0, 1000, 1023, 1024, 1025, 3000];
    let family = usize::try_from(random.below(shared.len() as u64)).unwrap();
    [vec![b'k'; shared[family]], random.below(60).to_string().into_bytes()].concat()
}

fn check(engine: &Engine, model: &Model, random: &mut SplitMix64) {
    for _ in 0..50 {
        let key = key(random);
        assert_eq!(engine.read(META, &key).as_ref(), model.get(&key));
    }
    let (from, to) = (key(random), key(random));
    let bounds = [Some(from.clone().min(to.clone()).into()), Some(from.max(to).into())];
    for [lower, upper] in [[None, None], bounds] {
        let inside = |key: &[u8]| {
            lower.as_deref().is_none_or(|lower: &[u8]| key >= lower)
                && upper.as_deref().is_none_or(|upper: &[u8]| key < upper)
        };
        let expected: Vec<_> = model.iter().filter(|(key, _)| inside(key)).collect();
        let options =
            IterOptions { lower: lower.clone(), upper: upper.clone(), ..IterOptions::default() };
        let mut iter = engine.iter(META, options).unwrap();
        iter.seek_to_first().unwrap();
        for (key, value) in &expected {
            assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
            iter.next().unwrap();
        }
        assert!(!iter.valid());
        iter.seek_to_last().unwrap();
        for (key, value) in expected.iter().rev() {
            assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
            iter.prev().unwrap();
        }
        assert!(!iter.valid());
        let sought = key(random);
        iter.seek(&sought).unwrap();
        let next = expected.iter().find(|(key, _)| **key >= sought);
        assert_eq!(iter.valid().then(|| iter.key()), next.map(|(key, _)| &key[..]));
    }
}

#[test]
fn keys_with_long_common_prefixes_are_told_apart() {
    for seed in 0..4 {
        let mut random = SplitMix64::new(seed);
        let (fs, mut model) = (MemFs::new(), Model::new());
        let mut engine = open(&fs, &tiny());
        for round in 0..12 {
            for _ in 0..150 {
                let key = key(&mut random);
                if random.below(4) == 0 {
                    delete(&engine, META, &key);
                    model.remove(&key);
                } else {
                    let value = random.below(1 << 40).to_string().repeat(5).into_bytes();
                    put(&engine, META, &key, &value);
                    model.insert(key, value);
                }
            }
            match round % 4 {
                0 => engine.flush().unwrap(),
                1 => engine.compact().unwrap(),
                2 => {
                    engine.close().unwrap();
                    engine = open(&fs, &tiny());
                }
                _ => {}
            }
            check(&engine, &model, &mut random);
            engine.verify().unwrap();
        }
    }
}
