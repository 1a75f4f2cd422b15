//! A manifest as a file: a header, followed by payloads in the frame of log records, whose
//! checksums cover the number of the manifest. The content of the payloads is not known here.
//!
//! Invariants:
//! - the number of a manifest is new, and nothing is appended to a manifest from before the last
//!   open;
//! - the first record is durable before CURRENT may name the file;
//! - space is allocated before the first byte of a record is written, so that a full disk is
//!   noticed while nothing has changed. Any other failure of an append is final and degrades the
//!   store.
//!
//! One thread writes. The bytes after the last record are zero.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::edit::VersionEdit;
use crate::engine::files::{FileNumber, manifest_path};
use crate::engine::health::Health;
use crate::engine::reserve::ReserveRole;
use crate::engine::space::DiskSpace;
use crate::engine::version::current;
use crate::engine::wal::header::{FILE_HEADER_BYTES, FileHeader, MANIFEST_MAGIC};
use crate::engine::wal::position::LogPosition;
use crate::engine::wal::reader::RecordReader;
use crate::engine::wal::record::{RecordKind, encode, framed_len};
use crate::engine::wal::scan::scan;
use crate::engine::wal::sync_file::{SyncFile, SyncState};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{File, FileSystem};

/// Number of bytes by which the file grows, unless a record needs more.
const GROWTH_BYTES: u64 = 64 << 10;

/// A manifest open for appending.
#[derive(Debug)]
pub struct ManifestWriter {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    health: Arc<Health>,
    sync_file: Arc<SyncFile>,
    number: FileNumber,
    path: PathBuf,
    file: Arc<dyn File>,
    allocated: u64,
    end: u64,
    buffer: Vec<u8>,
    space: Option<Arc<DiskSpace>>,
}

impl ManifestWriter {
    /// Creates manifest `number`, which no file has had, with its first payload. It is durable, but
    /// not the current manifest before [`ManifestWriter::make_current`]. A failure changes nothing.
    /// With `space`, a full disk is met from the reserve.
    pub fn create(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        number: FileNumber,
        first_payload: &[u8],
        health: Arc<Health>,
        sync_file: Arc<SyncFile>,
        space: Option<Arc<DiskSpace>>,
    ) -> Result<Self> {
        let path = manifest_path(dir, number);
        let needed = FILE_HEADER_BYTES + record_len(&path, first_payload)?;
        let (file, allocated) = create_file(&*fs, &path, needed, space.as_deref())?;
        let mut writer = Self {
            fs,
            dir: dir.to_owned(),
            health,
            sync_file,
            number,
            path,
            file,
            allocated,
            end: 0,
            buffer: Vec::new(),
            space,
        };
        match writer.begin(first_payload) {
            Ok(()) => Ok(writer),
            Err(error) => {
                let _ = writer.fs.remove(&writer.path);
                Err(error)
            }
        }
    }

    fn begin(&mut self, first_payload: &[u8]) -> Result<()> {
        let header = FileHeader { magic: MANIFEST_MAGIC, number: self.number, size: 0 };
        let start = LogPosition::new(self.number, FILE_HEADER_BYTES);
        self.buffer = header.encode();
        encode(&mut self.buffer, start, RecordKind::Data, start, first_payload);
        self.write_and_sync()?;
        self.fs.sync_dir(&self.dir).map_err(|e| Error::io("sync the directory", &self.dir, &e))
    }

    /// Makes this the current manifest. A failure before the switch changes nothing. A failure
    /// during it degrades the store, since either manifest may then be current.
    pub fn make_current(&mut self) -> Result<()> {
        let space = self.space.as_deref();
        let temporary = current::write_temporary(&*self.fs, &self.dir, self.number, space)
            .inspect_err(|_| _ = self.fs.remove(&self.path))?;
        current::switch(&*self.fs, &self.dir, &temporary)
            .and_then(|()| self.sync_file.note_manifest(self.number, self.end))
            .map_err(|cause| self.health.degrade(&cause))
    }

    /// Appends a payload and makes it durable. After `Full` nothing has changed, and the caller may
    /// try again later. Any other failure is final.
    pub fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.health.check()?;
        let needed = record_len(&self.path, payload)?;
        match self.allocate_for(needed) {
            Err(error) if error.kind() == ErrorKind::Full => return Err(error),
            allocated => allocated.map_err(|cause| self.health.degrade(&cause))?,
        }
        let at = LogPosition::new(self.number, self.end);
        self.buffer.clear();
        encode(&mut self.buffer, at, RecordKind::Data, at, payload);
        self.write_and_sync()
            .and_then(|()| self.sync_file.note_manifest(self.number, self.end))
            .map_err(|cause| self.health.degrade(&cause))
    }

    /// The number of the manifest.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// The end of the last record.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn allocate_for(&mut self, needed: u64) -> Result<()> {
        if self.allocated - self.end >= needed {
            return Ok(());
        }
        let size = self.end + needed.next_multiple_of(GROWTH_BYTES);
        self.file.allocate(size).map_err(|e| Error::io("allocate", &self.path, &e))?;
        self.allocated = size;
        Ok(())
    }

    fn write_and_sync(&mut self) -> Result<()> {
        let failed = |what: &str, e: &std::io::Error| Error::io(what, &self.path, e);
        self.file.write_all_at(&self.buffer, self.end).map_err(|e| failed("write", &e))?;
        self.file.sync_data().map_err(|e| failed("sync", &e))?;
        self.end += self.buffer.len() as u64;
        Ok(())
    }
}

/// Writes the only manifest of a copy of a store whose other files are complete, and makes it
/// current. The log of the copy is durable up to `log`.
pub fn write_manifest_of_copy(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    number: FileNumber,
    edit: &VersionEdit,
    log: LogPosition,
) -> Result<()> {
    let sync_file = Arc::new(SyncFile::open(&**fs, dir)?);
    // A health of its own: a failure in the copy does not degrade the store.
    let (health, synced, payload) = (Arc::default(), Arc::clone(&sync_file), edit.encode());
    let manifest =
        ManifestWriter::create(Arc::clone(fs), dir, number, &payload, health, synced, None)?;
    sync_file.note_manifest(number, manifest.end())?;
    sync_file.note_log(log)?;
    sync_file.sync()?;
    current::set_current(&**fs, dir, number)
}

/// Creates the file of a manifest with room for `needed` bytes. On a full disk it comes from the
/// reserve.
fn create_file(
    fs: &dyn FileSystem,
    path: &Path,
    needed: u64,
    space: Option<&DiskSpace>,
) -> Result<(Arc<dyn File>, u64)> {
    let size = needed.next_multiple_of(GROWTH_BYTES);
    let created = fs.create(path).map_err(|e| Error::io("create", path, &e)).and_then(|file| {
        let allocated = file.allocate(size).map_err(|e| Error::io("allocate", path, &e));
        allocated.map(|()| (file, size)).inspect_err(|_| _ = fs.remove(path))
    });
    match (created, space) {
        (Err(error), Some(space)) if error.kind() == ErrorKind::Full => {
            space.declare_full();
            let taken = space.reserve.take(ReserveRole::Manifest, needed, path)?;
            taken.ok_or(error)
        }
        (created, _) => created,
    }
}

fn record_len(path: &Path, payload: &[u8]) -> Result<u64> {
    if u32::try_from(payload.len()).is_err() {
        let text = format!("{}: an edit of {} bytes is too large", path.display(), payload.len());
        return Err(Error::new(ErrorKind::TooLarge, text));
    }
    Ok(framed_len(payload.len() as u64))
}

/// Calls `on_record` for every payload of manifest `number`, in order, and returns the end of the
/// last one. Damage before the point up to which the manifest was synced is an error, and so is a
/// damaged first record. After that point an incomplete tail is accepted.
pub fn read_manifest(
    fs: &dyn FileSystem,
    dir: &Path,
    number: FileNumber,
    sync_state: SyncState,
    mut on_record: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut reader = open(fs, dir, number)?;
    reader.file_header(MANIFEST_MAGIC)?;
    // The first record was durable before the manifest could become current.
    let mut synced = FILE_HEADER_BYTES + 1;
    if sync_state.manifest == number {
        synced = synced.max(sync_state.manifest_offset);
    }
    let end = reader.replay(FILE_HEADER_BYTES, u64::MAX, |record, payload| {
        synced = synced.max(record.synced.offset);
        on_record(payload)
    })?;
    let beyond = scan(&mut reader, end)?;
    synced = synced.max(beyond.synced.offset);
    if end < synced {
        let text = format!("no valid record, though the manifest was synced up to {synced}");
        return Err(Error::corrupt(reader.path(), end, text));
    }
    Ok(end)
}

fn open(fs: &dyn FileSystem, dir: &Path, number: FileNumber) -> Result<RecordReader> {
    let path = manifest_path(dir, number);
    if !fs.exists(&path).map_err(|e| Error::io("look for", &path, &e))? {
        return Err(Error::corrupt(&path, 0, "the manifest in force is missing"));
    }
    RecordReader::open(fs, path, number)
}

#[cfg(test)]
mod tests;
