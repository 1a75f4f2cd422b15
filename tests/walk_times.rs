//! What a walk costs after many writes, and a write beside walks: CPU time of the calling thread, so
//! that others on the machine and background threads do not count.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may; the clock of a thread is asked by a system call"
)]

use std::time::Duration;

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::types::KeyRange;
use lsmkv::{Db, Options, SyncMode};

const WRITES: u64 = 300_000;
const ROUNDS: u64 = 3_000;
/// Fifty times what is measured, in a debug build too, and a seventh of what a sort of all took.
const LIMIT: Duration = Duration::from_millis(5);

/// The CPU time that this thread has used.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives during the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    let part = |number: i64| u64::try_from(number).unwrap();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// The CPU time of a call.
fn cost<R>(call: impl FnOnce() -> R) -> Duration {
    let before = thread_time();
    call();
    thread_time() - before
}

fn key(n: u64) -> Vec<u8> {
    format!("key:{:012}", SplitMix64::new(n).below(1 << 39)).into_bytes()
}

fn set(db: &Db, n: u64) {
    db.set(&key(n), &[7; 100]).unwrap();
}

/// A store with everything in one memtable, in an order in which nobody has walked.
fn filled(dir: &std::path::Path) -> Db {
    let options = Options {
        sync: SyncMode::Off,
        write_buffer: 256 << 20,
        memory_budget: 1 << 30,
        ..Options::default()
    };
    let db = Db::open(dir, options).unwrap();
    (0..WRITES).for_each(|n| set(&db, n));
    assert!(is_unflushed(&db));
    db
}

/// Whether everything is still in the memtable.
fn is_unflushed(db: &Db) -> bool {
    let stats = db.stats().unwrap();
    stats.iter().any(|stat| stat.name == "flushes" && stat.value.as_f64() == 0.0)
}

/// Ten keys from a key on.
fn walk(db: &Db, from: u64) {
    let mut keys = db.iter(KeyRange { lo: Some(key(from)), ..KeyRange::default() }).unwrap();
    (0..10).for_each(|_| _ = keys.next().unwrap());
}

fn scan(db: &Db) {
    let reply = db.command(&[b"SCAN", b"0", b"COUNT", b"10"]).unwrap();
    assert!(matches!(reply, lsmkv::Reply::Array(_)), "{reply:?}");
}

/// The first walk, by `first`, and then writes and walks in turn.
fn check(what: &str, first: impl FnOnce(&Db)) {
    let scratch = tempfile::tempdir().unwrap();
    let db = filled(scratch.path());
    let first = cost(|| first(&db));
    let (mut writes, mut walks) = (Vec::new(), Vec::new());
    for n in WRITES..WRITES + ROUNDS {
        writes.push(cost(|| set(&db, n)));
        walks.push(cost(|| walk(&db, n / 2)));
    }
    for (what, costs) in [("a write beside walks", &mut writes), ("a later walk", &mut walks)] {
        costs.sort();
        let (median, most) = (costs.get(costs.len() / 2).unwrap(), costs.last().unwrap());
        println!("{what}: median {median:?}, at most {most:?} of CPU");
        assert!(*most < LIMIT, "{what} took {most:?} of CPU");
    }
    assert!(is_unflushed(&db));
    println!("{what} after {WRITES} writes: {first:?} of CPU");
    assert!(first < LIMIT, "{what} took {first:?} of CPU");
}

/// It sorted all that had been written, in 36 to 54 ms of CPU.
#[test]
fn the_first_iterator_after_many_writes_and_a_write_beside_walks_are_quick() {
    check("the first iterator", |db| walk(db, 1));
}

#[test]
fn the_first_scan_after_many_writes_is_quick() {
    check("the first SCAN", scan);
}
