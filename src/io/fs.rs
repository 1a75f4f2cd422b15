//! The file system behind a trait, so that tests can drop unsynced data and fail any call.
//!
//! Rules every implementation follows, and that the engine relies on:
//! - data written is durable only after `sync_data`/`sync_all` of that file returned `Ok`;
//! - a created, renamed or linked name is durable only after `sync_dir` of its directory;
//! - reads and writes are positional, may be short, and may fail with `Interrupted`:
//!   the provided `read_exact_at`/`write_all_at` loop.
//! - nothing is mapped: a mapping would kill the host with SIGBUS and hide faults from tests.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory tree. Shared by all threads of a store.
pub trait FileSystem: Send + Sync + Debug {
    /// Creates a new file for reading and writing; fails with `AlreadyExists` if it is there.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Atomically gives `from` the name `to`, replacing what was there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives an existing file a second name; fails if `to` exists.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Names (not paths) in a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Creates one directory, mode 0700; fails if it exists or its parent does not.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The path with symbolic links resolved: other calls follow none. The directory exists.
    fn resolve(&self, dir: &Path) -> io::Result<PathBuf> {
        Ok(dir.to_owned())
    }
    /// Whether all of it goes with the process.
    fn is_volatile(&self) -> bool {
        false
    }
    /// Makes names created, renamed or removed in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of a store directory (creating `path` if needed) until the guard
    /// is dropped. `WouldBlock` when another handle or process holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;
}

/// Holds a directory lock; dropping it releases the lock.
pub trait LockGuard: Send + Sync + Debug {
    /// In a forked child: closes the descriptor without releasing the parent's lock.
    fn abandon(&self);
}

/// An open file. Positional calls only, so one handle serves all threads.
pub trait File: Send + Sync + Debug {
    /// Reads some bytes at `offset`; 0 only at the end of the file or for an empty buffer.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some bytes at `offset`, growing the file as needed.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes the file's bytes durable, and its length if it changed.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes the file's bytes and metadata durable.
    fn sync_all(&self) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves disk space for `len` bytes and makes that the file's length, zero-filled; a file
    /// that is longer already keeps its length and its bytes.
    /// Fails with `StorageFull` when there is not enough.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`; `UnexpectedEof` when the file ends before.
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
