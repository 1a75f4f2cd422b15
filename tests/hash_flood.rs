//! Keys chosen so that an unseeded hash maps them all to one value: whoever chooses keys must not
//! choose how long lookups take.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

use std::time::{Duration, Instant};

use lsmkv::{Db, Options};

#[path = "support/flood_keys.rs"]
mod flood_keys;
use flood_keys::{colliding, harmless};

const KEYS: u64 = 20_000;
const ROUNDS: usize = 5;

/// The least time of several rounds over the same keys, each after the preparation.
fn time(prepare: impl Fn(), mut call: impl FnMut(u64)) -> Duration {
    let round = || {
        prepare();
        let started = Instant::now();
        (0..KEYS).step_by(20).for_each(&mut call);
        started.elapsed()
    };
    std::iter::repeat_with(round).take(ROUNDS).min().unwrap()
}

fn assert_alike(what: &str, colliding: Duration, harmless: Duration) {
    let limit = harmless * 2 + Duration::from_micros(200);
    assert!(colliding <= limit, "{what}: {colliding:?} colliding, {harmless:?} harmless");
}

fn fill(db: &Db, key: fn(u64) -> Vec<u8>) {
    for i in 0..KEYS {
        db.set(&key(i), b"1").unwrap();
    }
}

/// Compares calls on both kinds of keys. Before each round `settle` puts the keys where they belong.
fn compare(place: &str, bad: &Db, good: &Db, settle: fn(&Db)) {
    let get = |db: &Db, key: fn(u64) -> Vec<u8>, first: u64, found: bool| {
        time(|| settle(db), |i| assert_eq!(db.get(&key(first + i)).unwrap().is_some(), found))
    };
    let present = |db, key| get(db, key, 0, true);
    assert_alike(&format!("GET {place}"), present(bad, colliding), present(good, harmless));
    let absent = |db, key| get(db, key, KEYS, false);
    assert_alike(&format!("GET of none {place}"), absent(bad, colliding), absent(good, harmless));
    let incr =
        |db: &Db, key: fn(u64) -> Vec<u8>| time(|| settle(db), |i| _ = db.incr(&key(i)).unwrap());
    assert_alike(&format!("INCR {place}"), incr(bad, colliding), incr(good, harmless));
}

#[test]
fn colliding_keys_cost_what_harmless_ones_do() {
    let scratch = tempfile::tempdir().unwrap();
    let open = |name| Db::open(scratch.path().join(name), Options::default()).unwrap();
    let (bad, good) = (open("bad"), open("good"));
    fill(&bad, colliding);
    fill(&good, harmless);
    compare("in memory", &bad, &good, |_| ());
    // An INCR puts its key into the memtable, where the next round would find it.
    compare("in tables", &bad, &good, |db| db.compact().unwrap());
}
