//! Libraries of functions after a power cut at every sync, and after SIGKILL again and again: they are
//! those of one moment, and all of them load.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::RealClock;
use lsmkv::io::mem::CrashMode;
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Options, Reply, SyncMode};
use parking_lot::Mutex;

use super::kill::said_until_killed;
use super::number;

/// Set in the child: the directory of the store, and how many changes it holds.
const CHILD_DIR: &str = "LSMKV_TEST_FUNCTIONS_DIR";
const CHILD_FROM: &str = "LSMKV_TEST_FUNCTIONS_FROM";
const CHANGES: u64 = 48;
const MODES: [CrashMode; 3] = [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic];

fn options() -> Options {
    Options {
        sync: SyncMode::Off,
        write_buffer: 64 << 10,
        memory_budget: 2 << 20,
        log_segment_bytes: 8 << 10,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    }
}

/// A library of some kilobytes whose function returns `n`.
fn library(name: &str, n: u64) -> String {
    let filler = "x".repeat((n % 5 * 700) as usize);
    format!(
        "#!lua name={name}\nredis.register_function('{name}', function() return {n} end) --{filler}"
    )
}

/// FUNCTION DUMP of libraries of their own.
fn payload(n: u64) -> Vec<u8> {
    let other = Db::open(":memory:", Options::default()).unwrap();
    for name in ["b", "c", "d"] {
        other.function_load(library(name, n), false).unwrap();
    }
    dump(&other)
}

fn dump(db: &Db) -> Vec<u8> {
    match db.command(&[b"FUNCTION", b"DUMP"]).unwrap() {
        Reply::Bulk(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Change `n` of the libraries, which is one command.
fn change(db: &Db, n: u64) {
    let (a, b) = (library("a", n), library("b", n));
    let payload = if matches!(n % 6, 2 | 5) { payload(n) } else { Vec::new() };
    let argv: &[&[u8]] = match n % 6 {
        1 => &[b"FUNCTION", b"LOAD", b"REPLACE", a.as_bytes()],
        2 => &[b"FUNCTION", b"RESTORE", &payload, b"REPLACE"],
        3 => &[b"FUNCTION", b"LOAD", b"REPLACE", b.as_bytes()],
        4 => &[b"FUNCTION", b"DELETE", b"c"],
        5 => &[b"FUNCTION", b"RESTORE", &payload, b"FLUSH"],
        _ => &[b"FUNCTION", b"FLUSH"],
    };
    let reply = db.command(argv).unwrap();
    assert!(!matches!(reply, Reply::Error(_)), "change {n}: {reply:?}");
}

/// The libraries after each number of changes.
#[derive(Default)]
struct Moments(Vec<Vec<u8>>);

impl Moments {
    fn new(count: u64) -> Self {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let mut moments = vec![dump(&db)];
        for n in 1..=count {
            change(&db, n);
            moments.push(dump(&db));
        }
        Self(moments)
    }

    /// Which of the moments from `first` to `last` the store shows, after a call of every function.
    fn found(&self, db: &Db, first: u64, last: u64) -> Option<u64> {
        let found = dump(db);
        let Reply::Array(libraries) = db.command(&[b"FUNCTION", b"LIST"]).unwrap() else {
            panic!("no list")
        };
        let mut answers = 0;
        for name in ["a", "b", "c", "d"] {
            match db.fcall(name, &[], &[]) {
                Ok(Reply::Int(_)) => answers += 1,
                other => assert!(other.unwrap_err().message().contains("Function not found")),
            }
        }
        assert_eq!(answers, libraries.len());
        (first..=last).find(|n| self.0[*n as usize] == found)
    }
}

/// Copies of the file system, each with the number of changes begun and promised by then.
#[derive(Default)]
struct Album {
    begun: u64,
    promised: u64,
    photographs: Vec<(MemFs, u64, u64)>,
}

fn open_on(fs: &MemFs) -> Db {
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options(), Arc::new(RealClock)).unwrap()
}

#[test]
fn libraries_of_functions_are_of_one_moment_after_a_power_cut_at_every_sync() {
    let (fs, album) = (MemFs::new(), Arc::new(Mutex::new(Album::default())));
    let shared = Arc::clone(&album);
    fs.on_sync(move |fs, _| {
        let mut album = shared.lock();
        let photograph = (fs.deep_clone(), album.begun, album.promised);
        album.photographs.push(photograph);
    });
    let db = open_on(&fs);
    for n in 1..=CHANGES {
        album.lock().begun = n;
        let durable = n % 3 == 0;
        change(&db.with_sync(if durable { SyncMode::Always } else { SyncMode::Off }), n);
        if durable {
            album.lock().promised = n;
        }
        match n % 13 {
            4 => db.flush().unwrap(),
            9 => db.compact().unwrap(),
            _ => {}
        }
    }
    db.close().unwrap();
    let photographs = std::mem::take(&mut album.lock().photographs);
    assert!(photographs.len() > 60, "{}", photographs.len());
    let moments = Moments::new(CHANGES);
    for (at, (fs, begun, promised)) in photographs.into_iter().enumerate() {
        for mode in MODES {
            let db = open_on(&fs.crash_clone(at as u64, mode));
            let found = moments.found(&db, promised, begun);
            assert!(found.is_some(), "sync {at}, {mode:?}: not of {promised}..={begun}");
            assert_eq!(db.check().unwrap(), [""; 0]);
        }
    }
}

/// Not a test of its own: what the children run. Says each change that was acknowledged.
#[test]
fn child_of_functions_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let db = Db::open(dir, options()).unwrap();
    for n in number(CHILD_FROM, 0) + 1.. {
        change(&db, n);
        let mut out = std::io::stdout().lock();
        out.write_all(format!("\nack {n}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
    }
}

#[test]
fn libraries_of_functions_are_of_one_moment_after_every_kill() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let seed = number("LSMKV_SEED", 1);
    let (mut random, mut moments, mut done) = (SplitMix64::new(seed), Moments::default(), 0);
    for kill in 0..number("LSMKV_FUNCTION_KILLS", 15) {
        let variables =
            [(CHILD_DIR, dir.to_str().unwrap().to_owned()), (CHILD_FROM, done.to_string())];
        let child = "functions::child_of_functions_that_is_killed";
        let said = said_until_killed(child, &variables, &mut random);
        let said = said.lines().filter_map(|line| line.strip_prefix("ack ")).next_back().unwrap();
        let said: u64 = said.parse().unwrap();
        if moments.0.len() as u64 <= said + 1 {
            moments = Moments::new(2 * said + 100);
        }
        let db = Db::open(&dir, options()).unwrap();
        // The kill may have come between the commit and the word.
        let found = moments.found(&db, said, said + 1);
        done = found.unwrap_or_else(|| panic!("not of {said}, kill {kill} of seed {seed}"));
        assert_eq!(db.check().unwrap(), [""; 0]);
    }
}
