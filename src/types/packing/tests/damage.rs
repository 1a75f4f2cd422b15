//! Records whose members cannot be read: whatever a command does with one ends with an error or
//! with what is right, and what it leaves is either sound or found by a check.
//!
//! A lookup of one member ends where the member must be. If members are out of order, a lookup or a
//! change can miss one, or find one of two; and the length is what the record says. Walks,
//! conversions and checks find the damage.

use std::ops::Bound::Included;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::encoding::meta::{Body, HEADER_BYTES, Header, Type, encode_collection};
use crate::encoding::packed::Packed;
use crate::error::Result;
use crate::options::Options;
use crate::txn::Db;
use crate::types::{By, Member, MemberRange, ScanOptions, ZAdd, ZRange};

const KEY: &[u8] = b"k";
const KINDS: [Type; 3] = [Type::Hash, Type::Set, Type::ZSet];

fn score(score: f64) -> Vec<u8> {
    score.to_bits().to_le_bytes().to_vec()
}

/// What is beside member `n`.
fn value(kind: Type, n: u8) -> Vec<u8> {
    match kind {
        Type::Hash => vec![b'v'; usize::from(n)],
        Type::ZSet => score(f64::from(n)),
        _ => Vec::new(),
    }
}

type Members = Vec<(Vec<u8>, Vec<u8>)>;

/// The members `a` to `d`.
fn members(kind: Type) -> Members {
    (0..4).map(|n| (vec![b'a' + n], value(kind, n))).collect()
}

fn record(kind: Type, members: &[(Vec<u8>, Vec<u8>)], count: u16) -> Vec<u8> {
    let header = Header { kind, expire_ms: 0 };
    let mut one = Packed::default();
    one.put(b"", b"", 100).unwrap();
    let mut record = encode_collection(header, &Body::Packed(one))[..HEADER_BYTES].to_vec();
    record.extend(count.to_le_bytes());
    for part in members.iter().flat_map(|(member, value)| [member, value]) {
        record.push(u8::try_from(part.len()).unwrap());
        record.extend_from_slice(part);
    }
    record
}

/// Records that are damaged, each with what is wrong with it.
fn damaged(kind: Type) -> Vec<(String, Vec<u8>)> {
    let good = members(kind);
    let whole = record(kind, &good, 4);
    let mut all: Vec<_> = (HEADER_BYTES..whole.len())
        .map(|len| (format!("cut at {len}"), whole[..len].to_vec()))
        .collect();
    for count in [0, 1, 3, 5, 1000, u16::MAX] {
        all.push((format!("count {count}"), record(kind, &good, count)));
    }
    for (a, b) in [(0, 1), (0, 3), (2, 3)] {
        let mut swapped = good.clone();
        swapped.swap(a, b);
        all.push((format!("{a} and {b} swapped"), record(kind, &swapped, 4)));
    }
    let twice = [good[..2].to_vec(), good[1..3].to_vec()].concat();
    all.push(("one twice".to_owned(), record(kind, &twice, 4)));
    if kind == Type::ZSet {
        for bad in
            [score(1.0)[..7].to_vec(), [&score(1.0)[..], b"x"].concat(), score(f64::NAN), vec![]]
        {
            for at in [0, 2, 3] {
                let mut broken = good.clone();
                broken[at].1.clone_from(&bad);
                all.push((format!("{at} has score {bad:?}"), record(kind, &broken, 4)));
            }
        }
    }
    all
}

fn is_out_of_order(what: &str) -> bool {
    what.contains("swapped") || what.contains("twice")
}

fn open(packed_max_members: u32) -> Db {
    Db::open(":memory:", Options { packed_max_members, ..Options::default() }).unwrap()
}

fn plant(db: &Db, key: &[u8], record: &[u8]) {
    db.write(&[key], |tx| tx.put_record(key, record.to_vec())).unwrap();
}

fn pairs(found: Vec<(Bytes, Bytes)>) -> Members {
    found.into_iter().map(|(a, b)| (a.to_vec(), b.to_vec())).collect()
}

fn scored(found: Vec<(Bytes, f64)>) -> Members {
    found.into_iter().map(|(member, its)| (member.to_vec(), score(its))).collect()
}

fn plain(found: Vec<Bytes>) -> Members {
    found.into_iter().map(|member| (member.to_vec(), Vec::new())).collect()
}

fn member_of(member: Member) -> (Vec<u8>, Vec<u8>) {
    match member {
        Member::Field { field, value } => (field.to_vec(), value.to_vec()),
        Member::Scored { member, score: its } => (member.to_vec(), score(its)),
        Member::Member(member) | Member::Element { element: member, .. } => {
            (member.to_vec(), Vec::new())
        }
    }
}

/// All members, in every way in which they can be walked, in the order of their bytes. The numbers
/// here make that the order of the scores, too.
fn walks(db: &Db, kind: Type) -> Vec<Result<Members>> {
    let all = ScanOptions { count: 100, ..ScanOptions::default() };
    let iterated = |reverse| -> Result<Members> {
        let range = MemberRange { reverse, ..MemberRange::default() };
        let found = db.members(KEY, range)?.map(|member| member.map(member_of));
        let mut found = found.collect::<Result<Members>>()?;
        if reverse {
            found.reverse();
        }
        Ok(found)
    };
    let mut found = vec![iterated(false), iterated(true)];
    match kind {
        Type::Hash => found.extend([
            db.hgetall(KEY).map(pairs),
            db.hscan(KEY, b"", &all).map(|(_, found)| pairs(found)),
            db.hrandfield_withvalues(KEY, 100).map(|mut found| {
                found.sort();
                pairs(found)
            }),
        ]),
        Type::Set => found.extend([
            db.smembers(KEY).map(plain),
            db.sscan(KEY, b"", &all).map(|(_, found)| plain(found)),
            db.sunion(&[KEY, b"none"]).map(plain),
            db.sinter(&[KEY]).map(plain),
        ]),
        _ => {
            let by_rank = ZRange::of(By::Rank(0, -1));
            found.extend([
                db.zrange_withscores(KEY, &by_rank).map(scored),
                db.zrange_withscores(KEY, &by_rank.reversed()).map(|mut found| {
                    found.reverse();
                    scored(found)
                }),
                db.zscan(KEY, b"", &all).map(|(_, found)| scored(found)),
                db.zunion(&[KEY], Default::default()).map(scored),
                db.zdiff(&[KEY, b"none"]).map(scored),
            ]);
        }
    }
    found
}

#[test]
fn a_walk_shows_all_members_or_fails() {
    for kind in KINDS {
        let db = open(128);
        plant(&db, KEY, &record(kind, &members(kind), 4));
        for found in walks(&db, kind) {
            assert_eq!(found.unwrap(), members(kind), "nothing is wrong with this one");
        }
        for (what, record) in damaged(kind) {
            plant(&db, KEY, &record);
            assert_eq!(db.check().unwrap().len(), 1, "{kind:?}: {what}");
            let mut failed = 0;
            for found in walks(&db, kind) {
                let right = found.as_ref().is_ok_and(|found| *found == members(kind));
                assert!(found.is_err() || right, "{kind:?}: {what}: {found:?}");
                failed += usize::from(found.is_err());
            }
            assert!(failed > 0, "{kind:?}: {what}");
        }
    }
}

/// The value of each member.
fn looked_up(db: &Db, kind: Type, member: &[u8]) -> Result<Option<Vec<u8>>> {
    match kind {
        Type::Hash => Ok(db.hget(KEY, member)?.map(|value| value.to_vec())),
        Type::Set => Ok(db.sismember(KEY, member)?.then(Vec::new)),
        _ => Ok(db.zscore(KEY, member)?.map(score)),
    }
}

#[test]
fn a_member_is_found_as_it_was_or_the_lookup_fails_unless_the_order_is_lost() {
    for kind in KINDS {
        let db = open(128);
        for (what, record) in damaged(kind) {
            plant(&db, KEY, &record);
            for (member, value) in members(kind) {
                let found = looked_up(&db, kind, &member);
                let lost = is_out_of_order(&what);
                let right = found.as_ref().is_ok_and(|found| *found == Some(value));
                assert!(found.is_err() || right || lost, "{kind:?}: {what}: {found:?}");
            }
            // Neither may these panic.
            let _ = (db.hlen(KEY), db.scard(KEY), db.zcard(KEY), db.object_encoding(KEY));
            let _ = (db.zrank(KEY, b"b"), db.zrevrank(KEY, b"d"), db.zmscore(KEY, &[b"a", b"x"]));
            let _ = (db.zcount(KEY, Included(1.0), Included(1.0)), db.zrandmember(KEY));
            let _ = (db.srandmember(KEY), db.hrandfield(KEY), db.smismember(KEY, &[b"d", b"x"]));
        }
    }
}

/// Changes of the key, each by a command that may find damage.
type Change = (&'static str, fn(&Db) -> Result<()>);

fn changes(kind: Type) -> Vec<Change> {
    let mut all: Vec<Change> = vec![
        ("RENAME", |db| db.rename(KEY, b"x").and_then(|()| db.rename(b"x", KEY))),
        ("COPY", |db| db.copy(KEY, b"x", true).map(drop)),
        ("EXPIRE", |db| db.expire(KEY, 100, Default::default()).map(drop)),
    ];
    let more: [Change; 5] = match kind {
        Type::Hash => [
            ("HSET c", |db| db.hset(KEY, &[(b"c", b"new")]).map(drop)),
            ("HSET new", |db| db.hset(KEY, &[(b"bb", b"new")]).map(drop)),
            ("HSET many", |db| db.hset(KEY, &[(b"x", b""), (b"y", b""), (b"z", b"")]).map(drop)),
            ("HDEL", |db| db.hdel(KEY, &[b"b", b"d"]).map(drop)),
            ("HDEL all", |db| db.hdel(KEY, &[b"a", b"b", b"c", b"d"]).map(drop)),
        ],
        Type::Set => [
            ("SADD c", |db| db.sadd(KEY, &[b"c"]).map(drop)),
            ("SADD new", |db| db.sadd(KEY, &[b"bb"]).map(drop)),
            ("SADD many", |db| db.sadd(KEY, &[b"x", b"y", b"z"]).map(drop)),
            ("SPOP", |db| db.spop_count(KEY, 2).map(drop)),
            ("SUNIONSTORE", |db| db.sunionstore(KEY, &[KEY]).map(drop)),
        ],
        _ => [
            ("ZADD c", |db| db.zadd(KEY, &[(7.0, b"c")], ZAdd::default()).map(drop)),
            ("ZADD new", |db| db.zadd(KEY, &[(7.0, b"bb")], ZAdd::default()).map(drop)),
            ("ZADD many", |db| {
                let many: [(f64, &[u8]); 4] = [(1.0, b"x"), (1.0, b"y"), (9.0, b"a"), (1.0, b"z")];
                db.zadd(KEY, &many, ZAdd::default()).map(drop)
            }),
            ("ZPOPMIN", |db| db.zpopmin(KEY, 2).map(drop)),
            ("ZUNIONSTORE", |db| db.zunionstore(KEY, &[KEY], Default::default()).map(drop)),
        ],
    };
    all.extend(more);
    all
}

/// What is left of the key, if it can be walked.
fn left(db: &Db, kind: Type) -> Result<Members> {
    walks(db, kind).swap_remove(0)
}

#[test]
fn a_change_fails_or_leaves_what_a_check_finds_or_does_what_it_does_to_a_sound_one() {
    for kind in KINDS {
        // With 5 some of the changes give it rows.
        for most in [128, 5, 0] {
            let db = open(most);
            for (name, change) in changes(kind) {
                plant(&db, KEY, &record(kind, &members(kind), 4));
                change(&db).unwrap();
                let sound = left(&db, kind).unwrap();
                assert_eq!(db.check().unwrap(), [""; 0], "{name}");
                db.del(&[KEY, b"x"]).unwrap();
                for (what, record) in damaged(kind) {
                    plant(&db, KEY, &record);
                    let done = change(&db);
                    let found = !db.check().unwrap().is_empty() || is_out_of_order(&what);
                    // Which members SPOP takes is chance.
                    let right = || left(&db, kind).is_ok_and(|it| it == sound || name == "SPOP");
                    assert!(
                        found || (done.is_ok() && right()),
                        "{kind:?} of {most}: {what}: {name}: {done:?}, {:?}",
                        left(&db, kind)
                    );
                    db.del(&[KEY, b"x"]).unwrap();
                    assert_eq!(db.check().unwrap(), [""; 0], "it can always be deleted");
                }
            }
        }
    }
}

#[test]
fn damage_goes_through_a_salvage_and_is_still_found() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let db = Db::open(&from, Options::default()).unwrap();
    let mut planted = 0;
    for (n, kind) in (0..).zip(KINDS) {
        for (m, (_, record)) in (0..).zip(damaged(kind)) {
            plant(&db, format!("bad {n} {m}").as_bytes(), &record);
            planted += 1;
        }
        plant(&db, format!("good {n}").as_bytes(), &record(kind, &members(kind), 4));
    }
    db.flush().unwrap();
    db.close().unwrap();
    Db::salvage(&from, &to, Options::default(), |_, _| Ok(())).unwrap();
    let db = Db::open(&to, Options::default()).unwrap();
    assert!(db.verify(|_, _| ControlFlow::Continue(())).unwrap().is_empty());
    assert_eq!(db.check().unwrap().len(), planted);
    assert_eq!(db.dbsize().unwrap(), planted as i64 + 3);
    assert_eq!(db.hgetall(b"good 0").unwrap().len(), 4);
    assert_eq!(plain(db.smembers(b"good 1").unwrap()), members(Type::Set));
    let all = ZRange::of(By::Rank(0, -1));
    assert_eq!(scored(db.zrange_withscores(b"good 2", &all).unwrap()), members(Type::ZSet));
}
