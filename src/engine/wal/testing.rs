//! What the tests of log and manifest share: a store's directory on the in-memory file system,
//! behind faults, with damage by hand and slow syncs.

#![expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::engine::files::FileNumbers;
use crate::engine::health::Health;
use crate::engine::reserve::Reserve;
use crate::engine::space::DiskSpace;
use crate::engine::wal::position::{Cut, LogPosition};
use crate::engine::wal::recovery::{Recovered, recover};
use crate::engine::wal::segment::LogEnv;
use crate::engine::wal::sync_file::SyncFile;
use crate::io::fault::{CallClass, Effect, Fault, FaultFs};
use crate::io::fs::FileSystem;
use crate::io::mem::{MemFs, SyncStage};

/// The error number of injected faults.
pub(crate) const EIO: i32 = 5;

/// The directory all tests use.
pub(crate) fn dir() -> &'static Path {
    Path::new("/store")
}

/// A store's directory.
#[derive(Debug)]
pub(crate) struct TestFs {
    pub(crate) mem: MemFs,
    pub(crate) faults: FaultFs,
    sync_delay_us: Arc<AtomicU64>,
    /// A sync ends only while nobody holds this.
    syncs: Arc<Mutex<()>>,
}

impl TestFs {
    pub(crate) fn new() -> Self {
        let mem = MemFs::new();
        mem.create_dir(dir()).unwrap();
        mem.sync_dir(Path::new("/")).unwrap();
        Self::on(mem)
    }

    /// On a file system that has the directory.
    pub(crate) fn on(mem: MemFs) -> Self {
        let sync_delay_us = Arc::new(AtomicU64::new(0));
        let syncs = Arc::new(Mutex::new(()));
        let (delay, held) = (sync_delay_us.clone(), syncs.clone());
        mem.on_sync(move |_, point| {
            let delay = delay.load(Ordering::SeqCst);
            if point.stage == SyncStage::Before {
                if delay > 0 {
                    std::thread::sleep(Duration::from_micros(delay));
                }
                drop(held.lock());
            }
        });
        let faults = FaultFs::new(Arc::new(mem.clone()));
        Self { mem, faults, sync_delay_us, syncs }
    }

    /// The file system, with its faults.
    pub(crate) fn io(&self) -> &dyn FileSystem {
        &self.faults
    }

    /// A shared reference to the failing file system.
    pub(crate) fn shared(&self) -> Arc<dyn FileSystem> {
        Arc::new(self.faults.clone())
    }

    /// A copy of all files, without the faults.
    pub(crate) fn copy(&self) -> Self {
        Self::on(self.mem.deep_clone())
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        self.mem.read_file(&dir().join(name)).unwrap()
    }

    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        self.mem.write_file(&dir().join(name), content).unwrap();
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut content = self.content(name);
        change(&mut content);
        self.replace(name, &content);
    }

    pub(crate) fn delete(&self, name: &str) {
        self.mem.remove(&dir().join(name)).unwrap();
    }

    /// Names of all files that end like that, in order.
    pub(crate) fn names(&self, ending: &str) -> Vec<String> {
        let paths = self.mem.paths().into_iter();
        let names = paths.map(|p| p.file_name().unwrap().to_str().unwrap().to_owned());
        names.filter(|name| name.ends_with(ending)).collect()
    }

    /// Leaves no space for more than there is.
    pub(crate) fn fill_disk(&self) {
        self.mem.set_capacity(self.mem.bytes_in_use());
    }

    pub(crate) fn free_disk(&self) {
        self.mem.set_capacity(u64::MAX);
    }

    pub(crate) fn delay_syncs(&self, delay: Duration) {
        self.sync_delay_us.store(delay.as_micros() as u64, Ordering::SeqCst);
    }

    /// Syncs that begin from now on end after the guard is dropped.
    pub(crate) fn hold_syncs(&self) -> MutexGuard<'_, ()> {
        self.syncs.lock()
    }

    /// All calls of these classes fail from now on.
    pub(crate) fn fail(&self, classes: &'static [CallClass]) {
        self.faults.arm(Fault::sticky(0, Effect::Errno(EIO)).only(classes));
    }

    /// The calls that change something, as `Method name`, since the last time this was asked.
    pub(crate) fn take_calls(&self) -> Vec<String> {
        let calls = (1..=self.faults.calls()).map(|k| self.faults.describe(k));
        let words: Vec<Vec<String>> =
            calls.map(|call| call.split(' ').map(str::to_owned).collect()).collect();
        self.faults.reset();
        words
            .iter()
            .filter(|words| {
                !["ReadAt", "Open", "OpenWrite", "Len", "Exists", "List"].contains(&&*words[2])
            })
            .map(|words| format!("{} {}", words[2], words[3].trim_start_matches("/store/")))
            .collect()
    }
}

/// Everything a log needs, on `fs`.
pub(crate) fn env(fs: &TestFs, first_number: u64, max_segment_bytes: u64) -> LogEnv {
    LogEnv {
        fs: fs.shared(),
        dir: dir().to_owned(),
        numbers: Arc::new(FileNumbers::starting_at(first_number)),
        health: Arc::new(Health::default()),
        sync_file: Arc::new(SyncFile::open(fs.io(), dir()).unwrap()),
        max_segment_bytes,
        space: space(fs, max_segment_bytes),
    }
}

/// The disk space of `fs`, with a complete reserve.
fn space(fs: &TestFs, segment_bytes: u64) -> Arc<DiskSpace> {
    let names = fs.mem.list(dir()).unwrap();
    let reserve = Reserve::new(fs.shared(), dir(), &names, segment_bytes.min(1 << 20));
    reserve.refill().unwrap();
    Arc::new(DiskSpace::new(fs.shared(), dir(), reserve, 64 << 10))
}

/// The payloads recovery hands out, and what it says of them.
pub(crate) type Replayed = crate::error::Result<(Vec<Vec<u8>>, Recovered)>;

/// Recovers the log on `fs` with what its file SYNC says.
pub(crate) fn replay(fs: &TestFs, start: LogPosition, cuts: &[Cut]) -> Replayed {
    let sync_state = SyncFile::read(fs.io(), dir())?;
    let mut payloads = Vec::new();
    let recovered = recover(fs.io(), dir(), start, cuts, sync_state, |_, payload| {
        payloads.push(payload.to_vec());
        Ok(())
    })?;
    Ok((payloads, recovered))
}

/// Recovers the whole log on `fs`.
pub(crate) fn replay_all(fs: &TestFs) -> Replayed {
    replay(fs, LogPosition::default(), &[])
}
