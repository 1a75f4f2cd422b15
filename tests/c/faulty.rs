//! For tests/c/faults.c: the library with a store on a device that can be stopped, and with
//! defects that can be switched on. tests/c_faults.rs builds it from the library that cargo built
//! for the tests; nothing of it is in the library that is shipped.
//!
//! The defects are panics where the engine reads and writes files, deep inside the functions of
//! the ABI.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lsmkv::engine::{FileSystem, RealFs};
use lsmkv::io::clock::RealClock;
use lsmkv::io::fs::{File, LockGuard};
use lsmkv::{Db, Options, SyncMode};

static READS_PANIC: AtomicBool = AtomicBool::new(false);
static WRITES_PANIC: AtomicBool = AtomicBool::new(false);
static DEVICE: Mutex<Device> = Mutex::new(Device { stopped: false, waiting: 0 });
static CHANGED: Condvar = Condvar::new();

struct Device {
    stopped: bool,
    /// Threads that wait for it.
    waiting: usize,
}

fn device() -> MutexGuard<'static, Device> {
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_while(mut holds: impl FnMut(&mut Device) -> bool) {
    let guard = CHANGED.wait_while(device(), |device| holds(device));
    drop(guard.unwrap_or_else(PoisonError::into_inner));
}

fn stop_at_the_device() {
    device().waiting += 1;
    CHANGED.notify_all();
    wait_while(|device| device.stopped);
    device().waiting -= 1;
}

/// A store in directory `dir`, which flushes nothing to the device unless asked to; NULL if it
/// cannot be opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faulty_open(dir: *const c_char) -> *mut c_void {
    let dir = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(dir) }.to_bytes()));
    let options = Options { sync: SyncMode::Off, ..Options::default() };
    let db = Db::open_on(Arc::new(FaultyFs(RealFs)), dir, options, Arc::new(RealClock));
    db.and_then(lsmkv::handle_for_c).unwrap_or(null_mut())
}

/// While stopped, whoever flushes to the device waits.
#[unsafe(no_mangle)]
pub extern "C" fn faulty_stop_device(stopped: c_int) {
    device().stopped = stopped != 0;
    CHANGED.notify_all();
}

/// Returns when a thread waits for the device.
#[unsafe(no_mangle)]
pub extern "C" fn faulty_until_device_is_waited_for() {
    wait_while(|device| device.waiting == 0);
}

/// Every read of a file panics.
#[unsafe(no_mangle)]
pub extern "C" fn faulty_reads_panic(on: c_int) {
    READS_PANIC.store(on != 0, SeqCst);
}

/// Every write to a file panics.
#[unsafe(no_mangle)]
pub extern "C" fn faulty_writes_panic(on: c_int) {
    WRITES_PANIC.store(on != 0, SeqCst);
}

#[derive(Debug)]
struct FaultyFs(RealFs);

#[derive(Debug)]
struct FaultyFile(Arc<dyn File>);

fn faulty(file: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
    Ok(Arc::new(FaultyFile(file?)))
}

/// Methods that only pass a call on.
macro_rules! pass_on {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> $out { self.0.$name($($arg),*) })*
    };
}

impl FileSystem for FaultyFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        faulty(self.0.create(path))
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        faulty(self.0.open(path))
    }
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        faulty(self.0.open_write(path))
    }
    pass_on! {
        rename(from: &Path, to: &Path) -> io::Result<()>;
        hard_link(from: &Path, to: &Path) -> io::Result<()>;
        remove(path: &Path) -> io::Result<()>;
        remove_dir(path: &Path) -> io::Result<()>;
        list(dir: &Path) -> io::Result<Vec<PathBuf>>;
        create_dir(dir: &Path) -> io::Result<()>;
        exists(path: &Path) -> io::Result<bool>;
        resolve(dir: &Path) -> io::Result<PathBuf>;
        sync_dir(dir: &Path) -> io::Result<()>;
        lock(path: &Path) -> io::Result<Box<dyn LockGuard>>;
        lock_dir(dir: &Path) -> io::Result<Box<dyn LockGuard>>;
    }
}

impl File for FaultyFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        assert!(!READS_PANIC.load(SeqCst), "injected into a read");
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        assert!(!WRITES_PANIC.load(SeqCst), "injected into a write");
        self.0.write_at(buf, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        stop_at_the_device();
        self.0.sync_data()
    }
    pass_on! {
        sync_all() -> io::Result<()>;
        len() -> io::Result<u64>;
        set_len(len: u64) -> io::Result<()>;
        allocate(len: u64) -> io::Result<()>;
    }
}
