//! Scans by number beside other scans: every element that stays is returned, and every scan ends.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test may"
)]

use std::collections::BTreeSet;

use lsmkv::{Db, Options, Reply};

/// One call; the next cursor and the elements.
fn call(db: &Db, words: &[&str]) -> (String, Vec<String>) {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let reply = db.command(&words).unwrap();
    let Reply::Array(parts) = &reply else { panic!("{reply:?}") };
    let [Reply::Bulk(cursor), Reply::Array(found)] = &parts[..] else { panic!("{reply:?}") };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let found = found.iter().map(|element| match element {
        Reply::Bulk(bytes) => text(bytes),
        other => panic!("{other:?}"),
    });
    (text(cursor), found.collect())
}

/// Keys whose first bytes do not tell them apart.
fn name(n: usize) -> String {
    format!("tenant:0000000001:document:{n:06}")
}

fn store(keys: usize) -> Db {
    let db = Db::open(":memory:", Options::default()).unwrap();
    (0..keys).for_each(|n| db.set(name(n).as_bytes(), b"v").unwrap());
    db
}

/// Positions of scans were in a table of 4,096 entries for all, and a scan whose entry was gone
/// began again: beside a client that opened scans, a scan of 201 keys never ended.
#[test]
fn a_scan_ends_beside_a_client_that_opens_thousands_of_scans() {
    let db = store(201);
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let (next, found) = call(&db, &["SCAN", &cursor]);
        seen.extend(found);
        calls += 1;
        assert!(calls < 50, "the scan does not end; it saw {} keys", seen.len());
        if next == "0" {
            break;
        }
        cursor = next;
        for n in 0..5000 {
            call(&db, &["SCAN", "0", "COUNT", &(1 + n % 200).to_string()]);
        }
    }
    assert_eq!(seen.len(), 201);
}

/// A scan in progress: what was there all the time, and what came.
#[derive(Default)]
struct Scan {
    cursor: Option<String>,
    stayed: BTreeSet<String>,
    seen: BTreeSet<String>,
    ended: usize,
}

/// A collection by its commands.
struct Kind {
    scan: &'static [&'static str],
    add: &'static [&'static str],
    remove: &'static [&'static str],
    /// What follows an added element.
    value: &'static [&'static str],
    /// The number of replies per element.
    width: usize,
}

const KINDS: [Kind; 4] = [
    Kind { scan: &["SCAN"], add: &["SET"], remove: &["DEL"], value: &["v"], width: 1 },
    Kind {
        scan: &["HSCAN", "h"],
        add: &["HSET", "h"],
        remove: &["HDEL", "h"],
        value: &["v"],
        width: 2,
    },
    Kind {
        scan: &["SSCAN", "s"],
        add: &["SADD", "s"],
        remove: &["SREM", "s"],
        value: &[],
        width: 1,
    },
    Kind {
        scan: &["ZSCAN", "z"],
        add: &["ZADD", "z", "1"],
        remove: &["ZREM", "z"],
        value: &[],
        width: 2,
    },
];

fn run(db: &Db, words: &[&[&str]]) -> Reply {
    let words: Vec<&[u8]> = words.concat().into_iter().map(str::as_bytes).collect();
    db.command(&words).unwrap()
}

/// One step of a scan; what stayed must have come when it ends.
fn step(db: &Db, kind: &Kind, scan: &mut Scan, present: &BTreeSet<String>, count: u64) {
    let cursor = scan.cursor.take().unwrap_or_else(|| {
        (scan.stayed, scan.seen) = (present.clone(), BTreeSet::new());
        "0".to_owned()
    });
    let count = count.to_string();
    let words = [kind.scan, &[&cursor, "COUNT", &count]].concat();
    let (next, found) = call(db, &words);
    scan.seen.extend(found.into_iter().step_by(kind.width));
    if next == "0" {
        assert!(scan.stayed.is_subset(&scan.seen), "{:?}", kind.scan);
        scan.ended += 1;
    } else {
        assert!(next.parse::<u64>().unwrap() < 1 << 53);
        scan.cursor = Some(next);
    }
}

#[test]
fn several_scans_of_every_kind_return_what_stays_while_elements_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Db::open(dir.path().to_str().unwrap(), Options::default()).unwrap();
    for (seed, kind) in KINDS.iter().enumerate() {
        let mut db = open();
        db.flushall().unwrap();
        let mut state = seed as u64 + 1;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let (mut present, mut scans) = (BTreeSet::new(), Vec::new());
        scans.resize_with(5, Scan::default);
        for turn in 0..20_000 {
            let element = name(random(700) as usize);
            match random(10) {
                0..3 => {
                    run(&db, &[kind.add, &[&element], kind.value]);
                    present.insert(element);
                }
                3 => {
                    run(&db, &[kind.remove, &[&element]]);
                    present.remove(&element);
                    for scan in &mut scans {
                        scan.stayed.remove(&element);
                    }
                }
                _ => {
                    let (at, count) = (random(5) as usize, 1 + random(30));
                    step(&db, kind, &mut scans[at], &present, count);
                }
            }
            if turn % 2500 == 2499 {
                db.close().unwrap();
                db = open();
            }
        }
        assert!(scans.iter().all(|scan| scan.ended > 5), "{:?}", kind.scan);
        assert_eq!(db.check().unwrap(), [""; 0]);
        db.close().unwrap();
    }
}
