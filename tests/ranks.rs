//! What ranks, counts and choices by position cost: it must not grow with the number of members.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lsmkv::types::{By, ZAdd, ZRange};
use lsmkv::{Db, Options};

fn member(n: u32) -> Vec<u8> {
    // In no order, as members of a leaderboard come.
    format!("member:{:08x}:{n}", n.wrapping_mul(0x9e37_79b1)).into_bytes()
}

/// A sorted set by score, one by member, a hash and a set with this many members each. Most are in
/// levels, some in level 0 and in the memtable.
fn fill(db: &Db, count: u32) {
    let numbers: Vec<u32> = (0..count).collect();
    let (most, rest) = numbers.split_at(numbers.len() * 9 / 10);
    let (some, last) = rest.split_at(rest.len() / 2);
    for (part, numbers) in [most, some, last].into_iter().enumerate() {
        for some in numbers.chunks(1000) {
            let names: Vec<_> = some.iter().map(|n| (f64::from(*n), member(*n))).collect();
            let scored: Vec<_> = names.iter().map(|(score, name)| (*score, &name[..])).collect();
            let alike: Vec<_> = names.iter().map(|(_, name)| (1.0, &name[..])).collect();
            let fields: Vec<_> = names.iter().map(|(_, name)| (&name[..], &name[..8])).collect();
            let members: Vec<_> = names.iter().map(|(_, name)| &name[..]).collect();
            db.zadd(b"by score", &scored, ZAdd::default()).unwrap();
            db.zadd(b"by member", &alike, ZAdd::default()).unwrap();
            db.hset(b"hash", &fields).unwrap();
            db.sadd(b"set", &members).unwrap();
        }
        match part {
            0 => db.compact().unwrap(),
            1 => db.flush().unwrap(),
            _ => {}
        }
    }
}

/// A command to measure, with a number that differs from call to call.
type Call = (&'static str, fn(&Db, u32, u32));

const CALLS: &[Call] = &[
    ("ZRANK", |db, count, n| {
        let n = n % count;
        assert_eq!(db.zrank(b"by score", &member(n)).unwrap(), Some(i64::from(n)));
    }),
    ("ZREVRANK", |db, count, n| {
        let n = n % count;
        let rank = i64::from(count - 1 - n);
        assert_eq!(db.zrevrank(b"by score", &member(n)).unwrap(), Some(rank));
    }),
    ("ZCOUNT of half", |db, count, n| {
        let from = n % (count / 2);
        let range = (f64::from(from), f64::from(from + count / 2));
        let counted = db.zcount(b"by score", Bound::Included(range.0), Bound::Excluded(range.1));
        assert_eq!(counted.unwrap(), i64::from(count / 2));
    }),
    ("ZLEXCOUNT", |db, _, n| {
        let low = format!("member:{:08x}", n.wrapping_mul(0x9e37_79b1) / 2);
        let counted = db.zlexcount(b"by member", Bound::Included(low.as_bytes()), Bound::Unbounded);
        assert!(counted.unwrap() > 0);
    }),
    ("ZRANGE of 10", |db, count, n| {
        let first = i64::from(n % (count - 10));
        let found = db.zrange(b"by score", &ZRange::of(By::Rank(first, first + 9))).unwrap();
        assert_eq!((found.len(), &found[0][..]), (10, &member(n % (count - 10))[..]));
    }),
    ("ZREVRANGE of 10", |db, count, n| {
        let first = i64::from(n % (count - 10));
        assert_eq!(db.zrevrange(b"by score", first, first + 9).unwrap().len(), 10);
    }),
    ("ZRANGE by score, deep LIMIT", |db, count, n| {
        let range = ZRange::of(By::Score(Bound::Included(5.0), Bound::Unbounded));
        let range = range.limited(i64::from(n % (count - 20)), 10);
        assert_eq!(db.zrange(b"by score", &range).unwrap().len(), 10);
    }),
    ("ZRANDMEMBER", |db, _, _| assert!(db.zrandmember(b"by score").unwrap().is_some())),
    ("SRANDMEMBER", |db, _, _| assert!(db.srandmember(b"set").unwrap().is_some())),
    ("HRANDFIELD", |db, _, _| assert!(db.hrandfield(b"hash").unwrap().is_some())),
    // These two put back what they remove.
    ("ZREMRANGEBYRANK of 1", |db, count, n| {
        let n = n % count;
        let rank = i64::from(n);
        assert_eq!(db.zremrangebyrank(b"by score", rank, rank).unwrap(), 1);
        db.zadd(b"by score", &[(f64::from(n), &member(n))], ZAdd::default()).unwrap();
    }),
    ("SPOP", |db, _, _| {
        let popped = db.spop(b"set").unwrap().unwrap();
        assert_eq!(db.sadd(b"set", &[&popped]).unwrap(), 1);
    }),
];

/// Blocks of all trees that were looked at so far.
fn blocks(db: &Db) -> u64 {
    db.engine_stats().trees.iter().map(|tree| tree.cache_hits + tree.cache_misses).sum()
}

#[test]
fn the_blocks_that_a_rank_needs_do_not_grow_with_the_members() {
    const TIMES: u32 = 50;
    let options = || Options { table_bytes: 256 << 10, ..Options::default() };
    let costs = [2_000, 40_000].map(|count| {
        let db = Db::open(":memory:", options()).unwrap();
        fill(&db, count);
        let cost = |(_, call): &Call| {
            let before = blocks(&db);
            (0..TIMES).for_each(|n| call(&db, count, n.wrapping_mul(7919)));
            (blocks(&db) - before) / u64::from(TIMES)
        };
        let costs: Vec<_> = CALLS.iter().map(cost).collect();
        assert_eq!(db.check().unwrap(), [""; 0]);
        costs
    });
    for ((name, _), (few, many)) in CALLS.iter().zip(costs[0].iter().zip(&costs[1])) {
        // Twenty times as many members, walked, would be hundreds of blocks.
        assert!(*many <= 2 * few + 12, "{name}: {few} blocks of 2,000 members, {many} of 40,000");
    }
}

/// The median and the worst of at least 500 calls, in microseconds, which take at least this long.
fn time(db: &Db, count: u32, call: fn(&Db, u32, u32), at_least: Duration) -> (f64, f64) {
    let start = Instant::now();
    let mut times: Vec<f64> = (0u32..)
        .take_while(|n| *n < 500 || start.elapsed() < at_least)
        .map(|n| {
            let begin = Instant::now();
            call(db, count, n.wrapping_mul(0x9e37_79b1) >> 4);
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() - 1])
}

/// Prints a table of times. LSMKV_RANK_MEMBERS sets the number of members: see `make ranks`. With a
/// million of them and an optimised library, every call must be as quick as it is meant to be.
#[test]
fn the_time_that_a_rank_takes_does_not_grow_with_the_members() {
    let members = std::env::var("LSMKV_RANK_MEMBERS").ok().and_then(|n| n.parse().ok());
    let members: u32 = members.unwrap_or(40_000);
    let strict = members >= 1_000_000 && !cfg!(debug_assertions);
    let dir = tempfile::tempdir().unwrap();
    let stores = [1_000, members].map(|count| {
        let db = Db::open(dir.path().join(count.to_string()), Options::default()).unwrap();
        fill(&db, count);
        (count, db)
    });
    println!("Median in us (the longest in brackets).\n");
    println!(
        "| | 1,000 members | {members} | beside updates | updates a second |\n|---|---|---|---|---|"
    );
    let mut slow = Vec::new();
    for (name, call) in CALLS {
        let [few, many] =
            [0, 1].map(|at: usize| time(&stores[at].1, stores[at].0, *call, Duration::ZERO));
        let (store, at_least) = (&stores[1].1, Duration::from_secs(u64::from(strict)));
        let (beside, rate) =
            beside_updates(store, members, || time(store, members, *call, at_least));
        let shown = |(median, longest): (f64, f64)| format!("{median:.1} ({longest:.0})");
        println!("| {name} | {} | {} | {} | {rate:.0} |", shown(few), shown(many), shown(beside));
        // A walk of 40,000 members takes more than a millisecond.
        let loose = 6.0 * few.0 + 300.0;
        let limit = if strict { (6.0 * few.0).min(100.0) } else { loose };
        let both = if strict { many.0.max(beside.0) } else { many.0 };
        if both > limit || (strict && rate < 20_000.0) {
            slow.push(format!("{name}: {both:.1} us of {limit:.1}, {rate:.0} updates a second"));
        }
    }
    assert_eq!(slow, [""; 0]);
}

/// Runs `work` while another thread changes scores of the sorted set more than 20,000 times a second;
/// the result, and how many changes a second there were.
fn beside_updates<T>(db: &Db, members: u32, work: impl FnOnce() -> T) -> (T, f64) {
    let (done, updates) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            while !done.load(Ordering::Relaxed) {
                let n = updates.fetch_add(1, Ordering::Relaxed);
                // The order stays the same.
                let member_number = n.wrapping_mul(7919) % members;
                let score = f64::from(member_number) + f64::from(1 + n % 1000) / 2000.0;
                let name = member(member_number);
                db.zadd(b"by score", &[(score, &name)], ZAdd::default()).unwrap();
                let due = Duration::from_micros(47) * n;
                if let Some(early) = due.checked_sub(begin.elapsed()) {
                    std::thread::sleep(early.min(Duration::from_millis(1)));
                }
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        let (begin, first) = (Instant::now(), updates.load(Ordering::Relaxed));
        let result = work();
        let made = updates.load(Ordering::Relaxed) - first;
        done.store(true, Ordering::Relaxed);
        (result, f64::from(made) / begin.elapsed().as_secs_f64())
    })
}
