//! Real processes on the real file system: death by SIGKILL at any moment loses nothing that was
//! acknowledged, whatever the sync mode; and what processes see of each other's stores.
//!
//! `LSMKV_KILLS` sets the number of kills, `LSMKV_SEED` when they happen.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may")]

mod fault_support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fault_support::{
    Contents, LAST, Shape, Watchdog, assert_same, config, nothing, number_from_env, read_all,
};
use lsmkv::engine::{Engine, RealFs, TreeId};
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{ErrorKind, Options, Result, SyncMode};

const SHAPE: Shape = Shape { keys: 400, value_bytes: 300, marks: false };
/// Set in the child: the directory of the store, and its settings.
const CHILD_DIR: &str = "LSMKV_TEST_KILL_DIR";
const CHILD_SYNC: &str = "LSMKV_TEST_KILL_SYNC";
const CHILD_THREADS: &str = "LSMKV_TEST_KILL_THREADS";

fn options(sync: SyncMode, threads: u32) -> Options {
    Options {
        sync,
        sync_interval_ms: 5,
        background_threads: threads,
        write_buffer: 32 << 10,
        table_bytes: 32 << 10,
        block_bytes: 1024,
        memory_budget: 1 << 20,
        log_segment_bytes: 16 << 10,
        ..Options::default()
    }
}

fn open(dir: &Path, options: Options) -> Result<Engine> {
    Engine::open(Arc::new(RealFs), dir, config(options))
}

/// How many batches the store holds, by its own account.
fn written(engine: &Engine) -> u64 {
    match engine.get(TreeId(0), LAST).unwrap() {
        Some(value) => u64::from_be_bytes(value[..].try_into().unwrap()) + 1,
        None => 0,
    }
}

/// Not a test of its own: what the children run. Acknowledges every batch on standard output.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let sync = match std::env::var(CHILD_SYNC).unwrap().as_str() {
        "always" => SyncMode::Always,
        "interval" => SyncMode::Interval,
        _ => SyncMode::Off,
    };
    let threads = std::env::var(CHILD_THREADS).unwrap().parse().unwrap();
    let say = |text: String| {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).unwrap();
    };
    say("\nopening\n".to_owned());
    let engine = match open(Path::new(&dir), options(sync, threads)) {
        Ok(engine) => engine,
        Err(error) => return say(format!("refused {:?}\n", error.kind())),
    };
    for n in written(&engine).. {
        SHAPE.write(&engine, n, sync).unwrap();
        say(format!("ack {n}\n"));
    }
}

fn child(dir: &Path, sync: SyncMode, threads: u32) -> Child {
    let name = match sync {
        SyncMode::Always => "always",
        SyncMode::Interval => "interval",
        SyncMode::Off => "off",
    };
    Command::new(std::env::current_exe().unwrap())
        .args(["child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
        .env(CHILD_DIR, dir)
        .env(CHILD_SYNC, name)
        .env(CHILD_THREADS, threads.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads lines until one starts with `word`; the rest of that line.
fn wait_for(lines: &mut impl BufRead, word: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the child ended before '{word}'");
        if let Some(rest) = line.strip_prefix(word) {
            return rest.trim().to_owned();
        }
    }
}

/// Lets a child run and kills it; the number of batches it has acknowledged, if any.
fn run_and_kill(mut child: Child, while_opening: bool, random: &mut SplitMix64) -> Option<u64> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut lines, "opening");
    let mut last = None;
    let delay = if while_opening {
        Duration::from_micros(random.below(4000))
    } else {
        last = Some(wait_for(&mut lines, "ack "));
        Duration::from_micros(random.below(60_000))
    };
    // Read meanwhile: a child that waits for a full pipe would not be killed at work.
    let reader = std::thread::spawn(move || {
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        rest
    });
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    let rest = reader.join().unwrap();
    // The last line may be cut short: then it was not said.
    let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
    let said = whole.lines().filter_map(|line| line.strip_prefix("ack ")).next_back();
    said.or(last.as_deref()).map(|number| number.parse::<u64>().unwrap() + 1)
}

/// A store through its lives, and what it must hold.
struct Lives {
    dir: PathBuf,
    model: Contents,
    count: u64,
}

impl Lives {
    /// `acknowledged` batches are there, and at most one more from each of the `lives` since.
    fn check(&mut self, acknowledged: u64, lives: u64, context: &str) {
        let threads = u32::try_from(self.count % 2).unwrap();
        let engine = open(&self.dir, options(SyncMode::Off, threads)).unwrap();
        let found = written(&engine);
        let allowed = acknowledged..=acknowledged + lives;
        assert!(allowed.contains(&found), "{found} batches, not {allowed:?}: {context}");
        (self.count..found).for_each(|n| SHAPE.apply(n, &mut self.model));
        self.count = found;
        let contents = read_all(&engine, &self.model).unwrap();
        assert_same(&contents, &self.model, context);
        if self.count.is_multiple_of(3) {
            engine.close().unwrap();
        }
    }
}

#[test]
fn whatever_was_acknowledged_survives_the_death_of_the_process() {
    let kills = number_from_env("LSMKV_KILLS", 200);
    let seed = number_from_env("LSMKV_SEED", 1);
    let mut random = SplitMix64::new(seed);
    let watchdog = Watchdog::start(Duration::from_secs(60));
    let scratch = tempfile::tempdir().unwrap();
    let modes = [SyncMode::Always, SyncMode::Interval, SyncMode::Off];
    let mut stores: Vec<Lives> = (0..modes.len())
        .map(|n| Lives { dir: scratch.path().join(n.to_string()), model: nothing(), count: 0 })
        .collect();
    for kill in 0..kills {
        watchdog.beat();
        let which = usize::try_from(kill % 3).unwrap();
        let (lives, sync) = (&mut stores[which], modes[which]);
        let threads = u32::try_from(random.below(2)).unwrap();
        let while_opening = random.one_in(10);
        let context = format!("kill {kill} of seed {seed}, {sync:?}, {threads} threads");
        let mut acknowledged = lives.count;
        let mut die = |while_opening| {
            let child = child(&lives.dir, sync, threads);
            let said = run_and_kill(child, while_opening, &mut random);
            acknowledged = acknowledged.max(said.unwrap_or(0));
        };
        die(while_opening);
        // Now and then a second one dies before anyone has opened the store again.
        let twice = kill % 5 == 4;
        if twice {
            die(true);
        }
        lives.check(acknowledged, 1 + u64::from(twice), &context);
    }
    assert!(stores.iter().all(|lives| lives.count > 10), "the children hardly wrote");
}

#[test]
fn a_second_process_is_refused_while_the_first_lives() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let mut first = child(&dir, SyncMode::Off, 0);
    let mut lines = BufReader::new(first.stdout.take().unwrap());
    wait_for(&mut lines, "ack ");
    let refused = open(&dir, options(SyncMode::Off, 0)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.message().contains(&format!("in process {};", first.id())), "{refused}");
    assert!(refused.message().contains("lsmkv_serve"), "{refused}");
    let read_only = Options { read_only: true, ..options(SyncMode::Off, 0) };
    assert_eq!(open(&dir, read_only).unwrap_err().kind(), ErrorKind::Busy);
    let mut second = child(&dir, SyncMode::Off, 0);
    let mut other_lines = BufReader::new(second.stdout.take().unwrap());
    assert_eq!(wait_for(&mut other_lines, "refused "), "Busy");
    second.wait().unwrap();
    // Nor has either attempt taken the first one's lock away.
    assert_eq!(open(&dir, options(SyncMode::Off, 0)).unwrap_err().kind(), ErrorKind::Busy);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(written(&open(&dir, options(SyncMode::Off, 0)).unwrap()) > 0);
}

#[test]
fn a_second_handle_of_one_process_is_refused_and_does_not_drop_the_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let engine = open(&dir, options(SyncMode::Off, 0)).unwrap();
    for _ in 0..2 {
        let refused = open(&dir, options(SyncMode::Off, 0)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.message().contains("in this process; use the handle"), "{refused}");
    }
    let mut other = child(&dir, SyncMode::Off, 0);
    let mut lines = BufReader::new(other.stdout.take().unwrap());
    assert_eq!(wait_for(&mut lines, "refused "), "Busy");
    other.wait().unwrap();
    drop(engine);
    open(&dir, options(SyncMode::Off, 0)).unwrap();
}

/// Every file with its content, mode and times.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64, i64)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let meta = entry.metadata().unwrap();
            let content = std::fs::read(entry.path()).unwrap();
            (entry.path(), (content, meta.mode(), meta.mtime(), meta.mtime_nsec()))
        })
        .collect()
}

/// A store with tables and a log that has something in it, whose process has died.
fn store_with_a_log(dir: &Path) -> Contents {
    let engine = open(dir, options(SyncMode::Off, 0)).unwrap();
    (0..300).for_each(|n| SHAPE.write(&engine, n, SyncMode::Off).unwrap());
    SHAPE.after(0..300)
}

#[test]
fn files_are_for_their_owner_only() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let engine = open(&dir, options(SyncMode::Off, 0)).unwrap();
    (0..300).for_each(|n| SHAPE.write(&engine, n, SyncMode::Off).unwrap());
    engine.compact().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&dir), 0o700);
    let files = snapshot(&dir);
    assert!(files.len() >= 6, "{:?}", files.keys());
    for path in files.keys() {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_store_opens_through_a_symbolic_link_and_is_the_same_store() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let link = scratch.path().join("link");
    let expected = store_with_a_log(&dir);
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let engine = open(&link, options(SyncMode::Off, 1)).unwrap();
    assert_eq!(open(&dir, options(SyncMode::Off, 1)).unwrap_err().kind(), ErrorKind::Busy);
    assert_same(&read_all(&engine, &expected).unwrap(), &expected, "through the link");
    engine.compact().unwrap();
    engine.close().unwrap();
    let engine = open(&dir, options(SyncMode::Off, 1)).unwrap();
    assert_same(&read_all(&engine, &expected).unwrap(), &expected, "directly");
}

#[test]
fn a_directory_of_other_files_is_no_store_and_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    std::fs::write(dir.join("thesis.txt"), b"ten years of work").unwrap();
    let error = open(dir, options(SyncMode::Off, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error:?}");
    assert!(error.message().contains("thesis.txt"), "{error:?}");
    let names: Vec<_> = snapshot(dir).into_keys().collect();
    let ours = |path: &PathBuf| !path.ends_with("thesis.txt") && !path.ends_with("LOCK");
    assert!(!names.iter().any(ours), "{names:?}");
}

#[test]
fn read_only_reads_everything_and_changes_nothing() {
    for closed in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("store");
        let expected = store_with_a_log(&dir);
        if closed {
            open(&dir, options(SyncMode::Off, 0)).unwrap().close().unwrap();
        }
        let before = snapshot(&dir);
        let read_only = Options { read_only: true, ..options(SyncMode::Interval, 1) };
        let engine = open(&dir, read_only).unwrap();
        assert_same(&read_all(&engine, &expected).unwrap(), &expected, "read-only");
        engine.verify().unwrap();
        for refused in [
            SHAPE.write(&engine, 1000, SyncMode::Off),
            engine.sync(),
            engine.flush(),
            engine.compact(),
            engine.resume(),
            engine.wait_idle(),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
        assert_same(&read_all(&engine, &expected).unwrap(), &expected, "after refusals");
        engine.close().unwrap();
        assert!(before == snapshot(&dir), "a read-only handle has changed the directory");
    }
}

#[test]
fn stores_are_created_and_reused_only_as_the_options_say() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let base = || options(SyncMode::Off, 0);
    let existing_only = || Options { create_if_missing: false, ..base() };
    for refused in [existing_only(), Options { read_only: true, ..base() }] {
        assert_eq!(open(&dir, refused).unwrap_err().kind(), ErrorKind::Invalid);
        assert!(!dir.exists(), "refused, and created all the same");
    }
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(open(&dir, existing_only()).unwrap_err().kind(), ErrorKind::Invalid);
    let new_only = || Options { error_if_exists: true, ..base() };
    let engine = open(&dir, new_only()).unwrap();
    SHAPE.write(&engine, 0, SyncMode::Off).unwrap();
    drop(engine);
    let before = snapshot(&dir);
    assert_eq!(open(&dir, new_only()).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(before == snapshot(&dir), "a refused open has changed the directory");
    assert_eq!(written(&open(&dir, existing_only()).unwrap()), 1);
    let missing_parent = scratch.path().join("a").join("b");
    assert_eq!(open(&missing_parent, base()).unwrap_err().kind(), ErrorKind::Io);
}
