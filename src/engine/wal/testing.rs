//! A small file system in memory for the tests of log and manifest: damage by hand, a limited
//! disk, slow and failing syncs.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::engine::files::FileNumbers;
use crate::engine::health::Health;
use crate::engine::wal::position::{Cut, LogPosition};
use crate::engine::wal::recovery::{Recovered, recover};
use crate::engine::wal::segment::LogEnv;
use crate::engine::wal::sync_file::SyncFile;
use crate::io::fs::{File, FileSystem, LockGuard};

/// The directory all tests use.
pub(crate) fn dir() -> &'static Path {
    Path::new("/store")
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) sync_delay_us: AtomicU64,
    pub(crate) fail_sync: AtomicBool,
    pub(crate) fail_write: AtomicBool,
    pub(crate) syncs: AtomicU64,
    capacity: Mutex<Option<u64>>,
    calls: Mutex<Vec<String>>,
}

impl Faults {
    fn call(&self, text: String) {
        self.calls.lock().push(text);
    }
}

type Files = BTreeMap<PathBuf, Arc<Node>>;

#[derive(Debug, Default)]
pub(crate) struct TestFs {
    files: Arc<Mutex<Files>>,
    pub(crate) faults: Arc<Faults>,
}

#[derive(Debug)]
struct Node {
    data: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct Handle {
    name: String,
    node: Arc<Node>,
    files: Arc<Mutex<Files>>,
    faults: Arc<Faults>,
}

impl TestFs {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A copy of all files, without the faults.
    pub(crate) fn copy(&self) -> Arc<Self> {
        let fs = Self::default();
        for (path, node) in &*self.files.lock() {
            let data = Mutex::new(node.data.lock().clone());
            fs.files.lock().insert(path.clone(), Arc::new(Node { data }));
        }
        Arc::new(fs)
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        self.files.lock()[&dir().join(name)].data.lock().clone()
    }

    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        let node = Node { data: Mutex::new(content.to_vec()) };
        self.files.lock().insert(dir().join(name), Arc::new(node));
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.files.lock()[&dir().join(name)].data.lock());
    }

    pub(crate) fn delete(&self, name: &str) {
        self.files.lock().remove(&dir().join(name)).unwrap();
    }

    /// Names of all files that end like that, in order.
    pub(crate) fn names(&self, ending: &str) -> Vec<String> {
        let files = self.files.lock();
        let names = files.keys().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned());
        names.filter(|name| name.ends_with(ending)).collect()
    }

    /// Limits the disk to so many bytes, `None` for no limit.
    pub(crate) fn set_capacity(&self, bytes: Option<u64>) {
        *self.faults.capacity.lock() = bytes;
    }

    pub(crate) fn used(&self) -> u64 {
        total(&self.files.lock())
    }

    /// What was called since the last time this was asked.
    pub(crate) fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.faults.calls.lock())
    }

    fn handle(&self, path: &Path) -> Result<Arc<dyn File>> {
        let files = self.files.lock();
        let node = files.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(Handle {
            name: name_of(path),
            node: Arc::clone(node),
            files: Arc::clone(&self.files),
            faults: Arc::clone(&self.faults),
        }))
    }
}

fn total(files: &Files) -> u64 {
    files.values().map(|node| node.data.lock().len() as u64).sum()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

impl FileSystem for TestFs {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.faults.call(format!("create {}", name_of(path)));
        let node = Arc::new(Node { data: Mutex::default() });
        if self.files.lock().contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.files.lock().insert(path.to_owned(), node);
        self.handle(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.handle(path)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.handle(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.faults.call(format!("rename {} {}", name_of(from), name_of(to)));
        let mut files = self.files.lock();
        let node = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), node);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.faults.call(format!("remove {}", name_of(path)));
        self.files.lock().remove(path).map(|_| ()).ok_or(ErrorKind::NotFound.into())
    }

    fn list(&self, _dir: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.names("").into_iter().map(PathBuf::from).collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.files.lock().contains_key(path))
    }

    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        self.faults.call("sync_dir".to_owned());
        Ok(())
    }

    fn hard_link(&self, _from: &Path, _to: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn remove_dir(&self, _path: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn create_dir(&self, _dir: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn lock(&self, _path: &Path) -> Result<Box<dyn LockGuard>> {
        Err(ErrorKind::Unsupported.into())
    }
}

impl File for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let data = self.node.data.lock();
        let rest = data.get(offset as usize..).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.faults.call(format!("write {}", self.name));
        if self.faults.fail_write.load(Ordering::SeqCst) {
            return Err(Error::other("the disk broke"));
        }
        let mut data = self.node.data.lock();
        let end = offset as usize + buf.len();
        if data.len() < end {
            data.resize(end, 0);
        }
        data[offset as usize..end].copy_from_slice(buf);
        Ok(buf.len())
    }

    fn sync_data(&self) -> Result<()> {
        self.faults.call(format!("sync {}", self.name));
        self.faults.syncs.fetch_add(1, Ordering::SeqCst);
        let delay = self.faults.sync_delay_us.load(Ordering::SeqCst);
        if delay > 0 {
            std::thread::sleep(Duration::from_micros(delay));
        }
        if self.faults.fail_sync.load(Ordering::SeqCst) {
            return Err(Error::other("the sync failed"));
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        self.sync_data()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.node.data.lock().len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.node.data.lock().resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> Result<()> {
        self.faults.call(format!("allocate {}", self.name));
        let used = total(&self.files.lock()) - self.len()? + len;
        if self.faults.capacity.lock().is_some_and(|capacity| used > capacity) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.set_len(len)
    }
}

/// Everything a log needs, on `fs`.
pub(crate) fn env(fs: &Arc<TestFs>, first_number: u64, max_segment_bytes: u64) -> LogEnv {
    LogEnv {
        fs: fs.clone(),
        dir: dir().to_owned(),
        numbers: Arc::new(FileNumbers::starting_at(first_number)),
        health: Arc::new(Health::default()),
        sync_file: Arc::new(SyncFile::open(&**fs, dir()).unwrap()),
        max_segment_bytes,
    }
}

/// The payloads recovery hands out, and what it says of them.
pub(crate) type Replayed = crate::error::Result<(Vec<Vec<u8>>, Recovered)>;

/// Recovers the log on `fs` with what its file SYNC says.
pub(crate) fn replay(fs: &TestFs, start: LogPosition, cuts: &[Cut]) -> Replayed {
    let sync_state = SyncFile::read(fs, dir())?;
    let mut payloads = Vec::new();
    let recovered = recover(fs, dir(), start, cuts, sync_state, |_, payload| {
        payloads.push(payload.to_vec());
        Ok(())
    })?;
    Ok((payloads, recovered))
}

/// Recovers the whole log on `fs`.
pub(crate) fn replay_all(fs: &TestFs) -> Replayed {
    replay(fs, LogPosition::default(), &[])
}
