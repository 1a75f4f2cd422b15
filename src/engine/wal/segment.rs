//! Log segments: files of a fixed size, complete and durable under their name before the first
//! record, so that a flush of records touches no metadata and a named segment that is too short
//! can only be damage.
//!
//! A segment is created as `NNNNNN.tmp`, gets its header and its whole size, is synced, renamed
//! to `NNNNNN.log`, and its directory is synced. It is never used a second time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::{FileNumber, FileNumbers, log_path, temporary_path};
use crate::engine::health::Health;
use crate::engine::wal::header::{FileHeader, SEGMENT_MAGIC};
use crate::engine::wal::sync_file::SyncFile;
use crate::error::{Error, Result};
use crate::io::fs::{File, FileSystem};

/// What the log shares with the rest of the store.
#[derive(Clone, Debug)]
pub struct LogEnv {
    /// Where the files are.
    pub fs: Arc<dyn FileSystem>,
    /// The store's directory.
    pub dir: PathBuf,
    /// The store's one source of file numbers.
    pub numbers: Arc<FileNumbers>,
    /// Degraded when a write or sync of the log fails.
    pub health: Arc<Health>,
    /// Where the synced position is noted.
    pub sync_file: Arc<SyncFile>,
    /// Largest ordinary segment.
    pub max_segment_bytes: u64,
}

/// A named segment that takes records.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its number.
    pub number: FileNumber,
    /// Its file, open for writing.
    pub file: Arc<dyn File>,
    /// The file's length.
    pub size: u64,
}

impl Segment {
    /// Creates a segment of `size` bytes, durable under its name. On an error nothing is left
    /// that matters: at worst an empty segment that recovery skips.
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

    /// The path of the segment's file.
    pub fn path(&self, env: &LogEnv) -> PathBuf {
        log_path(&env.dir, self.number)
    }
}

/// Space on disk that becomes a segment when no other can be had.
///
/// Invariant: the file has its full size, is synced, and keeps its temporary name; it gets a
/// number only when it is used, since segments must be used in the order of their numbers.
#[derive(Debug)]
pub struct Reserve {
    temporary: PathBuf,
    file: Arc<dyn File>,
    size: u64,
}

impl Reserve {
    /// Sets `size` bytes aside.
    pub fn create(env: &LogEnv, size: u64) -> Result<Self> {
        let temporary = temporary_path(&env.dir, env.numbers.allocate());
        let file = allocated_file(env, &temporary, |file| {
            file.allocate(size).map_err(|e| Error::io("allocate", &temporary, &e))
        })?;
        Ok(Self { temporary, file, size })
    }

    /// Bytes of the segment it can become.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes it a segment. After a failure the file is gone, not tried again.
    pub fn into_segment(self, env: &LogEnv) -> Result<Segment> {
        let number = env.numbers.allocate();
        let Self { temporary, file, size } = self;
        let ready = write_header(&*file, &temporary, number, size)
            .and_then(|()| file.sync_all().map_err(|e| Error::io("sync", &temporary, &e)));
        if let Err(error) = ready {
            forget(env, &temporary);
            return Err(error);
        }
        name_segment(env, &temporary, number)?;
        Ok(Segment { number, file, size })
    }

    /// Gives the space back.
    pub fn release(self, env: &LogEnv) {
        forget(env, &self.temporary);
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

/// Removes a file that holds nothing. Failing is harmless: a temporary goes at the next open, an
/// empty segment is skipped by recovery.
pub fn forget(env: &LogEnv, path: &Path) {
    let _ = env.fs.remove(path);
}
