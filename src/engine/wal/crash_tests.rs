//! Stories of crashes: a store that is nothing but a log and a manifest lives, loses power,
//! recovers, loses power while it recovers, lives on; and one whose every call fails once.
//!
//! The contract each time: what is replayed is a prefix of what was appended, and holds
//! everything that was reported durable.

#![expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]

use std::sync::Arc;

use crate::engine::files::{FileKind, FileNumbers, log_path, manifest_path};
use crate::engine::health::Health;
use crate::engine::reserve::Reserve;
use crate::engine::space::DiskSpace;
use crate::engine::version::current::read_current;
use crate::engine::version::manifest_file::{ManifestWriter, read_manifest};
use crate::engine::wal::log::Log;
use crate::engine::wal::position::{Cut, LogPosition};
use crate::engine::wal::recovery::{Recovered, recover, seal};
use crate::engine::wal::segment::LogEnv;
use crate::engine::wal::sync_file::SyncFile;
use crate::engine::wal::testing::{EIO, TestFs, dir};
use crate::error::{Error, ErrorKind, Result};
use crate::io::codec::{Reader, put_u64};
use crate::io::fault::{Effect, Fault};
use crate::io::fs::FileSystem;
use crate::io::mem::{CrashMode, MemFs};
use crate::io::splitmix::SplitMix64;

const PAGE: u64 = 4096;
const ENOSPC: i32 = 28;

/// A store of numbered records.
struct Store {
    log: Log,
    manifest: ManifestWriter,
    cuts: Vec<Cut>,
}

fn encode_cuts(cuts: &[Cut]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(number, end) in cuts {
        put_u64(&mut out, number);
        put_u64(&mut out, end);
    }
    out
}

fn decode_cuts(payload: &[u8]) -> Vec<Cut> {
    let mut reader = Reader::new(payload);
    std::iter::from_fn(|| Some((reader.u64()?, reader.u64()?))).collect()
}

/// What the i-th record holds.
fn record(i: u64) -> Vec<u8> {
    let len = 8 + (i * 37 % 300) + if i % 50 == 49 { 9000 } else { 0 };
    let mut out = vec![i as u8; len as usize];
    out[..8].copy_from_slice(&i.to_le_bytes());
    out
}

fn highest_number(fs: &dyn FileSystem) -> Result<u64> {
    let names = fs.list(dir()).map_err(|e| Error::io("list", dir(), &e))?;
    let numbers = names.iter().filter_map(|name| match FileKind::parse(name)? {
        FileKind::Log(n) | FileKind::Table(n) | FileKind::Manifest(n) => Some(n),
        _ => None,
    });
    Ok(numbers.max().unwrap_or(0))
}

fn remove_temporaries(fs: &dyn FileSystem) -> Result<()> {
    for name in fs.list(dir()).map_err(|e| Error::io("list", dir(), &e))? {
        if FileKind::parse(&name) == Some(FileKind::Temporary) {
            let path = dir().join(name);
            fs.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
        }
    }
    Ok(())
}

/// Replays what is there; every record must be the one of its place. How many there were.
fn replay(fs: &dyn FileSystem, cuts: &mut Vec<Cut>) -> Result<(u64, Recovered, Option<u64>)> {
    let state = SyncFile::read(fs, dir())?;
    let current = read_current(fs, dir())?;
    if let Some(number) = current {
        read_manifest(fs, dir(), number, state, |payload| {
            *cuts = decode_cuts(payload);
            Ok(())
        })?;
    }
    let mut count = 0;
    let recovered = recover(fs, dir(), LogPosition::default(), cuts, state, |_, payload| {
        assert_eq!(payload, record(count), "record {count}");
        count += 1;
        Ok(())
    })?;
    Ok((count, recovered, current))
}

impl Store {
    /// Opens what is there; how many records there were.
    fn open(fs: impl FileSystem + 'static) -> Result<(Self, u64)> {
        let fs: Arc<dyn FileSystem> = Arc::new(fs);
        remove_temporaries(&*fs)?;
        let (count, recovered, old_manifest) = replay(&*fs, &mut Vec::new())?;
        let numbers = Arc::new(FileNumbers::starting_at(highest_number(&*fs)? + 1));
        let sync_file = Arc::new(SyncFile::open(&*fs, dir())?);
        let health = Arc::new(Health::default());
        seal(&*fs, dir(), &recovered.segments, recovered.synced)?;
        let env = LogEnv {
            fs: fs.clone(),
            dir: dir().to_owned(),
            numbers: numbers.clone(),
            health: health.clone(),
            sync_file: sync_file.clone(),
            max_segment_bytes: PAGE,
            space: Arc::new(DiskSpace::new(
                fs.clone(),
                dir(),
                Reserve::new(fs.clone(), dir(), &[], 0),
                64 << 10,
            )),
        };
        let log = Log::create(env, recovered.segments.clone())?;
        let number = numbers.allocate();
        let first = encode_cuts(&recovered.segments);
        let mut manifest =
            ManifestWriter::create(fs.clone(), dir(), number, &first, health, sync_file, None)?;
        manifest.make_current()?;
        // Harmless when it fails: the cuts are recorded.
        for (number, _) in recovered.segments.iter().filter(|cut| cut.1 == 0) {
            let _ = fs.remove(&log_path(dir(), *number));
        }
        if let Some(old) = old_manifest {
            let _ = fs.remove(&manifest_path(dir(), old));
        }
        Ok((Self { log, manifest, cuts: recovered.segments }, count))
    }
}

/// A store's life with its crashes, drawn from a seed.
struct Story {
    seed: u64,
    random: SplitMix64,
    disk: MemFs,
    /// Records reported durable.
    durable: u64,
}

impl Story {
    fn new(seed: u64) -> Self {
        let disk = TestFs::new().mem;
        Self { seed, random: SplitMix64::new(seed), disk, durable: 0 }
    }

    fn crash(&mut self, disk: &MemFs) -> MemFs {
        let mode = CrashMode::ALL[self.random.below(4) as usize];
        disk.crash_clone(self.random.next_u64(), mode)
    }

    /// Opens a copy that crashes in the middle of it, and goes on with what that leaves.
    fn crash_while_opening(&mut self) {
        let copy = self.disk.deep_clone();
        let capture = copy.capture_at_sync(1 + self.random.below(10));
        let opened = Store::open(copy);
        let count = opened.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed)).1;
        assert!(count >= self.durable, "seed {}: {count} of {}", self.seed, self.durable);
        if let Some(disk) = capture.before() {
            self.disk = self.crash(&disk);
        }
    }

    fn live(&mut self) {
        let opened = Store::open(self.disk.clone());
        let (mut store, mut appended) =
            opened.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        assert!(appended >= self.durable, "seed {}: {appended} of {}", self.seed, self.durable);
        self.durable = appended;
        for _ in 0..self.random.below(60) {
            match self.random.below(10) {
                0 => {
                    store.log.sync_all().unwrap();
                    self.durable = appended;
                }
                1 => store.log.prepare_next().unwrap(),
                2 => {
                    let cuts = store.cuts.clone();
                    store.manifest.append(&encode_cuts(&cuts)).unwrap();
                }
                _ => appended = self.append(&store, appended),
            }
        }
        self.disk = self.crash(&self.disk.clone());
    }

    fn append(&mut self, store: &Store, from: u64) -> u64 {
        let to = from + 1 + self.random.below(5);
        let group: Vec<_> = (from..to).map(record).collect();
        let group: Vec<_> = group.iter().map(Vec::as_slice).collect();
        let end = store.log.append(&group, false).unwrap();
        if self.random.one_in(4) {
            assert!(store.log.wait_durable(end, None).unwrap());
            self.durable = to;
        }
        to
    }
}

#[test]
fn after_any_power_cut_the_log_is_a_prefix_with_all_that_was_durable() {
    for seed in 0..400 {
        let mut story = Story::new(seed);
        for _ in 0..4 {
            story.live();
            if story.random.one_in(4) {
                story.crash_while_opening();
            }
        }
        let (_, count) = Store::open(story.disk).unwrap();
        assert!(count >= story.durable, "seed {seed}");
    }
}

/// Opens, appends, waits, retries what may be retried; how many records were appended for
/// certain, and how many may have been.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    durable: u64,
    appended: u64,
    /// A group whose append failed may be there all the same.
    attempted: u64,
}

fn workload(fs: &TestFs, outcome: &mut Outcome) -> Result<()> {
    let (mut store, count) = Store::open(fs.faults.clone())?;
    *outcome = Outcome { durable: count, appended: count, attempted: count };
    for step in 0..24 {
        let group: Vec<_> = (outcome.appended..outcome.appended + 3).map(record).collect();
        let group: Vec<_> = group.iter().map(Vec::as_slice).collect();
        match store.log.append(&group, step % 5 == 0) {
            Ok(_) => outcome.appended += 3,
            Err(error) if error.kind() == ErrorKind::Degraded => {
                outcome.attempted = outcome.appended + 3;
                return Err(error);
            }
            // Nothing changed: the next step tries the same group again.
            Err(_) => continue,
        }
        outcome.attempted = outcome.appended;
        if step % 3 == 0 {
            store.log.sync_all()?;
            outcome.durable = outcome.appended;
        }
        if store.log.needs_preparation() {
            let _ = store.log.prepare_next();
        }
        if step % 10 == 9 {
            store.manifest.append(&encode_cuts(&store.cuts))?;
        }
    }
    store.log.sync_all()?;
    outcome.durable = outcome.appended;
    store.log.close();
    Ok(())
}

fn check_after(fs: &TestFs, outcome: Outcome, story: &str) {
    for (seed, mode) in CrashMode::ALL.into_iter().enumerate() {
        let disk = fs.mem.crash_clone(seed as u64, mode);
        let (_, count) =
            Store::open(disk).unwrap_or_else(|error| panic!("{story}, {mode:?}: {error}"));
        let possible = outcome.durable..=outcome.attempted;
        assert!(possible.contains(&count), "{story}, {mode:?}: {count} not in {possible:?}");
        if mode == CrashMode::KeepAll {
            assert!(count >= outcome.appended, "{story}: {count} of {}", outcome.appended);
        }
    }
}

#[test]
fn whichever_call_fails_nothing_durable_is_lost_and_nothing_invented() {
    // A store with some history, so that opening recovers, seals and cuts.
    let before = TestFs::new();
    workload(&before, &mut Outcome::default()).unwrap();
    let mut last_life = Outcome::default();
    let again = before.copy();
    workload(&again, &mut last_life).unwrap();
    let calls = again.faults.calls();
    assert!(calls > 100, "{calls} calls");
    let effects = [Effect::Errno(EIO), Effect::Errno(ENOSPC), Effect::Torn(EIO), Effect::Short];
    for k in 1..=calls {
        for effect in effects {
            for fault in [Fault::once(k, effect), Fault::sticky(k, effect)] {
                let fs = before.copy();
                fs.faults.arm(fault);
                let mut outcome = Outcome { durable: 72, appended: 72, attempted: 72 };
                let result = workload(&fs, &mut outcome);
                let story = format!("{} {fault:?} {result:?}", fs.faults.describe(k));
                check_after(&fs, outcome, &story);
            }
        }
    }
}
