//! A file system that fails on demand. It numbers every call and fails the k-th one, or all from
//! the k-th on, with a chosen error or by doing less than asked.
//!
//! Invariants: a call that fails never reaches the underlying file system, except for
//! [`Effect::Torn`]. So a failed sync makes nothing durable, and a failed write writes nothing.
//! Calls are numbered from 1 in the order they are made. With one thread, a workload always gets
//! the same numbers.
//!
//! Threads: a mutex guards the numbering. It is never held during a call.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::fs::{File, FileSystem, LockGuard};

/// A method of [`FileSystem`] or [`File`]. Provided methods are missing, since they call these.
#[expect(missing_docs, reason = "each is the method of that name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Create,
    Open,
    OpenWrite,
    Rename,
    HardLink,
    Remove,
    RemoveDir,
    List,
    CreateDir,
    Exists,
    SyncDir,
    Lock,
    ReadAt,
    WriteAt,
    SyncData,
    SyncAll,
    Len,
    SetLen,
    Allocate,
}

/// A class of calls to which a fault can be restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallClass {
    /// The call that reads data: `read_at`.
    Read,
    /// Calls that take space: `write_at`, `set_len`, `allocate`.
    Write,
    /// Calls that make data or names durable: `sync_data`, `sync_all`, `sync_dir`.
    Sync,
    /// All other calls, which concern names and lengths.
    Metadata,
}

impl CallClass {
    /// All classes.
    pub const ALL: &'static [Self] = &[Self::Read, Self::Write, Self::Sync, Self::Metadata];
}

impl Method {
    /// The class of the method.
    pub fn class(self) -> CallClass {
        match self {
            Self::ReadAt => CallClass::Read,
            Self::WriteAt | Self::SetLen | Self::Allocate => CallClass::Write,
            Self::SyncData | Self::SyncAll | Self::SyncDir => CallClass::Sync,
            _ => CallClass::Metadata,
        }
    }
}

/// What a failing call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call fails with this error number, and nothing happens.
    Errno(i32),
    /// A read or write does half of what was asked and reports that. Other calls, and calls for a
    /// single byte, succeed.
    Short,
    /// A write writes half of its bytes and then fails with this error number. Other calls fail as
    /// with
    /// [`Effect::Errno`].
    Torn(i32),
}

/// Which calls fail, and how.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The number of the first call that fails, from 1.
    pub from: u64,
    /// Whether all later calls fail too.
    pub sticky: bool,
    /// Only calls of these classes fail. A fault that is not sticky waits for the first of them.
    pub classes: &'static [CallClass],
    /// How the calls fail.
    pub effect: Effect,
}

impl Fault {
    /// A fault of call `k` only.
    pub fn once(k: u64, effect: Effect) -> Self {
        Self { from: k, sticky: false, classes: CallClass::ALL, effect }
    }

    /// A fault of call `k` and all later calls.
    pub fn sticky(k: u64, effect: Effect) -> Self {
        Self { from: k, sticky: true, classes: CallClass::ALL, effect }
    }

    /// Restricts the fault to these classes of calls.
    #[must_use]
    pub fn only(self, classes: &'static [CallClass]) -> Self {
        Self { classes, ..self }
    }
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the call, from 1.
    pub number: u64,
    /// The method that was called.
    pub method: Method,
    /// The path of the call, or the name with which its file was opened. Of two paths, the first.
    pub path: Arc<Path>,
    /// Offset and length of a read or write; the length asked for by `set_len` and `allocate`.
    pub range: Option<(u64, u64)>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}: {:?} {}", self.number, self.method, self.path.display())?;
        match self.range {
            Some((offset, len)) => write!(f, " ({len} bytes at {offset})"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct CallLog {
    made: Vec<Call>,
    fault: Option<Fault>,
    struck: Vec<Call>,
}

impl CallLog {
    /// Numbers a call, and returns how it must fail.
    fn note(
        &mut self,
        method: Method,
        path: &Arc<Path>,
        range: Option<(u64, u64)>,
    ) -> Option<Effect> {
        let number = self.made.len() as u64 + 1;
        let call = Call { number, method, path: Arc::clone(path), range };
        self.made.push(call.clone());
        let fault = self.fault?;
        if number < fault.from || !fault.classes.contains(&method.class()) {
            return None;
        }
        if !fault.sticky {
            self.fault = None;
        }
        self.struck.push(call);
        Some(fault.effect)
    }
}

/// Wraps a file system, and can make its calls fail. A clone is another handle of the same file
/// system.
#[derive(Clone, Debug)]
pub struct FaultFs {
    inner: Arc<dyn FileSystem>,
    state: Arc<Mutex<CallLog>>,
}

impl FaultFs {
    /// Wraps `inner`; nothing fails until [`FaultFs::arm`].
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// Sets the fault, which replaces an earlier one.
    pub fn arm(&self, fault: Fault) {
        self.state.lock().fault = Some(fault);
    }

    /// Removes the fault.
    pub fn disarm(&self) {
        self.state.lock().fault = None;
    }

    /// Number of calls made.
    pub fn calls(&self) -> u64 {
        self.state.lock().made.len() as u64
    }

    /// The calls that the fault affected, in order.
    pub fn struck(&self) -> Vec<Call> {
        self.state.lock().struck.clone()
    }

    /// A description of call `k`, for the messages of failing tests.
    pub fn describe(&self, k: u64) -> String {
        let state = self.state.lock();
        let index = usize::try_from(k).ok().and_then(|k| k.checked_sub(1));
        match index.and_then(|index| state.made.get(index)) {
            Some(call) => call.to_string(),
            None => format!("call {k}: not made"),
        }
    }

    /// Forgets all calls, so that the next one is number 1. The fault stays.
    pub fn reset(&self) {
        let mut state = self.state.lock();
        state.made.clear();
        state.struck.clear();
    }

    fn call<R>(
        &self,
        method: Method,
        path: &Path,
        inner: impl FnOnce(&dyn FileSystem) -> io::Result<R>,
    ) -> io::Result<R> {
        fail(self.state.lock().note(method, &path.into(), None))?;
        inner(self.inner.as_ref())
    }

    fn open_by(
        &self,
        method: Method,
        path: &Path,
        inner: impl FnOnce(&dyn FileSystem) -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let file = self.call(method, path, inner)?;
        Ok(Arc::new(FaultFile { inner: file, path: path.into(), state: Arc::clone(&self.state) }))
    }
}

/// Fails a call that cannot be done by half.
fn fail(effect: Option<Effect>) -> io::Result<()> {
    match effect {
        Some(Effect::Errno(errno) | Effect::Torn(errno)) => {
            Err(io::Error::from_raw_os_error(errno))
        }
        Some(Effect::Short) | None => Ok(()),
    }
}

impl FileSystem for FaultFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(Method::Create, path, |fs| fs.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(Method::Open, path, |fs| fs.open(path))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(Method::OpenWrite, path, |fs| fs.open_write(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Method::Rename, from, |fs| fs.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Method::HardLink, from, |fs| fs.hard_link(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(Method::Remove, path, |fs| fs.remove(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.call(Method::RemoveDir, path, |fs| fs.remove_dir(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.call(Method::List, dir, |fs| fs.list(dir))
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Method::CreateDir, dir, |fs| fs.create_dir(dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.call(Method::Exists, path, |fs| fs.exists(path))
    }

    fn resolve(&self, dir: &Path) -> io::Result<PathBuf> {
        self.inner.resolve(dir)
    }

    fn is_volatile(&self) -> bool {
        self.inner.is_volatile()
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        self.inner.free_bytes(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Method::SyncDir, dir, |fs| fs.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.call(Method::Lock, path, |fs| fs.lock(path))
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.call(Method::Lock, dir, |fs| fs.lock_dir(dir))
    }
}

#[derive(Debug)]
struct FaultFile {
    inner: Arc<dyn File>,
    path: Arc<Path>,
    state: Arc<Mutex<CallLog>>,
}

impl FaultFile {
    fn note(&self, method: Method, range: Option<(u64, u64)>) -> Option<Effect> {
        self.state.lock().note(method, &self.path, range)
    }
}

/// Half of `len`, but at least 1 unless `len` is 0.
fn half(len: usize) -> usize {
    (len / 2).max(1).min(len)
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let effect = self.note(Method::ReadAt, Some((offset, buf.len() as u64)));
        fail(effect)?;
        let len = if effect == Some(Effect::Short) { half(buf.len()) } else { buf.len() };
        self.inner.read_at(buf.get_mut(..len).unwrap_or_default(), offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let effect = self.note(Method::WriteAt, Some((offset, buf.len() as u64)));
        let first_half = buf.get(..half(buf.len())).unwrap_or_default();
        match effect {
            None => self.inner.write_at(buf, offset),
            Some(Effect::Short) => self.inner.write_at(first_half, offset),
            Some(Effect::Torn(_)) => {
                self.inner.write_all_at(first_half, offset)?;
                fail(effect).map(|()| 0)
            }
            Some(Effect::Errno(_)) => fail(effect).map(|()| 0),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        fail(self.note(Method::SyncData, None))?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        fail(self.note(Method::SyncAll, None))?;
        self.inner.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        fail(self.note(Method::Len, None))?;
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        fail(self.note(Method::SetLen, Some((0, len))))?;
        self.inner.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        fail(self.note(Method::Allocate, Some((0, len))))?;
        self.inner.allocate(len)
    }

    fn discard_front(&self, len: u64) -> io::Result<()> {
        self.inner.discard_front(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::mem::{CrashMode, MemFs};
    use libc::{EINTR, EIO, EMFILE, ENOSPC, EROFS};

    fn p(path: &str) -> &Path {
        Path::new(path)
    }

    fn faulty() -> (FaultFs, MemFs) {
        let mem = MemFs::new();
        (FaultFs::new(Arc::new(mem.clone())), mem)
    }

    /// Every method once; the errors by call.
    fn make_every_call(fs: &FaultFs) -> Vec<Option<i32>> {
        let scratch = MemFs::new().create(p("/scratch")).unwrap();
        let mut errors = Vec::new();
        let mut opened = |result: io::Result<Arc<dyn File>>| {
            errors.push(result.as_ref().err().map(|e| e.raw_os_error().unwrap()));
            let instead = || FaultFile {
                inner: Arc::clone(&scratch),
                path: p("/scratch").into(),
                state: Arc::clone(&fs.state),
            };
            result.unwrap_or_else(|_| Arc::new(instead()))
        };
        let file = opened(fs.create(p("/a")));
        opened(fs.open(p("/a")));
        opened(fs.open_write(p("/a")));
        let mut note = |result: io::Result<()>| {
            errors.push(result.err().map(|e| e.raw_os_error().unwrap()));
        };
        note(file.allocate(8));
        note(file.write_at(b"bytes", 0).map(drop));
        note(file.read_at(&mut [0; 4], 0).map(drop));
        note(file.sync_data());
        note(file.sync_all());
        note(file.len().map(drop));
        note(file.set_len(2));
        note(fs.sync_dir(p("/")));
        note(fs.hard_link(p("/a"), p("/b")));
        note(fs.rename(p("/b"), p("/c")));
        note(fs.remove(p("/c")));
        note(fs.create_dir(p("/d")));
        note(fs.list(p("/d")).map(drop));
        note(fs.remove_dir(p("/d")));
        note(fs.exists(p("/d")).map(drop));
        note(fs.lock(p("/LOCK")).map(drop));
        errors
    }

    #[test]
    fn every_method_is_counted_and_can_be_described() {
        let (fs, _) = faulty();
        assert_eq!(make_every_call(&fs), [None; 19]);
        assert_eq!(fs.calls(), 19);
        let methods: std::collections::HashSet<_> =
            fs.state.lock().made.iter().map(|call| call.method).collect();
        assert_eq!(methods.len(), 19);
        assert_eq!(fs.describe(1), "call 1: Create /a");
        assert_eq!(fs.describe(5), "call 5: WriteAt /a (5 bytes at 0)");
        assert_eq!(fs.describe(20), "call 20: not made");
        assert_eq!(fs.describe(0), "call 0: not made");
        fs.reset();
        assert_eq!(fs.calls(), 0);
    }

    #[test]
    fn any_single_call_can_be_failed_with_any_error() {
        for errno in [EIO, ENOSPC, EMFILE, EROFS] {
            for k in 1..=19 {
                let (fs, _) = faulty();
                fs.arm(Fault::once(k as u64, Effect::Errno(errno)));
                let errors = make_every_call(&fs);
                assert_eq!(errors[k - 1], Some(errno), "{}", fs.describe(k as u64));
                assert!(errors[..k - 1].iter().all(Option::is_none));
                let struck = fs.struck();
                assert_eq!(struck.len(), 1);
                assert_eq!(struck[0].to_string(), fs.describe(k as u64));
            }
        }
    }

    #[test]
    fn a_sticky_fault_lasts_until_it_is_disarmed() {
        for k in 1..=19 {
            let (fs, _) = faulty();
            fs.arm(Fault::sticky(k as u64, Effect::Errno(EIO)));
            let errors = make_every_call(&fs);
            assert!(errors[..k - 1].iter().all(Option::is_none));
            assert!(errors[k - 1..].iter().all(|&e| e == Some(EIO)));
            fs.disarm();
            fs.exists(p("/")).unwrap();
        }
    }

    #[test]
    fn a_fault_can_be_restricted_to_classes_of_calls() {
        let (fs, mem) = faulty();
        fs.arm(Fault::sticky(1, Effect::Errno(ENOSPC)).only(&[CallClass::Write]));
        let file = fs.create(p("/a")).unwrap();
        assert_eq!(file.allocate(1).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(file.write_at(b"x", 0).is_err());
        assert!(file.set_len(1).is_err());
        file.sync_all().unwrap();
        assert_eq!(file.read_at(&mut [0; 1], 0).unwrap(), 0);
        fs.sync_dir(p("/")).unwrap();
        fs.remove(p("/a")).unwrap();

        fs.arm(Fault::once(1, Effect::Errno(EIO)).only(&[CallClass::Sync]));
        let file = fs.create(p("/b")).unwrap();
        file.write_all_at(b"x", 0).unwrap();
        assert!(file.sync_data().is_err(), "it waits for the first call of its class");
        file.sync_data().unwrap();
        assert_eq!(mem.sync_count(), 3);
    }

    #[test]
    fn a_failed_write_or_sync_does_not_reach_the_file_behind() {
        let (fs, mem) = faulty();
        let file = fs.create(p("/a")).unwrap();
        fs.sync_dir(p("/")).unwrap();
        fs.arm(Fault::once(fs.calls() + 1, Effect::Errno(EIO)));
        assert!(file.write_all_at(b"lost", 0).is_err());
        assert_eq!(mem.read_file(p("/a")).unwrap(), b"");
        file.write_all_at(b"written", 0).unwrap();
        fs.arm(Fault::once(fs.calls() + 1, Effect::Errno(EIO)));
        assert!(file.sync_data().is_err());
        let durable = || mem.crash_clone(0, CrashMode::DropUnsynced).read_file(p("/a")).unwrap();
        assert_eq!(durable(), b"");
        file.sync_data().unwrap();
        assert_eq!(durable(), b"written");
    }

    #[test]
    fn a_torn_write_leaves_half_of_its_bytes_and_fails() {
        let (fs, mem) = faulty();
        let file = fs.create(p("/a")).unwrap();
        fs.arm(Fault::once(2, Effect::Torn(ENOSPC)));
        let error = file.write_all_at(b"12345678", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(mem.read_file(p("/a")).unwrap(), b"1234");
    }

    #[test]
    fn an_interrupted_or_short_call_is_continued_by_the_provided_loops() {
        for effect in [Effect::Errno(EINTR), Effect::Short] {
            let (fs, mem) = faulty();
            let file = fs.create(p("/a")).unwrap();
            fs.arm(Fault::once(2, effect));
            file.write_all_at(b"12345678", 0).unwrap();
            assert_eq!(fs.calls(), 3, "{effect:?}: one call more than without the fault");
            assert_eq!(mem.read_file(p("/a")).unwrap(), b"12345678");
            fs.arm(Fault::once(4, effect));
            let mut buf = [0; 8];
            file.read_exact_at(&mut buf, 0).unwrap();
            assert_eq!(fs.calls(), 5);
            assert_eq!(&buf, b"12345678");
        }
    }

    #[test]
    fn sticky_short_calls_still_get_everything_done() {
        let (fs, mem) = faulty();
        fs.arm(Fault::sticky(1, Effect::Short));
        let file = fs.create(p("/a")).unwrap();
        file.write_all_at(b"12345678", 0).unwrap();
        assert_eq!(mem.read_file(p("/a")).unwrap(), b"12345678");
        assert_eq!(file.write_at(b"", 0).unwrap(), 0);
        assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
        fs.sync_dir(p("/")).unwrap();
    }
}
