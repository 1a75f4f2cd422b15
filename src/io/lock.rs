//! The exclusive lock of a store directory: an `flock` on a file or on the directory, and a registry
//! of the locks that this process holds.
//!
//! Invariants:
//! - a lock file has at most one holder on the host. The registry refuses a second attempt in the
//!   same process before the lock file is opened;
//! - the existence of the file means nothing. Only its holder may remove it, since two holders could
//!   otherwise lock two files of the same name. Whoever locks a file looks again whether it still
//!   has its name;
//! - what the file holds matters only to messages: the number of the process that writes to the
//!   store, and a newline. It is empty while nobody does, and in stores of older versions. A number
//!   that a killed process left counts if a process of that number exists;
//! - only the process that took the lock unlocks it. A forked child shares the open file
//!   description of its parent, so an explicit unlock would release the lock of the parent. The
//!   child only closes it, also where the fork came while the lock was being taken.
//!
//! Threads: any thread may call everything here. [`LockGuard::abandon`] never waits, since a mutex
//! may stay locked forever in a forked child.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::Pid;

use super::fs::LockGuard;
use crate::sync::descriptors::ListedDescriptor;

/// How often to open a lock file again that was replaced while it was being locked.
const MAX_ATTEMPTS: u32 = 16;

/// The locks that this process holds, by device and inode of the lock file.
static HELD: Registry<FileIdentity> = Registry::new();

type FileIdentity = (u64, u64);

/// The locked keys with the processes that hold them. Entries that a forked child inherits from its
/// parent do not count in the child.
#[derive(Debug)]
pub(super) struct Registry<K>(Mutex<BTreeMap<K, u32>>);

impl<K: Ord> Registry<K> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Claims `key`; `false` if this process holds it already.
    pub(super) fn claim(&self, key: K) -> bool {
        let this_process = std::process::id();
        self.0.lock().insert(key, this_process) != Some(this_process)
    }

    pub(super) fn holds(&self, key: &K) -> bool {
        self.0.lock().get(key) == Some(&std::process::id())
    }

    pub(super) fn release(&self, key: &K) {
        self.0.lock().remove(key);
    }
}

/// Takes the lock on `path`, and creates the file if necessary. Fails with `WouldBlock` if the lock
/// is held.
pub fn acquire(path: &Path) -> io::Result<Box<dyn LockGuard>> {
    acquire_by(path, open_lock_file)
}

/// Takes the lock on the directory `dir` itself. Fails with `WouldBlock` if the lock is held.
pub fn acquire_dir(dir: &Path) -> io::Result<Box<dyn LockGuard>> {
    acquire_by(dir, open_directory)
}

/// Opens what is to be locked.
type Opener = fn(&Path) -> io::Result<OwnedFd>;

fn acquire_by(path: &Path, open: Opener) -> io::Result<Box<dyn LockGuard>> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(guard) = try_acquire(path, open)? {
            return Ok(Box::new(guard));
        }
    }
    Err(Errno::WOULDBLOCK.into())
}

/// Tries to take the lock once; `None` if the file was replaced between opening and locking it.
fn try_acquire(path: &Path, open: Opener) -> io::Result<Option<DirectoryLock>> {
    if identity_at(path)?.is_some_and(|identity| HELD.holds(&identity)) {
        return Err(Errno::WOULDBLOCK.into());
    }
    let descriptor = ListedDescriptor::open(|| open(path))?;
    let identity = identity_of(&rustix::fs::fstat(&descriptor)?);
    if !HELD.claim(identity) {
        return Err(Errno::WOULDBLOCK.into());
    }
    // From here on, the guard releases the claim whatever happens.
    let guard = DirectoryLock {
        identity,
        owner: std::process::id(),
        descriptor: Mutex::new(Some(descriptor)),
        signed: AtomicBool::new(false),
    };
    guard.lock_descriptor()?;
    Ok((identity_at(path)? == Some(identity)).then_some(guard))
}

/// Opens the lock file, for reading only if this process may not write to it. That is enough for
/// `flock`.
fn open_lock_file(path: &Path) -> io::Result<OwnedFd> {
    let open = |flags| {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR))
    };
    match open(OFlags::RDWR) {
        Err(Errno::NOENT) => Ok(open(OFlags::RDWR | OFlags::CREATE)?),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(open(OFlags::RDONLY)?),
        other => Ok(other?),
    }
}

/// The process that a lock file names. The caller has found it locked by another process, so closing
/// the file takes the lock from nobody.
fn named_in(path: &Path) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let descriptor = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let mut bytes = [0; 16];
    let read = rustix::io::pread(&descriptor, &mut bytes, 0).ok()?;
    let text = std::str::from_utf8(bytes.get(..read)?).ok()?;
    let number: u32 = text.strip_suffix('\n')?.parse().ok()?;
    let process = Pid::from_raw(i32::try_from(number).ok()?)?;
    exists(process).then_some(number)
}

/// Whether there is such a process, perhaps one of another user.
fn exists(process: Pid) -> bool {
    !matches!(rustix::process::test_kill_process(process), Err(Errno::SRCH))
}

fn open_directory(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::io::retry_on_intr(|| rustix::fs::open(dir, flags, Mode::empty()))?)
}

fn identity_at(path: &Path) -> io::Result<Option<FileIdentity>> {
    match rustix::fs::lstat(path) {
        Ok(stat) => Ok(Some(identity_of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn identity_of(stat: &Stat) -> FileIdentity {
    (stat.st_dev, stat.st_ino)
}

/// The process that holds the lock of a file or directory, as far as the system or the file tells. The
/// caller has found it locked.
pub(super) fn holder(path: &Path) -> Option<u32> {
    let identity = identity_at(path).ok()??;
    if HELD.holds(&identity) {
        return Some(std::process::id());
    }
    // A file system that shows other device numbers than it has is not found here.
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    holder_in(&locks, identity).or_else(|| named_in(path))
}

/// Finds the holder in the system's list of locks. Its lines have a number, the kind of lock, two
/// words, the process, and device and inode as `major:minor:inode`.
fn holder_in(locks: &str, (device, inode): FileIdentity) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let place = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "FLOCK", _, _, process, found, ..] if *found == place => process.parse().ok(),
            _ => None,
        }
    })
}

#[derive(Debug)]
struct DirectoryLock {
    identity: FileIdentity,
    owner: u32,
    /// `None` once abandoned.
    descriptor: Mutex<Option<ListedDescriptor>>,
    /// Whether the file holds the number of this process.
    signed: AtomicBool,
}

impl DirectoryLock {
    fn lock_descriptor(&self) -> io::Result<()> {
        let descriptor = self.descriptor.lock();
        let Some(descriptor) = descriptor.as_ref() else { return Err(Errno::BADF.into()) };
        rustix::io::retry_on_intr(|| {
            rustix::fs::flock(descriptor, FlockOperation::NonBlockingLockExclusive)
        })?;
        Ok(())
    }
}

impl LockGuard for DirectoryLock {
    fn abandon(&self) {
        // If the mutex is locked, the parent was using the descriptor when it forked, and the child
        // closes it by the list.
        if let Some(mut descriptor) = self.descriptor.try_lock() {
            *descriptor = None;
        }
    }

    fn sign(&self) {
        let descriptor = self.descriptor.lock();
        let Some(descriptor) = descriptor.as_ref() else { return };
        let text = format!("{}\n", self.owner);
        if rustix::io::pwrite(descriptor, text.as_bytes(), 0) == Ok(text.len()) {
            self.signed.store(true, Ordering::Relaxed);
            let _ = rustix::fs::ftruncate(descriptor, text.len() as u64);
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        let descriptor = self.descriptor.get_mut().take();
        if self.owner != std::process::id() {
            return;
        }
        if let Some(descriptor) = descriptor {
            if self.signed.load(Ordering::Relaxed) {
                let _ = rustix::fs::ftruncate(&descriptor, 0);
            }
            // Closing alone would leave the lock with a child forked meanwhile, until it execs. If
            // the unlock fails, the close that follows releases the lock.
            let _ = rustix::fs::flock(&descriptor, FlockOperation::Unlock);
        }
        HELD.release(&self.identity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd as _, BorrowedFd};
    use std::process::Command;

    const PROBED_PATH: &str = "LSMKV_TEST_LOCK_PROBE";

    #[test]
    fn the_holder_of_a_lock_is_found_in_the_systems_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:5603337 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 8 fe:00:5603337 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 17931 fe:00:5603337 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 fe:01:5603338 0 EOF\n\
                     4: FLOCK";
        let device = rustix::fs::makedev(0xfe, 0);
        assert_eq!(holder_in(locks, (device, 5_603_337)), Some(17931));
        assert_eq!(holder_in(locks, (device, 5_603_338)), None);
        assert_eq!(holder_in("", (device, 1)), None);
    }

    #[test]
    fn a_lock_file_names_a_process_that_exists_or_nobody() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        for content in ["", "0\n", "-1\n", "12", "99999999999999999999\n", "a\n", "2147483647\n"] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(named_in(&path), None, "{content:?}");
        }
        let guard = acquire(&path).unwrap();
        guard.sign();
        assert_eq!(named_in(&path), Some(std::process::id()));
        drop(guard);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn this_process_is_known_as_the_holder() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        assert_eq!(holder(&path), None);
        let guard = acquire(&path).unwrap();
        assert_eq!(holder(&path), Some(std::process::id()));
        drop(guard);
        assert_eq!(holder(&path), None);
    }

    fn is_refused(path: &Path) -> bool {
        match acquire(path) {
            Ok(_) => false,
            Err(e) => {
                assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
                true
            }
        }
    }

    /// What another process would see: `flock` alone, without this process's registry.
    fn flock_is_held(path: &Path) -> bool {
        let descriptor = open_lock_file(path).unwrap();
        match rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => false,
            Err(e) => {
                assert_eq!(e, Errno::WOULDBLOCK);
                true
            }
        }
    }

    #[test]
    fn a_second_lock_in_the_process_is_refused_until_the_first_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = acquire(&path).unwrap();
        assert!(is_refused(&path));
        assert!(is_refused(&path));
        assert!(flock_is_held(&path), "a refused attempt must not drop the first one's lock");
        drop(first);
        assert!(!flock_is_held(&path));
        drop(acquire(&path).unwrap());
    }

    #[test]
    fn a_leftover_lock_file_is_harmless_and_another_name_of_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        std::fs::write(&path, b"left by a crash").unwrap();
        let _first = acquire(&path).unwrap();
        let alias = dir.path().join("ALIAS");
        std::fs::hard_link(&path, &alias).unwrap();
        assert!(is_refused(&alias));
    }

    #[test]
    fn a_lock_file_that_is_a_symlink_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        let error = acquire(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        assert!(!dir.path().join("elsewhere").exists());
    }

    /// Where `flock` is emulated by record locks (as on NFS), closing any descriptor of the file
    /// drops the lock. A link shows that nothing is opened: opening it would say ELOOP.
    #[test]
    fn what_this_process_holds_is_refused_without_opening_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        std::os::unix::fs::symlink(dir.path(), &path).unwrap();
        let identity = identity_at(&path).unwrap().unwrap();
        assert!(HELD.claim(identity));
        assert!(is_refused(&path));
        HELD.release(&identity);
        assert_eq!(acquire(&path).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn a_failed_attempt_leaves_no_claim_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let elsewhere = open_lock_file(&path).unwrap();
        rustix::fs::flock(&elsewhere, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(is_refused(&path));
        rustix::fs::flock(&elsewhere, FlockOperation::Unlock).unwrap();
        drop(acquire(&path).unwrap());
    }

    #[test]
    fn a_directory_is_locked_without_a_file_in_it_and_apart_from_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let first = acquire_dir(dir.path()).unwrap();
        let again = acquire_dir(dir.path()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        drop(acquire(&dir.path().join("LOCK")).unwrap());
        drop(first);
        drop(acquire_dir(dir.path()).unwrap());
        assert!(acquire_dir(&dir.path().join("LOCK")).is_err(), "a file is no directory");
    }

    #[test]
    fn a_lock_file_that_its_holder_removed_is_not_locked_by_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = acquire(&path).unwrap();
        let late = open_lock_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        drop(first);
        // One who opened the removed file locks it, and sees that it has lost its name.
        rustix::fs::flock(&late, FlockOperation::NonBlockingLockExclusive).unwrap();
        let second = acquire(&path).unwrap();
        assert!(is_refused(&path));
        drop(second);
    }

    /// A forked child is imitated by a guard of another process on a duplicate of the descriptor:
    /// it shares the open file description, as after a fork.
    fn as_in_a_forked_child(descriptor: BorrowedFd<'_>, identity: FileIdentity) -> DirectoryLock {
        let inherited = ListedDescriptor::of(descriptor.try_clone_to_owned().unwrap());
        let owner = std::process::id().wrapping_add(1);
        let (descriptor, signed) = (Mutex::new(Some(inherited)), AtomicBool::new(false));
        DirectoryLock { identity, owner, descriptor, signed }
    }

    #[test]
    fn a_forked_child_that_abandons_or_drops_the_guard_leaves_the_parents_lock_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let parent = try_acquire(&path, open_lock_file).unwrap().unwrap();
        let child = |parent: &DirectoryLock| {
            as_in_a_forked_child(
                parent.descriptor.lock().as_ref().unwrap().as_fd(),
                parent.identity,
            )
        };
        let abandoning = child(&parent);
        abandoning.abandon();
        assert!(abandoning.descriptor.lock().is_none(), "abandon closes the descriptor");
        drop(abandoning);
        drop(child(&parent));
        assert!(flock_is_held(&path));
        assert!(is_refused(&path));

        let lingering = child(&parent);
        drop(parent);
        assert!(!flock_is_held(&path), "a child's copy must not outlive the parent's unlock");
        drop(lingering);
    }

    #[test]
    fn an_entry_inherited_from_a_parent_process_does_not_count() {
        let registry = Registry::new();
        registry.0.lock().insert(7, std::process::id().wrapping_add(1));
        assert!(!registry.holds(&7));
        assert!(registry.claim(7));
        assert!(registry.holds(&7));
        assert!(!registry.claim(7));
    }

    #[test]
    fn another_process_is_refused_while_the_lock_is_held_and_admitted_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let outcome_in_another_process = || {
            let report = dir.path().join("outcome");
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "io::lock::tests::the_probe_run_by_another_process"])
                .env(PROBED_PATH, &path)
                .output()
                .unwrap()
                .status;
            assert!(status.success());
            std::fs::read_to_string(report).unwrap()
        };
        let guard = acquire(&path).unwrap();
        assert_eq!(outcome_in_another_process(), "refused");
        drop(guard);
        assert_eq!(outcome_in_another_process(), "admitted");
    }

    #[test]
    fn the_probe_run_by_another_process() {
        let Some(path) = std::env::var_os(PROBED_PATH) else { return };
        let path = Path::new(&path);
        let outcome = if is_refused(path) { "refused" } else { "admitted" };
        std::fs::write(path.with_file_name("outcome"), outcome).unwrap();
    }
}
