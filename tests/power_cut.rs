//! The power goes: before and after every sync of a workload, and between syncs.
//!
//! A single-threaded workload of batches over three trees, with flushes, compactions and reopens,
//! is photographed at all these points. Of each photograph the unsynced part is lost in several
//! ways; the store must then open, equal a prefix of the commits that holds all promised ones,
//! whole batches only, and take new writes. A quarter of the cuts are followed by a second one,
//! during recovery or after it; what the first recovery showed is promised then.
//!
//! All ways of losing data are within the contract, [`CrashMode::Chaotic`] too: nothing the store
//! relies on is unsynced, and of the unsynced log it believes only what is complete from the last
//! sync on.
//!
//! `LSMKV_POWER_CUTS` cuts more often than CI does. A failure prints the workload's seed, the
//! point and the seed of the cut. The workload's calls follow from its seed; when the background
//! thread prepares a log segment does not, so that a repetition may need a few attempts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lsmkv::engine::{Engine, MemFs};
use lsmkv::io::mem::{CrashMode, SyncPoint};
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Compression, Options, SyncMode};
use parking_lot::Mutex;
use support::{History, Write, assert_state, commit, from_env, open, state_of, tiny};
use support::{trees, try_open};

/// A copy of the file system, and what the user had been told by then.
struct Photograph {
    fs: MemFs,
    what: String,
    begun: usize,
    promised: usize,
}

/// How far the workload has come, and the photographs.
#[derive(Default)]
struct Album {
    begun: usize,
    promised: usize,
    photographs: Vec<Photograph>,
}

impl Album {
    fn photograph(&mut self, fs: &MemFs, what: String) {
        let (begun, promised) = (self.begun, self.promised);
        self.photographs.push(Photograph { fs: fs.deep_clone(), what, begun, promised });
    }
}

fn photograph_syncs(fs: &MemFs, album: &Arc<Mutex<Album>>) {
    let album = Arc::clone(album);
    fs.on_sync(move |fs, SyncPoint { number, stage, path }| {
        let what = format!("{stage:?} sync {number} of {}", path.display());
        album.lock().photograph(fs, what);
    });
}

fn random_options(random: &mut SplitMix64) -> Options {
    let mut pick = |values: &[u64]| values[random.below(values.len() as u64) as usize];
    Options {
        write_buffer: pick(&[4 << 10, 8 << 10, 32 << 10]),
        table_bytes: pick(&[2 << 10, 16 << 10]),
        log_segment_bytes: pick(&[4 << 10, 16 << 10, 1 << 20]),
        sync: [SyncMode::Off, SyncMode::Off, SyncMode::Always][pick(&[0, 1, 2]) as usize],
        compression: [Compression::None, Compression::Lz4][pick(&[0, 1]) as usize],
        background_threads: 0,
        ..tiny()
    }
}

/// A batch over the trees that names its commit, so that every prefix differs.
fn random_batch(random: &mut SplitMix64, number: usize) -> Vec<Write> {
    let size = if random.one_in(10) { 2000 } else { 20 + random.below(150) as usize };
    let value = [format!("{number:06}").as_bytes(), &vec![b'v'; size]].concat();
    let mut writes: Vec<_> = (0..3).map(|tree| Write::put(tree, b"last", &value)).collect();
    for _ in 0..random.below(5) {
        let tree = random.below(3) as usize;
        let key = format!("key{:02}", random.below(60));
        writes.push(match random.below(3) {
            0 => Write::delete(tree, key.as_bytes()),
            _ => Write::put(tree, key.as_bytes(), &value),
        });
    }
    writes
}

/// A run of the workload.
struct Run {
    random: SplitMix64,
    options: Options,
    fs: MemFs,
    album: Arc<Mutex<Album>>,
    commits: Vec<Vec<Write>>,
    engine: Option<Engine>,
}

impl Run {
    fn of(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let options = random_options(&mut random);
        let (fs, album) = (MemFs::new(), Arc::default());
        photograph_syncs(&fs, &album);
        let engine = Some(open(&fs, &options));
        let mut run = Self { random, options, fs, album, commits: Vec::new(), engine };
        for _ in 0..60 {
            run.step();
        }
        run
    }

    fn step(&mut self) {
        let engine = self.engine.as_ref().unwrap();
        match self.random.below(40) {
            0 => engine.sync().unwrap(),
            1 | 2 => engine.flush().unwrap(),
            3 => engine.compact().unwrap(),
            4 => {
                engine.close().unwrap();
                self.reopen();
            }
            // Recovery makes durable what it finds.
            5 => self.reopen(),
            _ => return self.commit(),
        }
        let mut album = self.album.lock();
        album.promised = album.begun;
    }

    fn reopen(&mut self) {
        self.engine = None;
        self.engine = Some(open(&self.fs, &self.options));
    }

    fn commit(&mut self) {
        let writes = random_batch(&mut self.random, self.commits.len());
        self.commits.push(writes);
        self.album.lock().begun = self.commits.len();
        let durable = self.random.one_in(20) || self.options.sync == SyncMode::Always;
        let sync = durable.then_some(SyncMode::Always);
        commit(self.engine.as_ref().unwrap(), &self.commits[self.commits.len() - 1], sync);
        let mut album = self.album.lock();
        if durable {
            album.promised = album.begun;
        }
        if self.random.one_in(4) {
            album.photograph(&self.fs, format!("after commit {}", self.commits.len()));
        }
    }
}

/// One power cut, how to repeat it, and what the store must have kept.
struct Cut<'a> {
    name: String,
    options: &'a Options,
    history: History,
    random: SplitMix64,
}

const MODES: [CrashMode; 4] =
    [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Ordered, CrashMode::Chaotic];

impl Cut<'_> {
    /// Opens what the cut left, checks it, goes on; a quarter cut the power again.
    fn play(mut self, left: &MemFs) {
        let second = self.random.below(8);
        if second == 0 {
            return self.cut_during_recovery(left);
        }
        let engine = self.recover(left);
        self.write_more(&engine);
        if second == 1 {
            let again = self.cut_again(left, "after a recovery");
            self.recover(&again);
            return;
        }
        drop(engine);
        let engine = self.open(left);
        assert_state(&engine, &self.history.now, &self.name);
    }

    fn open(&self, left: &MemFs) -> Engine {
        let opened = try_open(left, self.options, trees());
        opened.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn recover(&mut self, left: &MemFs) -> Engine {
        let engine = self.open(left);
        let found = state_of(&engine);
        self.history.recover(found, &self.name);
        assert_state(&engine, &self.history.now, &self.name);
        engine
    }

    fn write_more(&mut self, engine: &Engine) {
        for number in 0..1 + self.random.below(6) {
            let writes = random_batch(&mut self.random, 100_000 + number as usize);
            let sync = self.random.one_in(3).then_some(SyncMode::Always);
            commit(engine, &writes, sync);
            self.history.record(&writes);
            if sync.is_some() || self.options.sync == SyncMode::Always {
                self.history.promise();
            }
        }
        if self.random.one_in(3) {
            engine.flush().unwrap();
            self.history.promise();
        }
        assert_state(engine, &self.history.now, &self.name);
    }

    fn cut_again(&mut self, fs: &MemFs, when: &str) -> MemFs {
        let mode = MODES[self.random.below(4) as usize];
        let seed = self.random.next_u64();
        self.name = format!("{}, then {when} {mode:?} with seed {seed}", self.name);
        fs.crash_clone(seed, mode)
    }

    /// Photographs the recovery at all of its syncs and cuts at one of them.
    fn cut_during_recovery(mut self, left: &MemFs) {
        let album = Arc::default();
        photograph_syncs(left, &album);
        drop(self.open(left));
        let photographs = std::mem::take(&mut album.lock().photographs);
        let photograph = &photographs[self.random.below(photographs.len() as u64) as usize];
        let again = self.cut_again(&photograph.fs, &format!("during recovery {}", photograph.what));
        self.recover(&again);
    }
}

/// Cuts the power at every photograph of one workload; returns how often.
fn cut_everywhere(seed: u64) -> u32 {
    let mut run = Run::of(seed);
    run.engine = None;
    let photographs = std::mem::take(&mut run.album.lock().photographs);
    let mut cuts = 0;
    for (index, photograph) in photographs.iter().enumerate() {
        for (turn, mode) in MODES.into_iter().enumerate() {
            let cut_seed = (index * MODES.len() + turn) as u64;
            let left = photograph.fs.crash_clone(cut_seed, mode);
            let name =
                format!("workload {seed}, {}, {mode:?} with seed {cut_seed}", photograph.what);
            let history = History::of(&run.commits[..photograph.begun], photograph.promised);
            let random = SplitMix64::new(seed ^ cut_seed << 32);
            Cut { name, options: &run.options, history, random }.play(&left);
            cuts += 1;
        }
    }
    cuts
}

/// Workloads `first`, `first + 2`, … until a half of the cuts is done: two tests share the work.
fn cut_from(first: u64) {
    let wanted = from_env("LSMKV_POWER_CUTS", 5000).div_ceil(2);
    let (mut seed, mut cuts) = (first, 0);
    while cuts < wanted {
        cuts += cut_everywhere(seed);
        seed += 2;
    }
}

#[test]
fn a_power_cut_at_any_sync_or_commit_leaves_a_prefix_of_the_commits() {
    cut_from(0);
}

#[test]
fn and_so_it_does_in_the_workloads_of_odd_seeds() {
    cut_from(1);
}

#[test]
fn a_store_that_syncs_at_intervals_does_so_without_being_asked() {
    let fs = MemFs::new();
    let options =
        Options { sync: SyncMode::Interval, sync_interval_ms: 50, background_threads: 0, ..tiny() };
    let engine = open(&fs, &options);
    let mut history = History::default();
    for number in 0..5 {
        let writes = random_batch(&mut SplitMix64::new(number), number as usize);
        commit(&engine, &writes, None);
        history.record(&writes);
    }
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let found = state_of(&open(&fs.crash_clone(0, CrashMode::DropUnsynced), &options));
        if found == history.now {
            return;
        }
        assert!(history.prefix(&found).is_some());
        assert!(Instant::now() < end, "nothing was synced");
        std::thread::sleep(Duration::from_millis(20));
    }
}
