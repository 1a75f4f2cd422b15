//! Damage to the files of a store, one at a time: every read then yields the right data or an
//! error that names the file. Never wrong data, a missing key, a panic, or memory without bound.
//!
//! `LSMKV_CORRUPTION=all` damages every bit and cuts at every byte; `LSMKV_SEED` draws another
//! sample.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "the counts are the report")]
#![allow(unsafe_code, reason = "an allocator that counts")]

mod fault_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fault_support::{
    Contents, DIR, Shape, Watchdog, difference, number_from_env, open_mem, read_all,
};
use lsmkv::engine::MemFs;
use lsmkv::engine::files::FileKind;
use lsmkv::engine::wal::{LogPosition, SyncFile};
use lsmkv::io::fs::FileSystem;
use lsmkv::io::mem::CrashMode;
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Error, ErrorKind, Options, SyncMode};

/// Notes the largest request: a length field that is believed shows here.
struct Counting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
/// Nothing in a store of 200 KB needs as much at once.
const LARGEST_ALLOWED: usize = 16 << 20;

// SAFETY: hands every request on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const SHAPE: Shape = Shape { keys: 500, value_bytes: 260, marks: false };
const PAGE: usize = 4096;

fn options() -> Options {
    Options {
        sync: SyncMode::Off,
        background_threads: 0,
        write_buffer: 20 << 10,
        table_bytes: 16 << 10,
        block_bytes: 1024,
        memory_budget: 1 << 20,
        log_segment_bytes: 16 << 10,
        level_ratio: 4,
        ..Options::default()
    }
}

/// A store to be damaged, and what it holds.
struct Victim {
    name: &'static str,
    fs: MemFs,
    files: Vec<PathBuf>,
    /// What it holds; if the log's tail is damaged, one of those before is right too.
    states: Vec<Contents>,
    /// The log was synced up to here.
    synced: LogPosition,
}

impl Victim {
    /// Tables at several levels, a manifest of several records, a log with a tail that was not
    /// synced when the process died.
    fn killed() -> Self {
        let (fs, engine, written) = Self::build();
        engine.sync().unwrap();
        let mut states = vec![SHAPE.after(0..written)];
        for n in written..written + 12 {
            SHAPE.write(&engine, n, SyncMode::Off).unwrap();
            let mut state = states.last().unwrap().clone();
            SHAPE.apply(n, &mut state);
            states.push(state);
        }
        let synced = SyncFile::read(&fs, Path::new(DIR)).unwrap().log;
        Self::of("killed", &fs, states, synced)
    }

    fn closed() -> Self {
        let (fs, engine, written) = Self::build();
        engine.close().unwrap();
        drop(engine);
        let synced = SyncFile::read(&fs, Path::new(DIR)).unwrap().log;
        Self::of("closed", &fs, vec![SHAPE.after(0..written)], synced)
    }

    fn build() -> (MemFs, lsmkv::engine::Engine, u64) {
        let fs = MemFs::new();
        let engine = open_mem(&fs, options()).unwrap();
        let several_levels = || {
            let levels = engine.stats().trees[0].levels;
            levels.iter().filter(|level| level.files > 0).count() >= 2
        };
        let mut written = 0;
        // How entries fall into levels depends on sizes of records: goes on until they do.
        while written < 900 || !several_levels() {
            assert!(written < 1500, "tables at several levels: {:?}", engine.stats().trees[0]);
            SHAPE.write(&engine, written, SyncMode::Off).unwrap();
            written += 1;
            if written == 600 {
                engine.compact().unwrap();
            }
        }
        (fs, engine, written)
    }

    fn of(name: &'static str, fs: &MemFs, states: Vec<Contents>, synced: LogPosition) -> Self {
        let fs = fs.crash_clone(0, CrashMode::KeepAll);
        let files: Vec<_> =
            fs.paths().into_iter().filter(|path| !fs.read_file(path).unwrap().is_empty()).collect();
        Self { name, fs, files, states, synced }
    }

    fn size(&self, file: &Path) -> usize {
        self.fs.read_file(file).unwrap().len()
    }

    /// Whether a change at `offset` can be taken for the work of a crash: it is in the log, after
    /// what was synced.
    fn in_tail(&self, file: &Path, end: usize) -> bool {
        match kind(file) {
            Some(FileKind::Log(number)) => {
                LogPosition::new(number, end as u64) > self.synced && self.states.len() > 1
            }
            _ => false,
        }
    }
}

fn kind(file: &Path) -> Option<FileKind> {
    FileKind::parse(Path::new(file.file_name().unwrap()))
}

fn kind_name(file: &Path) -> &'static str {
    match kind(file) {
        Some(FileKind::Log(_)) => "log",
        Some(FileKind::Table(_)) => "table",
        Some(FileKind::Manifest(_)) => "manifest",
        Some(FileKind::Current) => "CURRENT",
        Some(FileKind::Sync) => "SYNC",
        Some(FileKind::Temporary) => "temporary",
        Some(FileKind::Reserve) => "reserve",
        _ => "other",
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Flip { file: PathBuf, bit: usize },
    Cut { file: PathBuf, len: usize },
    Zero { file: PathBuf, at: usize },
    Swap { a: (PathBuf, usize), b: (PathBuf, usize) },
    Missing { file: PathBuf },
    Garbage { file: PathBuf, seed: u64 },
}

impl Damage {
    fn name(&self) -> &'static str {
        match self {
            Self::Flip { .. } => "bit flipped",
            Self::Cut { .. } => "truncated",
            Self::Zero { .. } => "4 KiB zeroed",
            Self::Swap { .. } => "4 KiB swapped",
            Self::Missing { .. } => "missing",
            Self::Garbage { .. } => "garbage appended",
        }
    }

    /// The files that change, each with the end of the changed part.
    fn places(&self) -> Vec<(&Path, usize)> {
        match self {
            Self::Flip { file, bit } => vec![(file, bit / 8 + 1)],
            Self::Zero { file, at } => vec![(file, at + PAGE)],
            Self::Swap { a, b } => vec![(&a.0, a.1 + PAGE), (&b.0, b.1 + PAGE)],
            Self::Cut { file, .. } | Self::Missing { file } | Self::Garbage { file, .. } => {
                vec![(file, usize::MAX)]
            }
        }
    }

    /// Damages `fs`; false if that changes nothing.
    fn inflict(&self, fs: &MemFs) -> bool {
        let read = |file: &Path| fs.read_file(file).unwrap();
        let write = |file: &Path, bytes: &[u8]| fs.write_file(file, bytes).unwrap();
        match self {
            Self::Flip { file, bit } => {
                let mut bytes = read(file);
                bytes[bit / 8] ^= 1 << (bit % 8);
                write(file, &bytes);
            }
            Self::Cut { file, len } => write(file, &read(file)[..*len]),
            Self::Zero { file, at } => {
                let mut bytes = read(file);
                let end = bytes.len().min(at + PAGE);
                if bytes[*at..end].iter().all(|b| *b == 0) {
                    return false;
                }
                bytes[*at..end].fill(0);
                write(file, &bytes);
            }
            Self::Swap { a, b } => return swap(fs, a, b),
            Self::Missing { file } => fs.remove(file).unwrap(),
            Self::Garbage { file, seed } => {
                let mut random = SplitMix64::new(*seed);
                let mut bytes = read(file);
                for _ in 0..=random.below(5000) {
                    bytes.push(random.next_u64().to_le_bytes()[0]);
                }
                write(file, &bytes);
            }
        }
        true
    }
}

fn swap(fs: &MemFs, a: &(PathBuf, usize), b: &(PathBuf, usize)) -> bool {
    let block = |(file, at): &(PathBuf, usize)| {
        let bytes = fs.read_file(file).unwrap();
        bytes[*at..bytes.len().min(at + PAGE)].to_vec()
    };
    let (of_a, of_b) = (block(a), block(b));
    if of_a == of_b {
        return false;
    }
    for ((file, at), content) in [(a, of_b), (b, of_a)] {
        let mut bytes = fs.read_file(file).unwrap();
        let end = bytes.len().min(at + content.len());
        bytes[*at..end].copy_from_slice(&content[..end - at]);
        fs.write_file(file, &bytes).unwrap();
    }
    true
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Refused,
    Right,
    Prefix,
}

/// Opens, reads everything in every way, verifies.
fn read_damaged(victim: &Victim, fs: &MemFs, read_only: bool) -> Result<Contents, Error> {
    let engine = open_mem(fs, Options { read_only, ..options() })?;
    let found = read_all(&engine, victim.states.last().unwrap())?;
    engine.verify()?;
    Ok(found)
}

fn outcome_of(victim: &Victim, damage: &Damage, read_only: bool) -> Option<Outcome> {
    let fs = victim.fs.deep_clone();
    if !damage.inflict(&fs) {
        return None;
    }
    let context = format!("{} store, {damage:?}, read_only {read_only}", victim.name);
    let result = catch_unwind(AssertUnwindSafe(|| read_damaged(victim, &fs, read_only)))
        .unwrap_or_else(|_| panic!("panicked: {context}"));
    let largest = LARGEST.swap(0, Ordering::Relaxed);
    assert!(largest < LARGEST_ALLOWED, "{largest} bytes at once: {context}");
    let places = damage.places();
    match result {
        Err(error) => {
            assert!(
                matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Incompatible),
                "{error:?}: {context}"
            );
            let named = |(file, _): &(&Path, usize)| {
                error.message().contains(file.file_name().unwrap().to_str().unwrap())
            };
            // A swap that hits SYNC as well takes the evidence of the last sync with the record:
            // the store is then refused for what the record before it names.
            let evidence_lost =
                places.len() > 1 && places.iter().any(|(file, _)| file.ends_with("SYNC"));
            let told = places.iter().any(named) || evidence_lost;
            assert!(told, "names another file: {error:?}: {context}");
            Some(Outcome::Refused)
        }
        Ok(found) => {
            let (last, earlier) = victim.states.split_last().unwrap();
            let Some(wrong) = difference(&found, last) else { return Some(Outcome::Right) };
            let in_tail = places.iter().any(|(file, end)| victim.in_tail(file, *end));
            let prefix = earlier.iter().any(|state| difference(&found, state).is_none());
            assert!(in_tail && prefix, "SILENT: {wrong}: {context}");
            Some(Outcome::Prefix)
        }
    }
}

/// A place in any file, each file kind as likely as the others: the small ones matter most.
fn random_place(victim: &Victim, random: &mut SplitMix64) -> (PathBuf, usize) {
    let pick = |n: usize, random: &mut SplitMix64| usize::try_from(random.below(n as u64)).unwrap();
    let kinds = ["log", "table", "table", "manifest", "CURRENT", "SYNC", "temporary"];
    loop {
        let wanted = kinds[pick(kinds.len(), random)];
        let files: Vec<_> = victim.files.iter().filter(|f| kind_name(f) == wanted).collect();
        if files.is_empty() {
            continue;
        }
        let file = files[pick(files.len(), random)].clone();
        let bytes = victim.fs.read_file(&file).unwrap();
        // Mostly where something is: segments and manifests end in zeros.
        let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        let within = if used > 0 && !random.one_in(8) { used } else { bytes.len() };
        return (file, pick(within, random));
    }
}

fn random_damage(victim: &Victim, random: &mut SplitMix64) -> Damage {
    let (file, at) = random_place(victim, random);
    match random.below(20) {
        0..8 => Damage::Flip { file, bit: at * 8 + usize::try_from(random.below(8)).unwrap() },
        8..12 => Damage::Cut { file, len: at },
        12..15 => Damage::Zero { file, at: at / PAGE * PAGE },
        15..18 => {
            let (other, other_at) = random_place(victim, random);
            Damage::Swap { a: (file, at / PAGE * PAGE), b: (other, other_at / PAGE * PAGE) }
        }
        18 => Damage::Missing { file },
        _ => Damage::Garbage { file, seed: random.next_u64() },
    }
}

/// Every bit, every length, every pair of pages.
fn every_damage(victim: &Victim) -> impl Iterator<Item = Damage> {
    let pages: Vec<(PathBuf, usize)> = victim
        .files
        .iter()
        .flat_map(|f| (0..victim.size(f)).step_by(PAGE).map(|at| (f.clone(), at)))
        .collect();
    let swaps = pages.clone().into_iter().enumerate().flat_map(move |(i, a)| {
        let others: Vec<_> = pages[i + 1..].to_vec();
        others.into_iter().map(move |b| Damage::Swap { a: a.clone(), b })
    });
    let single = victim.files.iter().flat_map(|file| {
        let size = victim.size(file);
        let flips = (0..size * 8).map(|bit| Damage::Flip { file: file.clone(), bit });
        let cuts = (0..size).map(|len| Damage::Cut { file: file.clone(), len });
        let zeros = (0..size).step_by(PAGE).map(|at| Damage::Zero { file: file.clone(), at });
        let garbage = (0..20).map(|seed| Damage::Garbage { file: file.clone(), seed });
        let missing = std::iter::once(Damage::Missing { file: file.clone() });
        flips.chain(cuts).chain(zeros).chain(garbage).chain(missing)
    });
    single.chain(swaps)
}

type Counts = BTreeMap<(&'static str, &'static str), [u64; 3]>;

fn count(counts: &mut Counts, damage: &Damage, outcome: Outcome) {
    let file = kind_name(damage.places()[0].0);
    counts.entry((damage.name(), file)).or_default()[outcome as usize] += 1;
}

/// Two threads share the cases; each draws by its own seed.
fn damage_in_parallel(victim: &Victim, cases: u64, seed: u64) -> Counts {
    let watchdog = Watchdog::start(Duration::from_secs(60));
    let worker = |worker: u64| {
        let mut counts = Counts::new();
        let mut random = SplitMix64::new(seed ^ (worker << 32));
        let mut note = |damage: &Damage, read_only| {
            watchdog.beat();
            if let Some(outcome) = outcome_of(victim, damage, read_only) {
                count(&mut counts, damage, outcome);
                return 1;
            }
            0
        };
        if cases == u64::MAX {
            let mine = every_damage(victim).enumerate().filter(|(i, _)| *i as u64 % 2 == worker);
            mine.for_each(|(i, damage)| _ = note(&damage, i % 8 != 0));
        } else {
            let mut done = 0;
            while done < cases / 2 {
                let damage = random_damage(victim, &mut random);
                done += note(&damage, random.one_in(2));
            }
        }
        counts
    };
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|n| scope.spawn(move || worker(n)));
        let mut all = Counts::new();
        for (key, outcomes) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            let sums = all.entry(key).or_default();
            sums.iter_mut().zip(outcomes).for_each(|(sum, more)| *sum += more);
        }
        all
    })
}

fn damage_all(victim: &Victim) {
    let all = std::env::var("LSMKV_CORRUPTION").is_ok_and(|value| value == "all");
    let cases = if all { u64::MAX } else { number_from_env("LSMKV_CORRUPTION", 3000) };
    let seed = number_from_env("LSMKV_SEED", 1);
    let bytes: usize = victim.files.iter().map(|file| victim.size(file)).sum();
    let counts = damage_in_parallel(victim, cases, seed);
    let mut report = format!("{} store of {bytes} bytes, seed {seed}\n", victim.name);
    for ((damage, file), [refused, right, prefix]) in &counts {
        report += &format!(
            "{damage:17} {file:10} {refused:6} refused {right:6} right {prefix:6} prefix\n"
        );
    }
    println!("{report}");
    let damages: std::collections::BTreeSet<_> = counts.keys().map(|(damage, _)| damage).collect();
    assert_eq!(damages.len(), 6, "every kind of damage was tried: {counts:?}");
}

#[test]
fn an_undamaged_store_is_right() {
    for victim in [Victim::killed(), Victim::closed()] {
        for read_only in [true, false] {
            let found = read_damaged(&victim, &victim.fs.deep_clone(), read_only).unwrap();
            assert_eq!(difference(&found, victim.states.last().unwrap()), None);
        }
    }
}

#[test]
fn damage_to_a_store_whose_process_died_is_noticed() {
    damage_all(&Victim::killed());
}

#[test]
fn damage_to_a_closed_store_is_noticed() {
    damage_all(&Victim::closed());
}

/// One more than the largest number is none: that overflowed.
#[test]
fn a_file_with_an_impossible_number_is_refused_by_its_name() {
    for name in ["18446744073709551615.table", "MANIFEST-18446744073709551615"] {
        let victim = Victim::closed();
        let file = Path::new(DIR).join(name);
        victim.fs.write_file(&file, b"x").unwrap();
        let error = open_mem(&victim.fs, options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(name), "{error:?}");
        victim.fs.remove(&file).unwrap();
        let found = read_damaged(&victim, &victim.fs, false).unwrap();
        assert_eq!(difference(&found, victim.states.last().unwrap()), None);
    }
}

/// The smallest file that opens a store, tried completely.
#[test]
fn every_bit_of_current_and_every_lost_file_is_noticed() {
    for victim in [Victim::killed(), Victim::closed()] {
        let current = Path::new(DIR).join("CURRENT");
        for bit in 0..victim.size(&current) * 8 {
            let damage = Damage::Flip { file: current.clone(), bit };
            assert_eq!(outcome_of(&victim, &damage, true), Some(Outcome::Refused), "{damage:?}");
        }
        for file in &victim.files {
            let damage = Damage::Missing { file: file.clone() };
            let harmless = matches!(kind_name(file), "SYNC" | "temporary" | "reserve");
            let outcome = outcome_of(&victim, &damage, false).unwrap();
            assert!(
                outcome != Outcome::Right || harmless || kind_name(file) == "log",
                "{damage:?}"
            );
        }
    }
}
