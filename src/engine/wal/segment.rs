//! Log segments: files of fixed size. A segment has its full size and a durable name before its
//! first record is written. So a flush of records changes no metadata, and a named segment that is
//! too short is damaged.
//!
//! A segment is created as `NNNNNN.tmp`, gets its header and its full size, is synced and renamed
//! to `NNNNNN.log`, and then its directory is synced. It is never reused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::{FileNumber, FileNumbers, log_path, temporary_path};
use crate::engine::health::Health;
use crate::engine::reserve::ReserveRole;
use crate::engine::space::DiskSpace;
use crate::engine::wal::header::{FileHeader, SEGMENT_MAGIC};
use crate::engine::wal::sync_file::SyncFile;
use crate::error::{Error, Result};
use crate::io::fs::{File, FileSystem};

/// The parts of the store that the log uses.
#[derive(Clone, Debug)]
pub struct LogEnv {
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// The store's directory.
    pub dir: PathBuf,
    /// Allocates file numbers.
    pub numbers: Arc<FileNumbers>,
    /// Degraded when a write or sync of the log fails.
    pub health: Arc<Health>,
    /// Records the synced position.
    pub sync_file: Arc<SyncFile>,
    /// Largest size of a segment, unless a group needs more.
    pub max_segment_bytes: u64,
    /// Tells whether the disk is full, and holds the reserve.
    pub space: Arc<DiskSpace>,
}

/// A segment that is ready for records.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The file number.
    pub number: FileNumber,
    /// The file, open for writing.
    pub file: Arc<dyn File>,
    /// The length of the file.
    pub size: u64,
}

impl Segment {
    /// Creates a segment of `size` bytes with a durable name. After an error, at worst an empty
    /// segment is left, which recovery skips.
    pub fn create(env: &LogEnv, size: u64) -> Result<Self> {
        let number = env.numbers.allocate();
        let temporary = temporary_path(&env.dir, number);
        let file = allocated_file(env, &temporary, |file| {
            write_header(file, &temporary, number, size)?;
            file.allocate(size).map_err(|e| Error::io("allocate", &temporary, &e))
        })?;
        name_segment(env, &temporary, number)?;
        Ok(Self { number, file, size })
    }

    /// Turns a file of the reserve into a segment with room for `needed` bytes; `None` if there is
    /// no such file.
    pub fn from_reserve(env: &LogEnv, needed: u64) -> Result<Option<Self>> {
        // A number of its own: segments must be used in the order of their numbers.
        let number = env.numbers.allocate();
        let temporary = temporary_path(&env.dir, number);
        let taken = env.space.reserve.take(ReserveRole::Log, needed, &temporary)?;
        let Some((file, size)) = taken else { return Ok(None) };
        let ready = write_header(&*file, &temporary, number, size)
            .and_then(|()| file.sync_all().map_err(|e| Error::io("sync", &temporary, &e)));
        if let Err(error) = ready {
            forget(env, &temporary);
            return Err(error);
        }
        name_segment(env, &temporary, number)?;
        Ok(Some(Self { number, file, size }))
    }

    /// The path of the file.
    pub fn path(&self, env: &LogEnv) -> PathBuf {
        log_path(&env.dir, self.number)
    }
}

fn allocated_file(
    env: &LogEnv,
    path: &Path,
    prepare: impl FnOnce(&dyn File) -> Result<()>,
) -> Result<Arc<dyn File>> {
    let file = env.fs.create(path).map_err(|e| Error::io("create", path, &e))?;
    let ready =
        prepare(&*file).and_then(|()| file.sync_all().map_err(|e| Error::io("sync", path, &e)));
    match ready {
        Ok(()) => Ok(file),
        Err(error) => {
            forget(env, path);
            Err(error)
        }
    }
}

fn write_header(file: &dyn File, path: &Path, number: FileNumber, size: u64) -> Result<()> {
    let header = FileHeader { magic: SEGMENT_MAGIC, number, size };
    file.write_all_at(&header.encode(), 0).map_err(|e| Error::io("write", path, &e))
}

fn name_segment(env: &LogEnv, temporary: &Path, number: FileNumber) -> Result<()> {
    let path = log_path(&env.dir, number);
    if let Err(e) = env.fs.rename(temporary, &path) {
        forget(env, temporary);
        return Err(Error::io("rename to", &path, &e));
    }
    env.fs.sync_dir(&env.dir).map_err(|e| {
        forget(env, &path);
        Error::io("sync the directory", &env.dir, &e)
    })
}

/// Removes a file that holds nothing. A failure does no harm: the next open removes a temporary
/// file, and recovery skips an empty segment.
pub fn forget(env: &LogEnv, path: &Path) {
    let _ = env.fs.remove(path);
}
