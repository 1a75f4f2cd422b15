//! The file system of the operating system.
//!
//! Invariants: a symbolic link in the last component of a path is never followed, and descriptors
//! do not survive `exec` (`O_NOFOLLOW | O_CLOEXEC`). Files are created with mode 0600 and
//! directories with 0700, whatever the umask. Calls that a signal interrupts before they did
//! anything are repeated. Since links are not followed, the engine first resolves a path that comes
//! from a user.
//!
//! Threads: [`RealFs`] has no state, and all calls on files are positional.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Dir, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::fs::{File, FileSystem, LockGuard};
use super::lock;

/// Zeros to write where `fallocate` cannot reserve space.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

impl RealFs {
    fn open_file(path: &Path, flags: OFlags) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(open(path, flags)?.into())))
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, mode))?)
}

/// Opens a directory. The empty path, which is the parent of a relative path of one component,
/// means `.`.
fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    open(dir, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn try_flock(descriptor: &impl AsFd, how: FlockOperation) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::flock(descriptor, how))
}

impl FileSystem for RealFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Self::open_file(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Self::open_file(path, OFlags::RDONLY)
    }

    fn open_kept(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let descriptor = open(path, OFlags::RDONLY)?;
        match try_flock(&descriptor, FlockOperation::NonBlockingLockShared) {
            // A file system without such locks has nobody who respects them either.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK) => {}
            locked => locked?,
        }
        Ok(Arc::new(RealFile(descriptor.into())))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Self::open_file(path, OFlags::RDWR)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in Dir::new(open_dir(dir)?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        Ok(names)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn resolve(&self, dir: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(dir)
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        let figures = rustix::fs::statvfs(dir).ok()?;
        Some(figures.f_bavail.saturating_mul(figures.f_frsize))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::from(open_dir(dir)?).sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        lock::acquire(path)
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn LockGuard>> {
        lock::acquire_dir(dir)
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        lock::holder(path)
    }
}

#[derive(Debug)]
struct RealFile(fs::File);

impl RealFile {
    /// Writes zeros from the end of the file up to `len`.
    fn extend_with_zeros(&self, len: u64) -> io::Result<()> {
        let mut offset = self.len()?;
        while offset < len {
            let piece = usize::try_from(len - offset).unwrap_or(usize::MAX).min(ZEROS.len());
            let zeros = ZEROS.get(..piece).unwrap_or_default();
            self.write_all_at(zeros, offset)?;
            offset += piece as u64;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let reserve = || rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, len);
        match rustix::io::retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.extend_with_zeros(len),
            other => Ok(other?),
        }
    }

    fn discard_front(&self, len: u64) -> io::Result<()> {
        // A checkpoint may share the bytes.
        if len == 0 || self.0.metadata()?.nlink() > 1 {
            return Ok(());
        }
        // A reader beside this process may need them: see `open_kept`. The lock ends with the
        // descriptor.
        if try_flock(&self.0, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.0, flags, 0, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_written_reads_back_through_every_kind_of_handle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        let created = RealFs.create(&path).unwrap();
        created.write_all_at(b"hello, disk", 0).unwrap();
        created.write_all_at(b"DISK", 7).unwrap();
        created.sync_data().unwrap();
        created.sync_all().unwrap();
        RealFs.sync_dir(dir.path()).unwrap();

        let reader = RealFs.open(&path).unwrap();
        let mut bytes = [0; 11];
        reader.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"hello, DISK");
        let error = reader.read_exact_at(&mut bytes, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(reader.write_at(b"x", 0).is_err());

        let writer = RealFs.open_write(&path).unwrap();
        writer.set_len(5).unwrap();
        assert_eq!(reader.len().unwrap(), 5);
        assert!(!reader.is_empty().unwrap());
        assert_eq!(RealFs.create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn names_are_renamed_linked_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        RealFs.create(&at("a")).unwrap().write_all_at(b"a", 0).unwrap();
        RealFs.create(&at("b")).unwrap();
        RealFs.rename(&at("a"), &at("b")).unwrap();
        RealFs.hard_link(&at("b"), &at("c")).unwrap();
        assert!(RealFs.hard_link(&at("b"), &at("c")).is_err());
        RealFs.create_dir(&at("sub")).unwrap();
        assert!(RealFs.create_dir(&at("sub")).is_err());
        assert!(RealFs.create_dir(&at("no/parent")).is_err());

        let mut names = RealFs.list(dir.path()).unwrap();
        names.sort();
        assert_eq!(names, ["b", "c", "sub"].map(PathBuf::from));
        assert_eq!(fs::metadata(at("b")).unwrap().ino(), fs::metadata(at("c")).unwrap().ino());
        assert_eq!(fs::read(at("c")).unwrap(), b"a");

        RealFs.remove(&at("b")).unwrap();
        RealFs.remove_dir(&at("sub")).unwrap();
        assert!(!RealFs.exists(&at("b")).unwrap());
        assert!(!RealFs.exists(&at("sub")).unwrap());
        assert!(RealFs.exists(&at("c")).unwrap());
    }

    #[test]
    fn allocate_reserves_zeros_and_keeps_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealFs.create(&dir.path().join("segment")).unwrap();
        file.write_all_at(b"head", 0).unwrap();
        file.allocate(100_000).unwrap();
        assert_eq!(file.len().unwrap(), 100_000);
        let mut bytes = vec![1; 100_000];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes[..4], b"head");
        assert!(bytes[4..].iter().all(|&b| b == 0));
        file.allocate(0).unwrap();
    }

    #[test]
    fn the_front_of_a_file_is_given_back_unless_it_has_a_second_name() {
        let dir = tempfile::tempdir().unwrap();
        let (path, second) = (dir.path().join("table"), dir.path().join("second"));
        let file = RealFs.create(&path).unwrap();
        file.write_all_at(&[7; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let blocks = || fs::metadata(&path).unwrap().blocks();
        let before = blocks();
        RealFs.hard_link(&path, &second).unwrap();
        file.discard_front(512 << 10).unwrap();
        assert_eq!(blocks(), before);
        RealFs.remove(&second).unwrap();
        file.discard_front((512 << 10) + 1).unwrap();
        assert!(blocks() <= before / 2 + 16, "{} of {before} blocks", blocks());
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        assert!(bytes[(512 << 10) + 1..].iter().all(|&b| b == 7));
        assert!(RealFs.free_bytes(dir.path()).unwrap() > 0);
    }

    #[test]
    fn zeros_written_instead_of_a_reservation_give_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        let file = RealFile(fs::File::create_new(&path).unwrap());
        file.write_all_at(b"head", 0).unwrap();
        file.extend_with_zeros(200_001).unwrap();
        file.extend_with_zeros(10).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 200_001);
        assert_eq!(&bytes[..4], b"head");
        assert!(bytes[4..].iter().all(|&b| b == 0));
        file.sync_all().unwrap();
        let blocks = fs::metadata(&path).unwrap().blocks();
        assert!(blocks * 512 >= 200_001, "a sparse file reserves nothing: {blocks} blocks");
    }

    /// The umask belongs to the process, so this runs in one of its own.
    #[test]
    fn a_permissive_umask_opens_nothing() {
        const SCRATCH: &str = "LSMKV_TEST_UMASK_SCRATCH";
        if let Some(scratch) = std::env::var_os(SCRATCH) {
            rustix::process::umask(Mode::empty());
            let scratch = PathBuf::from(scratch);
            RealFs.create_dir(&scratch.join("dir")).unwrap();
            RealFs.create(&scratch.join("file")).unwrap();
            drop(RealFs.lock(&scratch.join("LOCK")).unwrap());
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "io::real::tests::a_permissive_umask_opens_nothing"])
            .env(SCRATCH, dir.path())
            .output()
            .unwrap()
            .status;
        assert!(status.success());
        assert_eq!(mode_of(&dir.path().join("dir")), 0o700);
        assert_eq!(mode_of(&dir.path().join("file")), 0o600);
        assert_eq!(mode_of(&dir.path().join("LOCK")), 0o600);
    }

    #[test]
    fn a_symbolic_link_is_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("target"), b"secret").unwrap();
        fs::create_dir(at("real")).unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("real"), at("dirlink")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();

        let refused = |e: io::Error| e.raw_os_error() == Some(libc::ELOOP);
        assert!(refused(RealFs.open(&at("link")).unwrap_err()));
        assert!(refused(RealFs.open_write(&at("link")).unwrap_err()));
        assert!(RealFs.list(&at("dirlink")).is_err());
        assert!(RealFs.sync_dir(&at("dirlink")).is_err());
        assert!(RealFs.create(&at("dangling")).is_err());
        assert!(RealFs.exists(&at("dangling")).unwrap(), "the link itself is there");
        assert!(!RealFs.exists(&at("nowhere")).unwrap());
    }

    #[test]
    fn descriptors_do_not_survive_exec() {
        let dir = tempfile::tempdir().unwrap();
        let descriptor = open(&dir.path().join("f"), OFlags::RDWR | OFlags::CREATE).unwrap();
        let flags = rustix::io::fcntl_getfd(&descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn the_lock_excludes_a_second_handle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let guard = RealFs.lock(&path).unwrap();
        assert_eq!(RealFs.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(guard);
        RealFs.lock(&path).unwrap();
    }
}
