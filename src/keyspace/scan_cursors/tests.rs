//! Numeric cursors over plain sets of rows, and over a store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;
use crate::types::ScanOptions;

fn cursors() -> ScanCursors {
    ScanCursors::new(HashSeed::random())
}

/// One page over sorted rows: the next number and the rows.
fn page(
    cursors: &ScanCursors,
    rows: &BTreeSet<Vec<u8>>,
    number: u64,
    count: u64,
) -> (u64, Vec<Vec<u8>>) {
    let (position, mut end) = cursors.resume(number);
    let mut taken: Vec<Vec<u8>> = Vec::new();
    let least = end.rows(count);
    for row in rows.range(position..) {
        if taken.len() as u64 >= least {
            let last = taken.last().unwrap();
            let gap = Gap { last, next: row, row_bytes: row.len(), taken: taken.len() };
            if end.ends(gap) {
                break;
            }
        }
        taken.push(row.clone());
    }
    let (number, kept) = end.number();
    taken.truncate(kept);
    assert!(number < 1 << 53);
    (number, taken)
}

/// Landmarks up to the regime in which they must stand apart.
fn fill(cursors: &ScanCursors) {
    let mut tables = cursors.tables.lock();
    let mut id = 0;
    while tables.short.spacing() == 0 {
        assert!(tables.add(id, format!("\u{1}filler {id:06}").as_bytes()));
        id += 1;
    }
}

fn long_names(n: usize) -> BTreeSet<Vec<u8>> {
    (0..n).map(|n| format!("a long common beginning:{n:07}").into_bytes()).collect()
}

#[test]
fn short_rows_need_no_landmark_and_long_ones_few() {
    let cursors = cursors();
    let short = (0u16..2000).map(|n| n.to_be_bytes().to_vec()).collect();
    let (mut number, mut seen) = (0, 0);
    loop {
        let (next, found) = page(&cursors, &short, number, 10);
        seen += found.len();
        number = next;
        if number == 0 {
            break;
        }
    }
    // A row of two zeros, or one after its own prefix, has no place by itself.
    assert!(seen == 2000 && cursors.tables.lock().short.newest().count() < 2);
    let long = long_names(20_000);
    let (mut number, mut pages) = (0, 0);
    loop {
        let (next, found) = page(&cursors, &long, number, 10);
        if Number::from_u64(next).is_some_and(|number| number.growth > 0) {
            // One seed in thirty lets the pages of so long a scan grow, which makes it end.
            return short_rows_need_no_landmark_and_long_ones_few();
        }
        assert!(found.len() <= 10 || cursors.tables.lock().short.spacing() > 0);
        pages += 1;
        number = next;
        if number == 0 {
            break;
        }
    }
    let landmarks = cursors.tables.lock().short.newest().count();
    assert!(pages > 1500 && landmarks < 400, "{pages} pages, {landmarks} landmarks");
}

#[test]
fn a_page_is_longer_by_at_most_twice_the_spacing() {
    let cursors = cursors();
    fill(&cursors);
    let before = cursors.tables.lock().short.newest().count();
    let rows = long_names(20_000);
    for count in (1..300).rev() {
        let (_, found) = page(&cursors, &rows, 0, count);
        assert!(found.len() as u64 <= count + 128, "{count}: {}", found.len());
    }
    // Pages of all lengths, the longest first, would otherwise leave a landmark each.
    let made = cursors.tables.lock().short.newest().count() - before;
    assert!(made <= 300 / 64 + 2, "{made} landmarks");
}

/// A page that looked ahead for a landmark and found none ends where it first could.
#[test]
fn what_a_page_has_seen_beyond_its_end_comes_with_the_next_one() {
    let cursors = cursors();
    fill(&cursors);
    assert!(cursors.tables.lock().add(ID_MASK as u32, b"one landmark after all rows"));
    let rows = long_names(3000);
    let (mut number, mut seen) = (0, Vec::new());
    loop {
        let (next, found) = page(&cursors, &rows, number, 7);
        seen.extend(found);
        number = next;
        if number == 0 {
            break;
        }
    }
    assert!(seen.iter().eq(&rows), "{} of {} rows, in order, once each", seen.len(), rows.len());
}

#[test]
fn two_hundred_thousand_abandoned_scans_take_no_place_away() {
    let cursors = cursors();
    let rows = long_names(5000);
    let (number, first) = page(&cursors, &rows, 0, 10);
    for n in 0..200_000u64 {
        let own = format!("{:09}", n % 40_000);
        let name = |n| format!("{own}{n}").into_bytes();
        let own_rows = (0..30u32).map(name).collect();
        page(&cursors, &own_rows, 0, 1 + n % 20);
    }
    let (_, second) = page(&cursors, &rows, number, 10);
    assert_eq!(second[0], *rows.iter().nth(first.len()).unwrap());
    assert!(cursors.tables.lock().short.newest().count() < 1000);
}

/// Rows that are inserted ahead of a scan, with older ones removed, kept it busy for ever.
#[test]
fn a_scan_ends_although_rows_always_come_ahead_of_it() {
    let cursors = cursors();
    let mut rows: BTreeSet<Vec<u8>> = (0u32..40).map(|n| n.to_be_bytes().to_vec()).collect();
    rows.insert(b"\xff".to_vec());
    let (mut next_row, mut number, mut pages) = (40u32, 0, 0u64);
    loop {
        let (next, found) = page(&cursors, &rows, number, 1);
        pages += 1;
        assert!(pages < 30_000_000, "the scan does not end");
        if next == 0 {
            break;
        }
        number = next;
        for _ in found {
            rows.pop_first();
            rows.insert(next_row.to_be_bytes().to_vec());
            next_row += 1;
        }
    }
}

#[test]
fn a_number_that_is_not_understood_starts_again() {
    let cursors = cursors();
    let unknown = Number { growth: 0, place: Place::at(77) }.to_u64();
    for number in [0, 1, 1 << 51, (1 << 52) - 1, 1 << 53, u64::MAX, unknown] {
        assert_eq!(cursors.resume(number).0, b"", "{number}");
    }
    let shortened = Place::Near { id: 5, cut: 7, tail: *b"ab" };
    cursors.tables.lock().add(5, b"short");
    assert_eq!(cursors.resume(Number { growth: 0, place: shortened }.to_u64()).0, b"");
}

#[test]
fn long_landmarks_are_apart_and_stand_only_after_long_walks() {
    let cursors = cursors();
    let name = |n: u32| [&[b'x'; 20_000][..], &n.to_be_bytes()].concat();
    let rows: BTreeSet<_> = (1..=100).map(|n| name(n * 77)).collect();
    let (number, found) = page(&cursors, &rows, 0, 1);
    assert!(number > 0 && (14..20).contains(&found.len()), "{}", found.len());
    let (_, rest) = page(&cursors, &rows, number, 1000);
    assert_eq!(found.len() + rest.len(), 100);
    assert_eq!(cursors.tables.lock().short.newest().count(), 0);
}

#[test]
fn what_is_saved_is_the_newest_within_its_bound() {
    let cursors = cursors();
    let mut tables = cursors.tables.lock();
    for id in 0..2000 {
        tables.add(id, &[vec![7; 1000], id.to_be_bytes().to_vec()].concat());
    }
    tables.get(3);
    let record = tables.newest(MOST_SAVED);
    let saved: Vec<u32> = decode(&record).iter().map(|(id, _)| *id).collect();
    assert!(record.len() < MOST_SAVED + 20_000 && saved.len() > 1000);
    assert_eq!((saved.last(), saved.contains(&1999), saved.contains(&10)), (Some(&3), true, false));
}

fn open(fs: &MemFs) -> Db {
    let clock = Arc::new(ManualClock::at(1000));
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), Options::default(), clock).unwrap()
}

/// Scans the database from a number on: the next one, and how many keys came.
fn scan(db: &Db, number: u64) -> (u64, usize) {
    let (next, found) = db.read(|tx| tx.scan_numbered(number, &ScanOptions::default())).unwrap();
    (next, found.len())
}

#[test]
fn a_number_is_good_after_a_clean_close_and_starts_again_after_another_end() {
    let fs = MemFs::untracked();
    let db = open(&fs);
    for n in 10..40u8 {
        db.set(&[b"a long common beginning", &[n][..]].concat(), b"v").unwrap();
    }
    let (first, _) = scan(&db, 0);
    db.close().unwrap();
    let db = open(&fs);
    let (second, found) = scan(&db, first);
    assert_eq!((found, scan(&db, second)), (10, (0, 10)));
    for n in 10..40u8 {
        db.set(&[b"another long beginning", &[n][..]].concat(), b"v").unwrap();
    }
    let mut number = second;
    while scan(&db, number).0 > 0 {
        (number, _) = scan(&db, number);
    }
    drop(db);
    let db = open(&fs);
    assert_eq!(scan(&db, first).1, 10, "of the clean close");
    assert_eq!(scan(&db, number), scan(&db, 0), "of the other end");
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.flushall().unwrap();
    db.compact().unwrap();
    db.close().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    /// One of the scans makes a call with this count.
    Call(usize, u64),
    /// One of the scans goes on, unless it has ended.
    Finish(usize),
    Insert(Vec<u8>),
    Remove(Vec<u8>),
    /// A scan begins again, its number is lost.
    Abandon(usize),
    /// A call is repeated.
    Repeat(usize),
    Reopen,
}

/// Rows with long common beginnings, zeros, and each other's prefixes.
fn row() -> impl Strategy<Value = Vec<u8>> {
    let tail = prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..5);
    let heads = prop::sample::select(vec!["", "a long common beginning", "a long road"]);
    (heads, tail).prop_map(|(head, tail)| [head.as_bytes(), &tail].concat())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0usize..4, 1u64..8).prop_map(|(scan, count)| Step::Call(scan, count)),
        3 => row().prop_map(Step::Insert),
        3 => row().prop_map(Step::Remove),
        1 => (0usize..4).prop_map(Step::Abandon),
        1 => (0usize..4).prop_map(Step::Repeat),
        1 => Just(Step::Reopen),
    ]
}

/// A scan in progress: what was there all the time, and what came.
#[derive(Clone, Debug, Default)]
struct Scan {
    number: u64,
    stayed: Option<BTreeSet<Vec<u8>>>,
    seen: BTreeMap<Vec<u8>, usize>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What Redis promises, for several scans at once, with changes and restarts in between.
    #[test]
    fn what_stays_is_returned_and_no_scan_goes_back(
        rows in prop::collection::btree_set(row(), 0..120),
        steps in prop::collection::vec(step(), 0..150),
        crowded: bool,
    ) {
        let mut cursors = cursors();
        if crowded {
            fill(&cursors);
        }
        let (mut rows, mut scans) = (rows, vec![Scan::default(); 4]);
        let last_calls = (0..4).flat_map(|scan| std::iter::repeat_n(Step::Finish(scan), 150));
        for step in steps.into_iter().chain(last_calls) {
            match step {
                Step::Finish(at) if scans[at].number == 0 => {}
                Step::Call(at, _) | Step::Finish(at) => {
                    let count = if let Step::Call(_, count) = step { count } else { 3 };
                    let scan = &mut scans[at];
                    let stayed = scan.stayed.get_or_insert_with(|| rows.clone());
                    let (next, found) = page(&cursors, &rows, scan.number, count);
                    for row in found {
                        *scan.seen.entry(row).or_default() += 1;
                    }
                    scan.number = next;
                    if next == 0 {
                        prop_assert!(stayed.iter().all(|row| scan.seen.contains_key(row)));
                        prop_assert!(scan.seen.values().all(|times| *times == 1));
                        *scan = Scan::default();
                    }
                }
                Step::Insert(row) => {
                    rows.insert(row);
                }
                Step::Remove(row) => {
                    rows.remove(&row);
                    for stayed in scans.iter_mut().filter_map(|scan| scan.stayed.as_mut()) {
                        stayed.remove(&row);
                    }
                    // It may come a second time now.
                    for scan in &mut scans {
                        scan.seen.remove(&row);
                    }
                }
                Step::Abandon(at) => scans[at] = Scan::default(),
                Step::Repeat(at) => {
                    let first = page(&cursors, &rows, scans[at].number, 5);
                    let second = page(&cursors, &rows, scans[at].number, 5);
                    if first.0 == second.0 {
                        prop_assert_eq!(first.1, second.1);
                    }
                }
                Step::Reopen => {
                    let saved = cursors.tables.lock().newest(MOST_SAVED);
                    cursors = ScanCursors::new(cursors.seed);
                    let mut tables = cursors.tables.lock();
                    decode(&saved).into_iter().for_each(|(id, bytes)| {
                        tables.add(id, bytes);
                    });
                    drop(tables);
                }
            }
        }
        prop_assert!(scans.iter().all(|scan| scan.number == 0), "a scan that does not end");
    }
}
