//! Scans and iterators that go on after the collection has changed its form: what is there all the
//! time is seen exactly once.

use bytes::Bytes;

use super::fresh;
use crate::txn::Db;
use crate::types::testing::is_packed;
use crate::types::{Member, MemberRange, ScanOptions, ZAdd};

const KEYS: [&[u8]; 3] = [b"h", b"s", b"z"];
/// Members that are there all the time.
const STAYING: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"b", b"\xff"];

fn add(db: &Db, members: &[&[u8]]) {
    for member in members {
        db.hset(b"h", &[(member, b"v")]).unwrap();
        db.sadd(b"s", &[member]).unwrap();
        db.zadd(b"z", &[(1.5, member)], ZAdd::default()).unwrap();
    }
}

fn remove(db: &Db, members: &[&[u8]]) {
    db.hdel(b"h", members).unwrap();
    db.srem(b"s", members).unwrap();
    db.zrem(b"z", members).unwrap();
}

/// Members between those that stay, more than a record takes beside them.
const OTHERS: [&[u8]; 4] = [b"Z", b"aa", b"bb", b"c"];

/// A store with the staying members in one form, and what gives them the other one.
type Story = (Db, fn(&Db));

fn stories() -> [Story; 2] {
    let packed = fresh(8, 1024);
    add(&packed, &STAYING);
    let with_rows = fresh(8, 1024);
    add(&with_rows, &OTHERS);
    add(&with_rows, &STAYING);
    remove(&with_rows, &OTHERS);
    let to_rows: fn(&Db) = |db| add(db, &OTHERS);
    let to_record: fn(&Db) = |db| {
        for key in KEYS {
            db.rename(key, b"away").unwrap();
            db.rename(b"away", key).unwrap();
        }
    };
    for key in KEYS {
        assert!(is_packed(&packed, key) && !is_packed(&with_rows, key));
    }
    [(packed, to_rows), (with_rows, to_record)]
}

/// One page of the scan that fits the key.
fn page(db: &Db, key: &[u8], cursor: &[u8], count: u64) -> (Vec<u8>, Vec<Bytes>) {
    let options = ScanOptions { count, ..ScanOptions::default() };
    match key {
        b"h" => {
            let (next, found) = db.hscan(key, cursor, &options).unwrap();
            assert!(found.iter().all(|(_, value)| value == "v"));
            (next, found.into_iter().map(|(field, _)| field).collect())
        }
        b"s" => db.sscan(key, cursor, &options).unwrap(),
        _ => {
            let (next, found) = db.zscan(key, cursor, &options).unwrap();
            assert!(found.iter().all(|(_, score)| *score == 1.5));
            (next, found.into_iter().map(|(member, _)| member).collect())
        }
    }
}

fn stayed(seen: &[Bytes]) -> Vec<&[u8]> {
    let mut stayed: Vec<_> =
        seen.iter().map(|it| &it[..]).filter(|it| STAYING.contains(it)).collect();
    stayed.sort_unstable();
    stayed
}

#[test]
fn a_scan_goes_on_where_it_was_after_each_conversion() {
    for turn in 1..STAYING.len() as u64 {
        for (db, convert) in stories() {
            let before = KEYS.map(|key| page(&db, key, b"", turn));
            let was = is_packed(&db, b"h");
            convert(&db);
            for (key, (mut cursor, mut seen)) in KEYS.into_iter().zip(before) {
                assert_eq!(is_packed(&db, key), !was);
                while !cursor.is_empty() {
                    let (next, found) = page(&db, key, &cursor, 2);
                    seen.extend(found);
                    cursor = next;
                }
                assert_eq!(stayed(&seen), STAYING, "{key:?} after {turn}");
            }
        }
    }
}

fn member_of(member: Member) -> Bytes {
    match member {
        Member::Field { field, .. } => field,
        Member::Member(member) | Member::Scored { member, .. } => member,
        Member::Element { element, .. } => element,
    }
}

#[test]
fn an_iterator_shows_its_read_point_and_another_goes_on_from_its_resume_point() {
    for (turn, reverse) in [(0, false), (1, false), (4, false), (6, false), (1, true), (5, true)] {
        for (db, convert) in stories() {
            let all = MemberRange { reverse, ..MemberRange::default() };
            let mut iters = KEYS.map(|key| db.members(key, all.clone()).unwrap());
            let mut seen: [Vec<Bytes>; 3] = Default::default();
            for (iter, seen) in iters.iter_mut().zip(&mut seen) {
                for _ in 0..turn {
                    seen.push(member_of(iter.next().unwrap().unwrap()));
                }
            }
            convert(&db);
            for ((iter, seen), key) in iters.iter_mut().zip(&mut seen).zip(KEYS) {
                let after = iter.resume_point().map(<[u8]>::to_vec);
                let rest = db.members(key, MemberRange { after, ..all.clone() }).unwrap();
                let mut both = seen.clone();
                both.extend(rest.map(|member| member_of(member.unwrap())));
                assert_eq!(stayed(&both), STAYING, "{key:?} after {turn}, {reverse}");
                seen.extend(iter.by_ref().map(|member| member_of(member.unwrap())));
                assert_eq!(seen.len(), STAYING.len(), "those of its read point, no others");
                assert_eq!(stayed(seen), STAYING);
            }
        }
    }
}
