//! The file system as a trait, so that tests can drop unsynced data and fail any call.
//!
//! Every implementation follows these rules, and the engine relies on them:
//! - written data is durable only after `sync_data` or `sync_all` of its file returned `Ok`;
//! - a created, renamed or linked name is durable only after `sync_dir` of its directory;
//! - reads and writes are positional, may be short, and may fail with `Interrupted`. The provided
//!   `read_exact_at` and `write_all_at` repeat them;
//! - files are not memory-mapped: a fault would kill the process with SIGBUS, and tests could not
//!   inject one.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file system. All threads of a store share it.
pub trait FileSystem: Send + Sync + Debug {
    /// Creates a new file for reading and writing. Fails with `AlreadyExists` if it exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading. While it is open, [`File::discard_front`] of any process
    /// leaves its bytes alone, as far as the file system can tell.
    fn open_kept(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Atomically renames `from` to `to`, and replaces a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives an existing file a second name. Fails if `to` exists.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// The names (not paths) in a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Creates a directory with mode 0700. Fails if it exists or its parent does not.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Whether a file or directory exists at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The path of an existing directory with symbolic links resolved. Other calls do not follow
    /// symbolic links.
    fn resolve(&self, dir: &Path) -> io::Result<PathBuf> {
        Ok(dir.to_owned())
    }
    /// Whether the file system vanishes with the process.
    fn is_volatile(&self) -> bool {
        false
    }
    /// Whether another process may write to the directory meanwhile and remove any file. A file that
    /// is needed must then stay open.
    fn is_beside_writer(&self) -> bool {
        false
    }
    /// Bytes that files in `dir` may still take; `None` if that is unknown or unlimited. Others may
    /// take them at any time.
    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        let _ = dir;
        None
    }
    /// Makes names created, renamed or removed in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of a store directory until the guard is dropped, and creates the
    /// file `path` if necessary. Fails with `WouldBlock` if another handle or process holds the
    /// lock.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;
    /// Takes the exclusive lock of an existing directory itself until the guard is dropped, and
    /// creates nothing. Fails with `WouldBlock` if another handle or process holds the lock.
    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn LockGuard>>;
    /// The process that holds the lock of a file or directory, if that is known.
    fn lock_holder(&self, path: &Path) -> Option<u32> {
        let _ = path;
        None
    }
}

/// Holds a directory lock; dropping it releases the lock.
pub trait LockGuard: Send + Sync + Debug {
    /// Closes the descriptor in a forked child, without releasing the lock of the parent.
    fn abandon(&self);
    /// Writes the number of this process to the locked file, for the messages that others get. They
    /// do without it if that fails. Dropping the guard removes it.
    fn sign(&self) {}
}

/// An open file. All calls are positional, so all threads can share one handle.
pub trait File: Send + Sync + Debug {
    /// Reads some bytes at `offset`. Returns 0 only at the end of the file or for an empty buffer.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some bytes at `offset`, and extends the file if necessary.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes the bytes of the file durable, and its length if it changed.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes the bytes and metadata of the file durable.
    fn sync_all(&self) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves disk space for `len` bytes, and extends the file to that length with zeros. A
    /// longer file keeps its length. Fails with `StorageFull` if there is not enough space.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Gives back the disk space of the first `len` bytes, as far as the file system can. They are
    /// lost, and the length stays. Does nothing while the file has a second name or somebody has it
    /// open by [`FileSystem::open_kept`].
    fn discard_front(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Ok(())
    }

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`. Fails with `UnexpectedEof` if the file is too short.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    buf = buf.get_mut(n..).unwrap_or_default();
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`.
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.write_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    buf = buf.get(n..).unwrap_or_default();
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
