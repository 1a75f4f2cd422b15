//! The cost of big collections, in rows written and blocks accessed, not in time.
//!
//! `LSMKV_QUEUE` is the number of pushes and pops, `LSMKV_FIELDS` the number of fields of the hash.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::{LevelStats, MemFs, Stats};
use lsmkv::io::clock::ManualClock;
use lsmkv::{Db, Options};

const META: usize = 0;
const DATA: usize = 1;

fn open(fs: &MemFs, options: &Options) -> Db {
    let options = Options { ttl_cleaner_interval_s: 0, packed_max_members: 0, ..options.clone() };
    let clock = Arc::new(ManualClock::at(1000));
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, clock).unwrap()
}

fn from_env(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn sum(stats: &Stats, of: impl Fn(&LevelStats) -> u64) -> u64 {
    stats.trees.iter().flat_map(|tree| &tree.levels).map(of).sum()
}

fn hash(db: &Db, key: &[u8], fields: u32) {
    for from in (0..fields).step_by(10_000) {
        let names: Vec<String> = (from..fields.min(from + 10_000)).map(|n| n.to_string()).collect();
        let pairs: Vec<_> = names.iter().map(|name| (name.as_bytes(), &b"value"[..])).collect();
        db.hset(key, &pairs).unwrap();
    }
}

/// What a command does to the store.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    commits: u64,
    /// Entries written, by tree.
    written: Vec<u64>,
    /// Blocks accessed, by tree.
    blocks: Vec<u64>,
}

fn work_of(db: &Db, command: impl FnOnce()) -> Work {
    let before = db.engine_stats();
    command();
    let after = db.engine_stats();
    let trees = || before.trees.iter().zip(&after.trees);
    let blocks = |tree: &lsmkv::engine::TreeStats| tree.cache_hits + tree.cache_misses;
    Work {
        commits: after.commits - before.commits,
        written: trees().map(|(a, b)| b.memtable_entries - a.memtable_entries).collect(),
        blocks: trees().map(|(a, b)| blocks(b) - blocks(a)).collect(),
    }
}

#[test]
fn deleting_a_big_hash_is_the_same_work_as_deleting_a_small_one_and_gives_all_space_back() {
    let fs = MemFs::untracked();
    let db = open(&fs, &Options::default());
    let fields = from_env("LSMKV_FIELDS", 1_000_000);
    hash(&db, b"big", fields);
    hash(&db, b"small", 10);
    db.compact().unwrap();
    let full = sum(&db.engine_stats(), |level| level.bytes);
    assert_eq!(sum(&db.engine_stats(), |level| level.entries), u64::from(fields) + 12);
    let small = work_of(&db, || assert_eq!(db.del(&[b"small"]).unwrap(), 1));
    let big = work_of(&db, || assert_eq!(db.del(&[b"big"]).unwrap(), 1));
    assert_eq!(big, small);
    assert_eq!(
        (small.commits, &small.written[..]),
        (1, &[1, 0, 0][..]),
        "one tombstone of a record"
    );
    assert_eq!((small.blocks[META], small.blocks[DATA]), (1, 0));
    assert_eq!(db.hlen(b"big").unwrap(), 0);
    db.compact().unwrap();
    let left = sum(&db.engine_stats(), |level| level.bytes);
    assert!(left * 100 < full, "{left} of {full} bytes are left");
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.close().unwrap();
    let db = open(&fs, &Options::default());
    assert_eq!((db.hlen(b"big").unwrap(), db.dbsize().unwrap()), (0, 0));
}

/// Elsewhere each pop left a tombstone, the next one walked over all of them, and a busy queue fell
/// to tens of operations a second. The queue here is longer than a memtable: elements are popped
/// from tables.
#[test]
fn a_queue_leaves_no_tombstone_and_accesses_at_most_one_block_per_pop() {
    const STANDING: u32 = 50_000;
    let fs = MemFs::untracked();
    let options = Options { write_buffer: 1 << 20, ..Options::default() };
    let db = open(&fs, &options);
    let rounds = from_env("LSMKV_QUEUE", 1_000_000);
    let element = |n: u32| format!("element {n:09}").into_bytes();
    for n in 0..rounds + STANDING {
        db.rpush(b"queue", &[&element(n)]).unwrap();
        if let Some(oldest) = n.checked_sub(STANDING) {
            assert_eq!(db.lpop(b"queue").unwrap().unwrap(), element(oldest));
        }
    }
    let stats = db.engine_stats();
    let data = &stats.trees[DATA];
    let (blocks, pops) = (data.cache_hits + data.cache_misses, u64::from(rounds));
    assert!(blocks <= pops, "{blocks} blocks for {pops} pops");
    assert!(blocks > pops / 4, "{blocks} blocks: the queue was in memory");
    db.flush().unwrap();
    let stats = db.engine_stats();
    assert_eq!((sum(&stats, |level| level.tombstones), stats.elided), (0, 0));
    assert_eq!(db.llen(b"queue").unwrap(), i64::from(STANDING));
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.compact().unwrap();
    assert_eq!(sum(&db.engine_stats(), |level| level.entries), u64::from(STANDING) + 1);
    db.close().unwrap();
    let db = open(&fs, &options);
    assert_eq!(db.lpop(b"queue").unwrap().unwrap(), element(rounds));
}

/// A COPY beyond the size of its commits.
#[test]
fn a_big_copy_is_written_in_commits_of_a_megabyte() {
    let fs = MemFs::untracked();
    let db = open(&fs, &Options::default());
    let fields = from_env("LSMKV_FIELDS", 1_000_000) / 4;
    hash(&db, b"big", fields);
    db.compact().unwrap();
    let log = || db.engine_stats().log_bytes;
    let before = log();
    let work = work_of(&db, || assert!(db.copy(b"big", b"copy", false).unwrap()));
    let written = log() - before;
    assert!(work.commits >= written >> 20 && work.commits <= (written >> 19) + 2, "{work:?}");
    assert_eq!(db.hlen(b"copy").unwrap(), i64::from(fields));
    assert_eq!(db.hget(b"copy", b"77").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.del(&[b"big"]).unwrap();
    db.close().unwrap();
    let db = open(&fs, &Options::default());
    assert_eq!(db.hlen(b"copy").unwrap(), i64::from(fields));
    assert_eq!(db.check().unwrap(), [""; 0]);
}
