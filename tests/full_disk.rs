//! A full disk is no one-way street: on a real file system that is too small, everything that frees
//! space goes through, writes come back by it, and the store closes, opens and survives kill -9 at
//! any moment. Nobody frees space from outside.
//!
//! Before there was a reserve that lasts, a third of the deletes were refused, writes never came
//! back, and the store did not open again.
//!
//! `LSMKV_FULL_DISK_MB` sets the size of the file systems, `LSMKV_FULL_DISK_KILLS` the number of
//! kills, `LSMKV_SEED` when they happen. From 300 MB on the options are the default ones.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may"
)]

#[path = "toolchain/programs.rs"]
mod programs;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, ErrorKind, Options, Reply};
use programs::skip;

const CHILD_DIR: &str = "LSMKV_TEST_FULL_DISK_DIR";

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A file system of its own, unmounted at the end.
struct Mount {
    dir: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Mount {
    fn tmpfs(mb: u64) -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("mount");
        std::fs::create_dir(&dir).unwrap();
        let size = format!("size={mb}m");
        let mounted = run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", dir.to_str()?]);
        mounted.then(|| Self { dir, _scratch: scratch })
    }

    fn ext4(mb: u64) -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        let (dir, image) = (scratch.path().join("mount"), scratch.path().join("image"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::File::create(&image).unwrap().set_len(mb << 20).unwrap();
        let made = run("mkfs.ext4", &["-q", "-F", image.to_str()?])
            && run("mount", &["-o", "loop", image.to_str()?, dir.to_str()?]);
        made.then(|| Self { dir, _scratch: scratch })
    }

    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &[self.dir.to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

fn options(mb: u64) -> Options {
    let (budget, segment) = if mb < 48 { (4 << 20, 256 << 10) } else { (24 << 20, 2 << 20) };
    match mb >= 300 {
        true => Options::default(),
        false => Options {
            memory_budget: budget,
            log_segment_bytes: segment,
            table_bytes: segment,
            ..Options::default()
        },
    }
}

/// Opens the store. A failure shows what takes the space.
fn open(mount: &Mount, mb: u64) -> Db {
    Db::open(mount.store(), options(mb)).unwrap_or_else(|error| {
        let files = std::fs::read_dir(mount.store()).unwrap().map(|entry| {
            let entry = entry.unwrap();
            format!("{} {}", entry.file_name().display(), entry.metadata().unwrap().len())
        });
        let mut files: Vec<_> = files.collect();
        files.sort();
        panic!("{error:?}\n{}", files.join("\n"))
    })
}

fn key(n: u64) -> Vec<u8> {
    // Spread over the key space, so that deletes hit all tables.
    format!("key:{:020}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(n);
    let len = 100 + random.below(800);
    (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
}

/// Writes from key `next` on until the disk is full for good, and returns the first key that was
/// refused.
fn fill(db: &Db, mut next: u64, mut each: impl FnMut(u64)) -> u64 {
    let mut refused = 0;
    while refused < 3 {
        match db.set(&key(next), &value(next)) {
            Ok(()) => {
                each(next);
                (next, refused) = (next + 1, 0);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
                refused += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    next
}

/// The longest time until writes are accepted after the deletes.
const RESUME: Duration = Duration::from_secs(5);

/// The longest time that all deletes of a story may take.
const SLOWEST: Duration = Duration::from_secs(30);

/// What is known of a store whose deletes are slow.
fn state_of(db: &Db) -> String {
    let stats: Vec<String> = db.stats().unwrap().iter().map(|stat| format!("{stat:?}")).collect();
    format!("{}\n{:#?}", stats.join("\n"), db.tables())
}

/// Deletes a share of the keys, none of which may be refused.
fn delete(db: &Db, keys: std::ops::Range<u64>, percent: u64, mut each: impl FnMut(u64)) -> i64 {
    let (mut deleted, begun) = (0, Instant::now());
    for n in keys.filter(|n| n % 100 < percent) {
        let gone = db.del(&[&key(n)]);
        deleted += gone.unwrap_or_else(|error| panic!("delete {n} was refused: {error:?}"));
        // The speed of merges, and no less.
        assert!(begun.elapsed() < SLOWEST, "{deleted} deleted in {SLOWEST:?}: {}", state_of(db));
        each(n);
    }
    deleted
}

/// Waits until writes are accepted, and returns how long that took.
fn resumes(db: &Db) -> Duration {
    let begun = Instant::now();
    let mut accepted = 0;
    while accepted < 100 {
        match db.set(format!("new:{accepted}").as_bytes(), &value(accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
                assert!(begun.elapsed() < RESUME, "writes do not resume: {error:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    begun.elapsed()
}

fn check(db: &Db, when: &str) {
    assert_eq!(db.check().unwrap(), Vec::<String>::new(), "{when}");
}

fn survivors_read_right(db: &Db, keys: std::ops::Range<u64>, percent: u64, when: &str) {
    for n in keys {
        let found = db.get(&key(n)).unwrap();
        let expected = (n % 100 >= percent).then(|| value(n));
        assert!(found.as_deref() == expected.as_deref(), "{when}: key {n} reads wrong");
    }
}

/// Fills the disk, deletes a share of the keys, and goes on.
fn story(mount: &Mount, mb: u64, percent: u64) {
    let db = open(mount, mb);
    let begun = Instant::now();
    let keys = 0..fill(&db, 0, |_| ());
    let filled = begun.elapsed();
    survivors_read_right(&db, 0..100.min(keys.end), 0, "on the full disk");
    let begun = Instant::now();
    let deleted = delete(&db, keys.clone(), percent, |_| ());
    let took = begun.elapsed();
    let resumed = resumes(&db);
    println!(
        "{mb} MB, {percent}%: {} keys in {filled:?}, {deleted} deleted in {took:?}, writes came \
         back after {resumed:?}",
        keys.end
    );
    survivors_read_right(&db, keys.clone(), percent, "after the deletes");
    check(&db, "after the deletes");
    db.close().unwrap();
    let db = open(mount, mb);
    survivors_read_right(&db, keys.clone(), percent, "reopened");
    check(&db, "reopened");
    // Again, and this time the store is closed and opened while the disk is full.
    let end = fill(&db, keys.end, |_| ());
    db.close().unwrap();
    drop(db);
    let db = open(mount, mb);
    survivors_read_right(&db, keys.end..end, 0, "opened on a full disk");
    check(&db, "opened on a full disk");
    empties(&db, mount, mb, 0..end);
}

/// Deletes all keys, goes on, and closes; the next open finds the rest.
fn empties(db: &Db, mount: &Mount, mb: u64, keys: std::ops::Range<u64>) {
    delete(db, keys.clone(), 100, |_| ());
    resumes(db);
    check(db, "after the last deletes");
    db.close().unwrap();
    let db = open(mount, mb);
    survivors_read_right(&db, keys, 100, "reopened at the end");
    assert_eq!(db.get(b"new:0").unwrap().unwrap(), value(0));
    check(&db, "reopened at the end");
    db.close().unwrap();
}

/// The commands for what a round has written.
type Lines = fn(u64) -> Vec<String>;

/// A collection of each kind and strings that expire, until the disk is full; each kind of command
/// that frees space takes its share away, and writes come back.
fn story_of_other_commands(mount: &Mount, mb: u64) {
    const PER_ROUND: u64 = 200;
    let db = open(mount, mb);
    let mut rounds = 0;
    while fill_round(&db, rounds, PER_ROUND).is_ok() {
        rounds += 1;
    }
    assert!(rounds > 0);
    let frees: [(&str, Lines); 5] = [
        ("LPOP", |round| vec![format!("LPOP list{round} {PER_ROUND}")]),
        ("SPOP", |round| vec![format!("SPOP set{round} {PER_ROUND}")]),
        ("ZPOPMIN", |round| vec![format!("ZPOPMIN ranking{round} {PER_ROUND}")]),
        ("LTRIM", |round| vec![format!("LTRIM trimmed{round} 1 0")]),
        ("EXPIRE", |round| {
            (0..PER_ROUND).map(|i| format!("EXPIRE string{round}:{i} -1")).collect()
        }),
    ];
    for (name, free) in frees {
        for line in (0..=rounds).flat_map(free) {
            let reply = say(&db, &line, None);
            let reply = reply.unwrap_or_else(|error| panic!("{line} was refused: {error:?}"));
            assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
        }
        let resumed = resumes(&db);
        println!("{mb} MB, {rounds} rounds: writes came back {resumed:?} after {name}");
        while fill_round(&db, rounds, PER_ROUND).is_ok() {
            rounds += 1;
        }
    }
    check(&db, "after other commands");
    for flush in ["FLUSHDB", "FLUSHALL"] {
        while fill_round(&db, rounds, PER_ROUND).is_ok() {
            rounds += 1;
        }
        let reply = say(&db, flush, None);
        assert!(matches!(reply, Ok(Reply::Status(_))), "{flush} was refused: {reply:?}");
        assert_eq!(db.dbsize().unwrap(), 0, "{flush}");
        let resumed = resumes(&db);
        println!("{mb} MB, {rounds} rounds: writes came back {resumed:?} after {flush}");
        check(&db, flush);
    }
    db.close().unwrap();
    let db = open(mount, mb);
    assert_eq!(db.get(b"new:0").unwrap().unwrap(), value(0));
    check(&db, "reopened");
    db.close().unwrap();
}

/// Runs a command, with an argument more if there is one.
fn say(db: &Db, line: &str, last: Option<&[u8]>) -> lsmkv::Result<Reply> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).chain(last).collect();
    db.command(&words)
}

/// Adds an element to a collection of each kind, and a string, `elements` times.
fn fill_round(db: &Db, round: u64, elements: u64) -> lsmkv::Result<()> {
    for i in 0..elements {
        let element = value(round * elements + i);
        for line in [
            format!("RPUSH list{round}"),
            format!("SADD set{round}"),
            format!("ZADD ranking{round} {i}"),
            format!("RPUSH trimmed{round}"),
            format!("SET string{round}:{i}"),
        ] {
            say(db, &line, Some(&element))?;
        }
    }
    Ok(())
}

#[test]
fn pops_trims_expiry_and_flushes_bring_writes_back() {
    match Mount::tmpfs(megabytes()) {
        Some(mount) => story_of_other_commands(&mount, megabytes()),
        None => skip("full_disk::other_commands", "a file system cannot be mounted here"),
    }
}

fn on(mount: Option<Mount>, name: &str, mb: u64, percent: u64) {
    match mount {
        Some(mount) => story(&mount, mb, percent),
        None => skip(name, "a file system cannot be mounted here"),
    }
}

fn megabytes() -> u64 {
    number_from_env("LSMKV_FULL_DISK_MB", 48)
}

#[test]
fn every_delete_goes_through_on_a_full_tmpfs_and_writes_come_back() {
    for percent in [100, 60] {
        on(Mount::tmpfs(megabytes()), "full_disk::tmpfs", megabytes(), percent);
    }
}

#[test]
fn every_delete_goes_through_on_a_full_ext4_and_writes_come_back() {
    for percent in [100, 60] {
        on(Mount::ext4(megabytes()), "full_disk::ext4", megabytes(), percent);
    }
}

/// The size of the file system of the kills.
fn kill_megabytes() -> u64 {
    number_from_env("LSMKV_FULL_DISK_MB", 24)
}

/// What a child does when it is killed. It says when each of them begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Opening,
    Filling,
    Full,
    Deleting,
    Resuming,
}

/// The order in which the kills aim at the phases: an open after a kill on the full disk, and deletes
/// after a kill in an open on the full disk.
const AIMS: [Phase; 5] =
    [Phase::Filling, Phase::Full, Phase::Opening, Phase::Deleting, Phase::Resuming];

impl Phase {
    fn named(name: &str) -> Option<Self> {
        AIMS.into_iter().find(|phase| format!("{phase:?}") == name)
    }
}

/// Not a test of its own: what the children run. Fills and empties the store until it is killed, and
/// says what was acknowledged.
#[test]
fn child_that_fills_the_disk_until_it_is_killed() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let out = std::cell::RefCell::new(std::io::stdout().lock());
    let say = |text: String| {
        let mut out = out.borrow_mut();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).unwrap();
    };
    let begin = |phase: Phase| say(format!("\nphase {phase:?}\n"));
    begin(Phase::Opening);
    let db = Db::open(Path::new(&dir), options(kill_megabytes())).unwrap();
    let mut oldest = number_from_env("LSMKV_TEST_FULL_DISK_OLDEST", 0);
    let mut next = number_from_env("LSMKV_TEST_FULL_DISK_FIRST", 0);
    for round in number_from_env("LSMKV_TEST_FULL_DISK_ROUND", 0).. {
        begin(Phase::Filling);
        next = fill(&db, next, |n| say(format!("set {n}\n")));
        begin(Phase::Full);
        // For longer than a kill that aims at this phase waits.
        for _ in 0..8 {
            next = fill(&db, next, |n| say(format!("set {n}\n")));
        }
        begin(Phase::Deleting);
        let percent = if round % 2 == 0 { 60 } else { 100 };
        delete(&db, oldest..next, percent, |n| say(format!("del {n}\n")));
        if percent == 100 {
            oldest = next;
        }
        begin(Phase::Resuming);
        resumes(&db);
    }
}

/// When a child is killed: some time after it has said so many lines that begin like this.
struct Moment {
    line: String,
    count: u64,
    then: Duration,
}

impl Moment {
    fn random(aim: Phase, random: &mut SplitMix64) -> Self {
        let mb = kill_megabytes();
        let begun = format!("phase {aim:?}");
        // On average in the middle of a fill and of its deletes.
        let (line, count, most_ms) = match aim {
            Phase::Opening => (begun, 0, 40),
            Phase::Filling => ("set ".to_owned(), random.below(mb * 1000), 5),
            Phase::Full => (begun, 0, 200),
            Phase::Deleting => ("del ".to_owned(), random.below(mb * 500), 5),
            Phase::Resuming => (begun, 0, 10),
        };
        Self { line, count, then: Duration::from_millis(random.below(most_ms)) }
    }
}

/// What the children have done for sure.
#[derive(Default)]
struct Acknowledged {
    keys: BTreeMap<u64, bool>,
    next: u64,
    /// Children killed since the last comparison: each may have done one thing more.
    killed: usize,
    /// How many were killed in which phase.
    phases: BTreeMap<Phase, u64>,
}

impl Acknowledged {
    /// The first key that may still be set.
    fn oldest(&self) -> u64 {
        let mut set = self.keys.iter().filter(|(_, is_set)| **is_set);
        set.next().map_or(self.next, |(n, _)| *n)
    }

    fn take(&mut self, lines: &[String]) {
        let mut phase = Phase::Opening;
        for (what, what_for) in lines.iter().filter_map(|line| line.split_once(' ')) {
            if what == "phase" {
                phase = Phase::named(what_for).unwrap();
                continue;
            }
            let Ok(n) = what_for.parse::<u64>() else { continue };
            match what {
                "set" => _ = self.keys.insert(n, true),
                "del" => _ = self.keys.insert(n, false),
                _ => continue,
            }
            self.next = self.next.max(n + 1);
        }
        self.killed += 1;
        *self.phases.entry(phase).or_default() += 1;
    }
}

fn run_and_kill(dir: &Path, known: &mut Acknowledged, round: u64, moment: Moment) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_fills_the_disk_until_it_is_killed", "--nocapture"])
        .env(CHILD_DIR, dir)
        .env("LSMKV_TEST_FULL_DISK_FIRST", known.next.to_string())
        .env("LSMKV_TEST_FULL_DISK_OLDEST", known.oldest().to_string())
        .env("LSMKV_TEST_FULL_DISK_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (reached, wait) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut lines, mut left) = (Vec::new(), moment.count);
        for line in out.lines().map_while(Result::ok) {
            if line.starts_with(&moment.line) {
                match left {
                    0 => _ = reached.send(()),
                    _ => left -= 1,
                }
            }
            lines.push(line);
        }
        lines
    });
    let waited = wait.recv_timeout(Duration::from_secs(300));
    std::thread::sleep(moment.then);
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let lines = reader.join().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(ended.is_none(), "the child ended by itself: {complaint}");
    waited.unwrap_or_else(|_| panic!("the child has not come to it: {:?}", lines.last()));
    known.take(&lines);
}

/// Everything acknowledged is there. Each child may have deleted one key more.
fn compare(db: &Db, known: &mut Acknowledged, when: &str) {
    let mut differences = Vec::new();
    for (&n, &is_set) in &known.keys {
        let found = db.get(&key(n)).unwrap();
        let expected = is_set.then(|| value(n));
        if found.as_deref() != expected.as_deref() {
            differences.push((n, is_set, found.is_some()));
        }
    }
    assert!(differences.len() <= known.killed, "{when}: {differences:?}");
    assert!(differences.iter().all(|(_, is_set, found)| *is_set && !*found), "{when}");
    known.keys.retain(|n, _| db.exists(&[&key(*n)]).unwrap() > 0);
    known.killed = 0;
}

#[test]
fn a_store_on_a_full_disk_survives_kill_9_at_any_moment() {
    let mb = kill_megabytes();
    let Some(mount) = Mount::tmpfs(mb) else {
        return skip("full_disk::kill", "a file system cannot be mounted here");
    };
    let kills = number_from_env("LSMKV_FULL_DISK_KILLS", 6);
    let seed = number_from_env("LSMKV_SEED", 1);
    let mut random = SplitMix64::new(seed);
    let mut known = Acknowledged::default();
    for (kill, aim) in (0..kills).zip(AIMS.into_iter().cycle()) {
        let when = format!("kill {kill} while {aim:?}, LSMKV_SEED={seed}");
        run_and_kill(&mount.store(), &mut known, kill, Moment::random(aim, &mut random));
        if random.below(2) == 0 {
            continue;
        }
        let db = open(&mount, mb);
        compare(&db, &mut known, &when);
        check(&db, &when);
        match random.below(2) {
            0 => db.close().unwrap(),
            _ => drop(db),
        }
    }
    println!("{mb} MB, killed while {:?}", known.phases);
    // An open, and the time until writes come back, are too short to be hit for sure.
    for phase in [Phase::Filling, Phase::Full, Phase::Deleting] {
        let hit = known.phases.contains_key(&phase) || kills < AIMS.len() as u64;
        assert!(hit, "no kill while {phase:?}: {:?}", known.phases);
    }
    let db = open(&mount, mb);
    compare(&db, &mut known, "after the last kill");
    empties(&db, &mount, mb, known.oldest()..known.next + 1);
}
