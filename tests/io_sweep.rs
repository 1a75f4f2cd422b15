//! Every call of the file system fails, one after the other: nothing that was acknowledged is
//! lost, what failed is there whole or not at all, errors are those of the contract, and the
//! store opens again.
//!
//! `LSMKV_SWEEP=all` tries every way to fail at every call.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may")]

mod fault_support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fault_support::{Contents, Shape, Watchdog, assert_same, mark, open, open_mem, read_all};
use libc::{EINTR, EIO, EMFILE, ENOSPC, EROFS};
use lsmkv::engine::{Engine, FaultFs, FileSystem, MemFs};
use lsmkv::io::fault::{Call, Effect, Fault, Method};
use lsmkv::io::mem::CrashMode;
use lsmkv::{Error, ErrorKind, Options, Result, SyncMode};

const SHAPE: Shape = Shape { keys: 40, value_bytes: 500, marks: true };

/// A batch that was tried.
#[derive(Clone, Copy, Debug)]
struct Tried {
    acknowledged: bool,
    durable: bool,
}

/// One run of the workload against one fault.
struct Run {
    fs: FaultFs,
    mem: MemFs,
    options: Options,
    fault: Option<Fault>,
    tried: Vec<Tried>,
    errors: Vec<(&'static str, Error)>,
    /// Calls made before the open that gave the present handle.
    opened_at: u64,
    checked: bool,
}

impl Run {
    fn new(options: &Options, fault: Option<Fault>) -> Self {
        let mem = MemFs::new();
        let fs = FaultFs::new(Arc::new(mem.clone()));
        if let Some(fault) = fault {
            fs.arm(fault);
        }
        let options = options.clone();
        let (tried, errors) = (Vec::new(), Vec::new());
        Self { fs, mem, options, fault, tried, errors, opened_at: 0, checked: false }
    }

    fn context(&self) -> String {
        let struck: Vec<_> = self.fs.struck().iter().take(3).map(Call::to_string).collect();
        format!("{:?}, struck {struck:?}, errors {:?}", self.fault, self.errors)
    }

    fn note<T>(&mut self, step: &'static str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.errors.push((step, error));
                self.check_last_error();
                None
            }
        }
    }

    /// Whatever fails says so by the contract's kinds, with the system's own error number.
    fn check_last_error(&self) {
        let (step, error) = self.errors.last().unwrap();
        let context = self.context();
        let Some(Effect::Errno(errno) | Effect::Torn(errno)) = self.fault.map(|f| f.effect) else {
            panic!("{step} failed without a cause: {context}");
        };
        assert!(!self.fs.struck().is_empty(), "{step} failed before the fault: {context}");
        assert_eq!(error.os_errno(), errno, "{step} hides the cause: {context}");
        let allowed = match error.kind() {
            ErrorKind::Full => errno == ENOSPC,
            ErrorKind::Io => errno != ENOSPC,
            kind => kind == ErrorKind::Degraded,
        };
        assert!(allowed, "{step} failed with {error:?}: {context}");
    }

    fn open(&mut self) -> Option<Engine> {
        let fs: Arc<dyn FileSystem> = Arc::new(self.fs.clone());
        self.opened_at = self.fs.calls();
        let first = open(&fs, self.options.clone());
        let engine = match self.note("open", first) {
            Some(engine) => engine,
            None if self.fault.is_some_and(|fault| fault.sticky) => return None,
            None => {
                self.opened_at = self.fs.calls();
                open(&fs, self.options.clone()).unwrap_or_else(|error| {
                    panic!("does not open after the fault is gone: {error:?}, {}", self.context())
                })
            }
        };
        Some(engine)
    }

    fn write(&mut self, engine: &Engine, count: usize) {
        for _ in 0..count {
            let n = self.tried.len() as u64;
            let always = n % 4 == 3;
            let sync = if always { SyncMode::Always } else { SyncMode::Off };
            let written = SHAPE.write(engine, n, sync);
            let acknowledged = self.note("write", written).is_some();
            self.tried.push(Tried { acknowledged, durable: false });
            if acknowledged && always {
                self.all_durable();
            }
        }
    }

    fn sync(&mut self, engine: &Engine) {
        let synced = engine.sync();
        if self.note("sync", synced).is_some() {
            self.all_durable();
        }
    }

    fn all_durable(&mut self) {
        self.tried.iter_mut().for_each(|tried| tried.durable = tried.acknowledged);
    }

    fn flush(&mut self, engine: &Engine) {
        let flushed = engine.flush();
        self.note("flush", flushed);
    }

    fn compact(&mut self, engine: &Engine) {
        let compacted = engine.compact();
        self.note("compact", compacted);
    }

    /// What is in the store: asserts that batches are whole and nothing else is there.
    fn applied(&self, engine: &Engine, life: &str) -> Vec<bool> {
        let expected: Contents = SHAPE.after(0..self.tried.len() as u64);
        let found = read_all(engine, &expected)
            .unwrap_or_else(|error| panic!("{life}: cannot be read: {error:?} {}", self.context()));
        let there = |n: usize| {
            let marks = found.iter().filter(|tree| tree.contains_key(&mark(n as u64))).count();
            assert!(marks == 0 || marks == 3, "{life}: batch {n} is torn: {}", self.context());
            marks == 3
        };
        let applied: Vec<bool> = (0..self.tried.len()).map(there).collect();
        let batches = (0..self.tried.len()).filter(|n| applied[*n]).map(|n| n as u64);
        assert_same(&found, &SHAPE.after(batches), &format!("{life}: {}", self.context()));
        applied
    }

    fn check_acknowledged(&self, engine: &Engine, life: &str) {
        let applied = self.applied(engine, life);
        for (n, tried) in self.tried.iter().enumerate() {
            assert!(applied[n] || !tried.acknowledged, "{life}: {n} is lost: {}", self.context());
        }
    }

    /// A power cut on top of the fault: a prefix with everything that was synced.
    fn check_power_cut(&self) {
        for (seed, mode) in [(1, CrashMode::DropUnsynced), (2, CrashMode::Ordered)] {
            let fs = self.mem.crash_clone(seed, mode);
            let life = format!("after a power cut ({mode:?})");
            let engine = open_mem(&fs, Options { background_threads: 0, ..self.options.clone() })
                .unwrap_or_else(|error| panic!("{life}: {error:?}, {}", self.context()));
            let applied = self.applied(&engine, &life);
            let acknowledged = self.tried.iter().zip(&applied).filter(|(t, _)| t.acknowledged);
            let in_order: Vec<bool> = acknowledged.map(|(_, applied)| *applied).collect();
            assert!(in_order.is_sorted_by(|a, b| a >= b), "{life}: a hole: {}", self.context());
            for (tried, applied) in self.tried.iter().zip(applied) {
                assert!(applied || !tried.durable, "{life}: lost: {}", self.context());
            }
        }
    }

    /// In the handle that saw the fault, once it is gone.
    fn check_handle(&mut self, engine: &Engine) {
        let struck = self.fs.struck();
        if self.checked || struck.is_empty() {
            return;
        }
        self.checked = true;
        self.fs.disarm();
        self.check_no_sync_was_retried(&struck);
        let since_open = struck.iter().filter(|call| call.number > self.opened_at);
        let errno = match self.fault.unwrap().effect {
            Effect::Errno(errno) | Effect::Torn(errno) => errno,
            Effect::Short => 0,
        };
        let interrupted =
            |call: &Call| errno == EINTR && matches!(call.method, Method::ReadAt | Method::WriteAt);
        let mut causes = since_open
            .filter(|call| errno != 0 && degrades(call, errno) && !interrupted(call))
            .peekable();
        self.check_acknowledged(engine, "in the same handle");
        match causes.peek() {
            Some(cause) => self.check_degraded(engine, cause),
            None => self.check_work_goes_on(engine),
        }
    }

    fn check_degraded(&mut self, engine: &Engine, cause: &Call) {
        let context = self.context();
        let told = engine.degraded().unwrap_or_else(|| panic!("not degraded: {context}"));
        let file = cause.path.file_name().unwrap().to_str().unwrap();
        let number = file.trim_end_matches(".tmp");
        assert!(told.message().contains(number), "{told:?} does not name {cause}: {context}");
        let started = Instant::now();
        let calls = self.fs.calls();
        for refused in [
            SHAPE.write(engine, 0, SyncMode::Off),
            SHAPE.write(engine, 0, SyncMode::Always),
            engine.flush(),
            engine.resume(),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Degraded, "{context}");
            assert_eq!(error.message(), told.message(), "{context}");
        }
        assert!(started.elapsed() < Duration::from_secs(1), "not promptly: {context}");
        // Where no other thread has something under way.
        if self.options == options() {
            assert_eq!(self.fs.calls(), calls, "a degraded store still touches files: {context}");
        }
        self.check_acknowledged(engine, "in the same handle, degraded");
    }

    fn check_work_goes_on(&mut self, engine: &Engine) {
        let context = self.context();
        assert!(engine.degraded().is_none(), "degraded for no reason: {context}");
        engine.resume().unwrap_or_else(|e| panic!("resume: {e:?}: {context}"));
        let errors = self.errors.len();
        self.write(engine, 2);
        self.sync(engine);
        self.flush(engine);
        self.compact(engine);
        assert_eq!(self.errors.len(), errors, "the fault has gone, {}", self.context());
        self.check_acknowledged(engine, "in the same handle, resumed");
        engine.verify().unwrap();
    }

    /// A sync that failed says nothing when it is asked again.
    fn check_no_sync_was_retried(&self, struck: &[Call]) {
        if self.fault.is_some_and(|fault| fault.effect == Effect::Short) {
            return;
        }
        let syncs = |call: &&Call| matches!(call.method, Method::SyncData | Method::SyncAll);
        // These are removed and created anew under the same name.
        let recreated = |path: &Path| path.ends_with("CURRENT.tmp") || path.ends_with("SYNC.tmp");
        for failed in struck.iter().filter(syncs).filter(|call| !recreated(&call.path)) {
            if failed.number <= self.opened_at {
                continue;
            }
            for later in failed.number + 1..=self.fs.calls() {
                let call = self.fs.describe(later);
                let same_file = call.ends_with(&format!(" {}", failed.path.display()));
                assert!(!(same_file && call.contains(": Sync")), "{failed}, then {call}");
            }
        }
    }

    /// Opens, writes, syncs, flushes, compacts, dies; opens, goes on, closes; opens, closes.
    fn all_lives(&mut self) {
        if let Some(engine) = self.open() {
            self.write(&engine, 10);
            self.sync(&engine);
            self.flush(&engine);
            self.write(&engine, 7);
            self.flush(&engine);
            self.write(&engine, 3);
            self.compact(&engine);
            self.write(&engine, 6);
            self.check_handle(&engine);
        }
        if let Some(engine) = self.open() {
            self.write(&engine, 4);
            self.flush(&engine);
            self.write(&engine, 2);
            self.check_handle(&engine);
            let closed = engine.close();
            self.note("close", closed);
        }
        if let Some(engine) = self.open() {
            self.write(&engine, 2);
            self.check_handle(&engine);
            let closed = engine.close();
            self.note("close", closed);
        }
    }

    fn check_reopened(&mut self) {
        self.fs.disarm();
        self.check_power_cut();
        for _ in 0..2 {
            let engine = open_mem(&self.mem, Options { background_threads: 0, ..options() })
                .unwrap_or_else(|error| panic!("does not open: {error:?}, {}", self.context()));
            self.check_acknowledged(&engine, "reopened");
            engine.verify().unwrap();
            let known: u64 =
                engine.stats().trees.iter().flat_map(|tree| tree.levels).map(|l| l.files).sum();
            assert_eq!(tables_on_disk(&self.mem), known, "tables left over: {}", self.context());
            engine.close().unwrap();
        }
    }
}

fn tables_on_disk(fs: &MemFs) -> u64 {
    fs.paths().iter().filter(|path| path.extension().is_some_and(|e| e == "table")).count() as u64
}

/// Whether a failure of `call` while the store is open turns writes off: writes and syncs of log
/// (whose files keep the name they were created with) and manifest, and notes of what was synced.
fn degrades(call: &Call, errno: i32) -> bool {
    let name = call.path.file_name().unwrap().to_str().unwrap();
    let (start, _) = call.range.unwrap_or_default();
    match call.method {
        Method::WriteAt if name.starts_with("MANIFEST") || name == "SYNC" => true,
        Method::WriteAt => name.ends_with(".tmp") && start > 0,
        Method::SyncData => name.starts_with("MANIFEST") || name.ends_with(".tmp"),
        Method::Allocate => name.starts_with("MANIFEST") && errno != ENOSPC,
        _ => false,
    }
}

fn run(options: &Options, fault: Fault) -> bool {
    let mut run = Run::new(options, Some(fault));
    run.all_lives();
    let struck = !run.fs.struck().is_empty();
    run.check_reopened();
    let harmless = matches!(fault.effect, Effect::Short);
    assert!(!harmless || run.errors.is_empty(), "{}", run.context());
    struck
}

/// Without threads: the same calls in the same order, whatever the machine does.
fn options() -> Options {
    Options {
        sync: SyncMode::Off,
        background_threads: 0,
        write_buffer: 6 << 10,
        table_bytes: 8 << 10,
        block_bytes: 512,
        memory_budget: 1 << 20,
        log_segment_bytes: 128 << 10,
        ..Options::default()
    }
}

/// Small segments, so that the log changes them; the house keeper makes the next ones ready, so
/// the order of calls varies a little.
fn with_small_segments() -> Options {
    Options { log_segment_bytes: 4 << 10, ..options() }
}

fn all() -> bool {
    std::env::var("LSMKV_SWEEP").is_ok_and(|value| value == "all")
}

/// Fails call 1, 2, 3 … until a run ends before the fault strikes.
fn sweep(options: &Options, effects: &[Effect], step: u64) {
    let watchdog = Watchdog::start(Duration::from_secs(30));
    for &effect in effects {
        let endless = effect == Effect::Errno(EINTR);
        for sticky in [false, true] {
            if sticky && endless {
                continue;
            }
            let mut k = 1;
            while run(options, Fault { sticky, ..Fault::once(k, effect) }) {
                watchdog.beat();
                k += step;
                assert!(k < 20_000, "the workload never ends");
            }
            assert!(k > 200, "only {k} calls: the workload does too little");
        }
    }
}

const MAIN: [Effect; 2] = [Effect::Errno(EIO), Effect::Errno(ENOSPC)];
const OTHERS: [Effect; 6] = [
    Effect::Errno(EINTR),
    Effect::Errno(EMFILE),
    Effect::Errno(EROFS),
    Effect::Short,
    Effect::Torn(EIO),
    Effect::Torn(ENOSPC),
];

#[test]
fn without_a_fault_the_workload_succeeds_and_repeats_call_by_call() {
    let calls = [0, 1].map(|_| {
        let mut run = Run::new(&options(), None);
        run.all_lives();
        assert!(run.errors.is_empty(), "{:?}", run.errors);
        assert!(run.tried.iter().all(|tried| tried.acknowledged));
        run.check_acknowledged(&open_mem(&run.mem, options()).unwrap(), "at the end");
        (1..=run.fs.calls()).map(|k| run.fs.describe(k)).collect::<Vec<_>>()
    });
    assert_eq!(calls[0], calls[1]);
    for needed in [
        ": Create /db/",
        ": Rename /db/",
        ": Remove /db/",
        ": SyncDir /db",
        ": Lock",
        ": List",
        ": Allocate /db/MANIFEST",
        ": SyncData /db/MANIFEST",
        ": WriteAt /db/SYNC",
        ".table",
        ": ReadAt /db/",
        ": OpenWrite /db/",
    ] {
        assert!(calls[0].iter().any(|call| call.contains(needed)), "the workload lacks {needed}");
    }
}

#[test]
fn any_call_fails_with_an_io_error() {
    sweep(&options(), &MAIN[..1], 1);
}

#[test]
fn any_call_fails_for_want_of_space() {
    sweep(&options(), &MAIN[1..], 1);
}

#[test]
fn calls_fail_in_other_ways() {
    sweep(&options(), &OTHERS, if all() { 1 } else { 11 });
}

#[test]
fn calls_fail_while_the_log_changes_segments() {
    sweep(&with_small_segments(), &MAIN, if all() { 1 } else { 5 });
    sweep(&with_small_segments(), &OTHERS, if all() { 1 } else { 29 });
}

#[test]
fn calls_fail_in_background_threads_and_nothing_hangs() {
    let threaded = Options { background_threads: 1, ..with_small_segments() };
    sweep(&threaded, &MAIN, if all() { 1 } else { 23 });
    sweep(&threaded, &OTHERS, if all() { 5 } else { 97 });
}
