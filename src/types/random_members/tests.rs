use std::collections::{HashMap, HashSet};

use super::*;
use crate::txn::Db;
use crate::types::ZAdd;
use crate::types::testing::unpacked;

fn set_of(members: impl Iterator<Item = Vec<u8>>) -> Db {
    let db = Db::open(":memory:", unpacked()).unwrap();
    let members: Vec<_> = members.collect();
    for some in members.chunks(10_000) {
        db.sadd(b"s", &some.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    }
    db
}

fn numbered(count: u64) -> Db {
    set_of((0..count).map(|n| format!("member:{n:07}").into_bytes()))
}

/// How often each was drawn, by a part of its name.
fn tally<T: Eq + std::hash::Hash>(drawn: &[Bytes], part: impl Fn(&[u8]) -> T) -> HashMap<T, u32> {
    let mut counts = HashMap::new();
    for member in drawn {
        *counts.entry(part(member)).or_insert(0) += 1;
    }
    counts
}

/// SRANDMEMBER of the set in three ways: by position; the same in a transaction that has written
/// half of the members itself; as of a set from before the store began to count.
fn all_ways(db: &Db, count: i64) -> [Vec<Bytes>; 3] {
    let drawn = db.srandmember_count(b"s", count).unwrap();
    let written = db.write(&[b"s"], |tx| {
        let members = tx.smembers(b"s")?;
        let some: Vec<_> = members.iter().step_by(2).map(|member| &member[..]).collect();
        tx.srem(b"s", &some)?;
        tx.sadd(b"s", &some)?;
        tx.srandmember_count(b"s", count)
    });
    let old = as_uncounted(db, || db.srandmember_count(b"s", count).unwrap());
    assert_eq!(db.check().unwrap(), [""; 0]);
    [drawn, written.unwrap(), old]
}

/// Runs `work` while all collections are taken for those of a store that did not count yet.
fn as_uncounted<T>(db: &Db, work: impl FnOnce() -> T) -> T {
    let count_from = |version| {
        db.read(|tx| {
            tx.store().count_from(version);
            Ok(())
        })
        .unwrap();
    };
    count_from(u64::MAX);
    let result = work();
    count_from(0);
    result
}

/// [`all_ways`], several times over.
fn all_ways_often(db: &Db, count: i64, times: usize) -> [Vec<Bytes>; 3] {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..times {
        for (all, drawn) in all.iter_mut().zip(all_ways(db, count)) {
            all.extend(drawn);
        }
    }
    all
}

#[test]
fn every_member_of_a_small_collection_is_equally_likely() {
    let db = numbered(10);
    let drawn = db.srandmember_count(b"s", -10_000).unwrap();
    let one_by_one: Vec<_> = (0..10_000).map(|_| db.srandmember(b"s").unwrap().unwrap()).collect();
    for drawn in [drawn, one_by_one] {
        let counts = tally(&drawn, <[u8]>::to_vec);
        assert_eq!(counts.len(), 10);
        // A thousand each; the standard deviation is 30.
        assert!(counts.values().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}

#[test]
fn numbered_members_of_a_large_collection_are_equally_likely() {
    let db = numbered(20_000);
    for drawn in all_ways_often(&db, -2_000, 10) {
        assert_eq!(drawn.len(), 20_000);
        // The thousands' digit, then the last digit: a thousand of each in the whole set.
        let (thousands, units) = (tally(&drawn, |m| (m[9], m[10])), tally(&drawn, |m| m[13]));
        assert_eq!((thousands.len(), units.len()), (20, 10));
        assert!(thousands.values().all(|count| (800..1200).contains(count)), "{thousands:?}");
        assert!(units.values().all(|count| (1700..2300).contains(count)), "{units:?}");
    }
}

#[test]
fn a_lone_member_beside_many_is_drawn_no_more_often_than_its_share() {
    let many = (0..9_999u32).map(|n| format!("many:{n:05}").into_bytes());
    let db = set_of(many.chain([b"lone".to_vec(), Vec::new(), vec![0xff; 9]]));
    for drawn in all_ways(&db, -3_000) {
        let strange = drawn.iter().filter(|member| !member.starts_with(b"many")).count();
        // Without weighing it would be three of four.
        assert!(strange < 30, "{strange} of 3000");
    }
}

#[test]
fn names_that_are_prefixes_of_each_other_end_too() {
    let db = set_of((1..5_000).map(|length| vec![0xff; length]));
    assert_eq!(all_ways(&db, -20).map(|drawn| drawn.len()), [20, 20, 20]);
    for drawn in all_ways(&db, 100) {
        assert_eq!(drawn.into_iter().collect::<HashSet<_>>().len(), 100);
    }
}

#[test]
fn different_members_are_different_whatever_their_number() {
    let db = numbered(6_000);
    for wanted in [0, 1, 10, 1_999, 2_000, 2_001, 5_999, 6_000, 6_001, i64::MAX] {
        let drawn = db.srandmember_count(b"s", wanted).unwrap();
        let expected = usize::try_from(wanted.min(6_000)).unwrap();
        assert_eq!(drawn.len(), expected);
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), expected);
        assert!(
            db.smismember(b"s", &drawn.iter().map(|m| &m[..]).collect::<Vec<_>>())
                .is_ok_and(|are| are.iter().all(|is| *is))
        );
    }
}

#[test]
fn random_bytes_are_spread_over_the_whole_range() {
    let mut random = SplitMix64::new(7);
    let db = set_of((0..8_000).map(|_| random.next_u64().to_be_bytes().to_vec()));
    for drawn in all_ways(&db, -2_000) {
        let quarters = tally(&drawn, |member| member[0] / 64);
        assert!((0..4).all(|quarter| (400..600).contains(&quarters[&quarter])), "{quarters:?}");
    }
}

#[test]
fn names_of_letters_and_digits_are_equally_likely() {
    let letters: Vec<u8> = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').collect();
    let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| [*a, *b]));
    let names = pairs.flat_map(|[a, b]| [vec![a, b], vec![a, b, b'0'], vec![a, b, b'1']]);
    let db = set_of(names.chain([Vec::new()]));
    for drawn in all_ways_often(&db, -3_000, 8) {
        assert_eq!(drawn.len(), 24_000);
        // Below `A` and `a` lie bytes that no name has; each first letter is one of 62.
        let counts = tally(&drawn, |member| member.first().copied());
        assert!(letters.iter().all(|a| (250..650).contains(&counts[&Some(*a)])), "{counts:?}");
        assert!(counts.get(&None).copied().unwrap_or(0) < 30, "{counts:?}");
    }
}

#[test]
fn more_repetitions_than_an_answer_can_hold_are_refused() {
    let db = numbered(3);
    let error = db.srandmember_count(b"s", -i64::MAX).unwrap_err();
    assert_eq!(error.message(), "ERR value is out of range");
    assert!(db.srandmember_count(b"missing", -i64::MAX).unwrap().is_empty());
}

#[test]
fn writes_of_the_same_transaction_are_drawn_too() {
    let db = numbered(2);
    db.write(&[b"s"], |tx| {
        tx.srem(b"s", &[b"member:0000000"])?;
        tx.sadd(b"s", &[b"new"])?;
        let set = tx.collection(b"s", crate::types::Type::Set)?.unwrap();
        let all = tx.sample(&set, Choice::Different(9))?;
        let members: Vec<_> = all.iter().map(|sampled| &sampled.member[..]).collect();
        assert_eq!(members, [&b"member:0000001"[..], b"new"]);
        Ok(())
    })
    .unwrap();
}

/// Blocks of the data tree that were looked at so far.
fn blocks(db: &Db) -> u64 {
    let data = &db.engine_stats().trees[1];
    data.cache_hits + data.cache_misses
}

#[test]
fn a_member_of_a_large_collection_costs_a_few_blocks_and_a_hundred_cost_a_few_hundred() {
    let db = numbered(200_000);
    db.compact().unwrap();
    for (count, most) in [(1, 60), (100, 2000), (-100, 2000)] {
        let before = blocks(&db);
        assert_eq!(db.srandmember_count(b"s", count).unwrap().len() as i64, count.abs());
        let looked_at = blocks(&db) - before;
        assert!(looked_at <= most, "{looked_at} blocks for {count}");
    }
    let before = blocks(&db);
    assert!(db.spop(b"s").unwrap().is_some());
    assert!(blocks(&db) - before <= 60);
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn what_is_left_of_a_collection_that_was_mostly_removed_is_equally_likely() {
    let db = numbered(50_000);
    db.flush().unwrap();
    let gone: Vec<_> = (0..50_000u32).filter(|n| n % 10 != 0).collect();
    for some in gone.chunks(10_000) {
        let names: Vec<_> = some.iter().map(|n| format!("member:{n:07}").into_bytes()).collect();
        db.srem(b"s", &names.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    }
    assert_eq!(db.scard(b"s").unwrap(), 5_000);
    let drawn: Vec<_> = (0..5).flat_map(|_| db.srandmember_count(b"s", -1_000).unwrap()).collect();
    let thousands = tally(&drawn, |m| m[9]);
    assert!(drawn.iter().all(|member| member.ends_with(b"0")));
    assert_eq!(thousands.len(), 5);
    assert!(thousands.values().all(|count| (800..1200).contains(count)), "{thousands:?}");
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_transaction_draws_what_it_added_and_never_what_it_removed() {
    let db = numbered(1_000);
    db.write(&[b"s"], |tx| {
        let gone: Vec<_> = (0..500).map(|n| format!("member:{n:07}").into_bytes()).collect();
        tx.srem(b"s", &gone.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let new: Vec<_> = (0..500).map(|n| format!("new:{n:07}").into_bytes()).collect();
        tx.sadd(b"s", &new.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let drawn = tx.srandmember_count(b"s", -300)?;
        assert!(drawn.iter().all(|member| !gone.iter().any(|it| it == member)));
        // Half of the members; the standard deviation is 9.
        let added = drawn.iter().filter(|member| member.starts_with(b"new")).count();
        assert!((90..210).contains(&added), "{added} of 300");
        let mut popped = HashSet::new();
        for _ in 0..1_000 {
            popped.extend(tx.spop(b"s")?);
        }
        assert_eq!(popped.len(), 1_000, "each once");
        assert_eq!(tx.spop(b"s")?, None);
        Ok(())
    })
    .unwrap();
    assert_eq!(db.exists(&[b"s"]).unwrap(), 0);
}

/// A set, a hash and a sorted set with the numbers below 10,000 as members. They are in levels, in
/// level 0 and in the memtable, and each source hides some rows of those before it.
fn mixed() -> Db {
    let db = Db::open(":memory:", unpacked()).unwrap();
    let names: Vec<_> = (0..10_000).map(|n| format!("{n:04}").into_bytes()).collect();
    for (source, step) in [(0, 1), (1, 3), (2, 5)] {
        let some: Vec<_> = names.iter().step_by(step).map(Vec::as_slice).collect();
        if source > 0 {
            let gone: Vec<_> = some.iter().copied().step_by(2).collect();
            db.srem(b"s", &gone).unwrap();
            db.hdel(b"h", &gone).unwrap();
            db.zrem(b"z", &gone).unwrap();
        }
        let fields: Vec<_> = some.iter().map(|name| (*name, *name)).collect();
        let scored: Vec<_> = some.iter().map(|name| (f64::from(source), *name)).collect();
        db.sadd(b"s", &some).unwrap();
        db.hset(b"h", &fields).unwrap();
        db.zadd(b"z", &scored, ZAdd::default()).unwrap();
        match source {
            0 => db.compact().unwrap(),
            1 => db.flush().unwrap(),
            _ => {}
        }
    }
    for key in [&b"s"[..], b"h", b"z"] {
        let size = match key {
            b"s" => db.scard(key),
            b"h" => db.hlen(key),
            _ => db.zcard(key),
        };
        assert_eq!(size.unwrap(), 10_000);
    }
    db
}

/// Whether the draws of numbers are as uneven as chance makes them, by Pearson's test over two
/// partitions of the members: runs of neighbours, and every so many-th member.
fn assert_uniform(what: &str, drawn: &[Bytes]) {
    const CELLS: usize = 250;
    let numbers: Vec<usize> =
        drawn.iter().map(|name| std::str::from_utf8(name).unwrap().parse().unwrap()).collect();
    let expected = drawn.len() as f64 / CELLS as f64;
    for cell_of in [|n: usize| n / (10_000 / CELLS), |n: usize| n % CELLS] {
        let mut cells = [0u32; CELLS];
        numbers.iter().for_each(|n| cells[cell_of(*n)] += 1);
        let chi_square: f64 =
            cells.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        // The mean is 249, the standard deviation 22: beyond 400 once in 10^8 runs. Of many different
        // members the mean is 149, the standard deviation 13.
        assert!((60.0..400.0).contains(&chi_square), "{what}: {chi_square}");
    }
}

#[test]
fn members_in_all_kinds_of_sources_are_equally_likely_for_every_command() {
    let db = mixed();
    // Few at once, so that members are searched for; many at once, so that some are walked to.
    for (count, times) in [(-20, 200), (20, 200), (-4_000, 1), (4_000, 1), (-1, 2_000)] {
        let often = |draw: &dyn Fn() -> Vec<Bytes>| -> Vec<Bytes> {
            (0..times).flat_map(|_| draw()).collect()
        };
        let what = format!("{times} times {count}");
        assert_uniform(&what, &often(&|| db.srandmember_count(b"s", count).unwrap()));
        assert_uniform(&what, &often(&|| db.hrandfield_count(b"h", count).unwrap()));
        assert_uniform(
            &what,
            &often(&|| {
                let drawn = db.zrandmember_count(b"z", count).unwrap();
                drawn.into_iter().map(|(member, _)| member).collect()
            }),
        );
    }
    let popped: Vec<_> = (0..2_000)
        .map(|_| {
            let member = db.spop(b"s").unwrap().unwrap();
            assert_eq!(db.sadd(b"s", &[&member]).unwrap(), 1);
            member
        })
        .collect();
    assert_uniform("SPOP", &popped);
    let popped = db.spop_count(b"s", 5_000).unwrap();
    assert_eq!(popped.iter().collect::<HashSet<_>>().len(), 5_000);
    assert_eq!(db.scard(b"s").unwrap(), 5_000);
    assert_eq!(db.check().unwrap(), [""; 0]);
}
