//! The file SYNC, which records how far log and manifest are durable.
//!
//! It has two slots in separate sectors. They are written in turn, so that a torn write leaves the
//! other slot intact:
//!
//! ```text
//!  slot at 0 and at 512:
//!  0       4     8            16            24           32                40                48
//!  | magic | crc | generation | log segment | log offset | manifest number | manifest offset |
//! ```
//! `crc` covers the index of the slot (u64) and the bytes after itself. The valid slot with the
//! greater generation counts. The file is not synced after a change. It may lag behind but is never
//! wrong, since it records only what a completed sync made durable. A lock orders the changes,
//! which come from flushes of the log and from the writer of the manifest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::{FileNumber, sync_path};
use crate::engine::wal::position::LogPosition;
use crate::error::{Error, Result};
use crate::io::codec::{Reader, put_u32, put_u64};
use crate::io::fs::{File, FileSystem};
use crate::sync::Mutex;

/// The first bytes of every slot.
const SLOT_MAGIC: u32 = 0x31_4E_59_53;

/// Distance of the slots: a sector, which devices write as a unit.
const SECTOR_BYTES: u64 = 512;

const SLOT_BYTES: usize = 48;

/// What is known to be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncState {
    /// The log is durable up to this position.
    pub log: LogPosition,
    /// The manifest that `manifest_offset` refers to; 0 for none.
    pub manifest: FileNumber,
    /// That manifest is durable up to this offset.
    pub manifest_offset: u64,
}

/// The file SYNC, open for changes.
#[derive(Debug)]
pub struct SyncFile {
    file: Arc<dyn File>,
    path: PathBuf,
    noted: Mutex<SlotRecord>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SlotRecord {
    generation: u64,
    state: SyncState,
}

impl SyncFile {
    /// Opens the file of the store in `dir`, and creates it if there is none.
    pub fn open(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let path = sync_path(dir);
        if !fs.exists(&path).map_err(|e| Error::io("look for", &path, &e))? {
            create(fs, dir, &path)?;
        }
        let file = fs.open_write(&path).map_err(|e| Error::io("open", &path, &e))?;
        let noted = read(&*file, &path)?;
        Ok(Self { file, path, noted: Mutex::new(noted) })
    }

    /// Reads the file of the store in `dir` without changing anything. The result is all zero if
    /// there is no file or no valid slot.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<SyncState> {
        let path = sync_path(dir);
        match fs.open(&path) {
            Ok(file) => Ok(read(&*file, &path)?.state),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(SyncState::default()),
            Err(e) => Err(Error::io("open", &path, &e)),
        }
    }

    /// The last recorded state.
    pub fn state(&self) -> SyncState {
        self.noted.lock().state
    }

    /// Records that the log is durable up to `position`.
    pub fn note_log(&self, position: LogPosition) -> Result<()> {
        self.note(|state| state.log = position)
    }

    /// Records that manifest `number` is durable up to `offset`.
    pub fn note_manifest(&self, number: FileNumber, offset: u64) -> Result<()> {
        self.note(|state| {
            state.manifest = number;
            state.manifest_offset = offset;
        })
    }

    /// Makes the recorded state durable, for a copy of a store that is complete before its first
    /// use.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io("sync", &self.path, &e))
    }

    fn note(&self, change: impl FnOnce(&mut SyncState)) -> Result<()> {
        let mut noted = self.noted.lock();
        change(&mut noted.state);
        noted.generation += 1;
        let slot = noted.generation % 2;
        let bytes = encode(slot, &noted);
        self.file
            .write_all_at(&bytes, slot * SECTOR_BYTES)
            .map_err(|e| Error::io("write", &self.path, &e))
    }
}

fn create(fs: &dyn FileSystem, dir: &Path, path: &Path) -> Result<()> {
    let temporary = dir.join("SYNC.tmp");
    let failed = |what: &str, e: &std::io::Error| Error::io(what, &temporary, e);
    if fs.exists(&temporary).map_err(|e| failed("look for", &e))? {
        fs.remove(&temporary).map_err(|e| failed("remove", &e))?;
    }
    let file = fs.create(&temporary).map_err(|e| failed("create", &e))?;
    file.allocate(2 * SECTOR_BYTES).map_err(|e| failed("allocate", &e))?;
    let bytes = encode(0, &SlotRecord::default());
    file.write_all_at(&bytes, 0).map_err(|e| failed("write", &e))?;
    file.sync_all().map_err(|e| failed("sync", &e))?;
    fs.rename(&temporary, path).map_err(|e| Error::io("rename to", path, &e))?;
    fs.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, &e))
}

fn read(file: &dyn File, path: &Path) -> Result<SlotRecord> {
    let mut best = SlotRecord::default();
    let len = file.len().map_err(|e| Error::io("read the length of", path, &e))?;
    for slot in 0..2 {
        let offset = slot * SECTOR_BYTES;
        if offset + SLOT_BYTES as u64 > len {
            continue;
        }
        let mut bytes = [0; SLOT_BYTES];
        file.read_exact_at(&mut bytes, offset).map_err(|e| Error::io("read", path, &e))?;
        if let Some(noted) = decode(slot, &bytes).filter(|n| n.generation >= best.generation) {
            best = noted;
        }
    }
    Ok(best)
}

fn encode(slot: u64, noted: &SlotRecord) -> Vec<u8> {
    let mut fields = Vec::with_capacity(SLOT_BYTES);
    put_u64(&mut fields, noted.generation);
    put_u64(&mut fields, noted.state.log.segment);
    put_u64(&mut fields, noted.state.log.offset);
    put_u64(&mut fields, noted.state.manifest);
    put_u64(&mut fields, noted.state.manifest_offset);
    let mut out = Vec::with_capacity(SLOT_BYTES);
    put_u32(&mut out, SLOT_MAGIC);
    put_u32(&mut out, checksum(slot, &fields));
    out.extend_from_slice(&fields);
    out
}

fn decode(slot: u64, bytes: &[u8]) -> Option<SlotRecord> {
    let mut reader = Reader::new(bytes);
    let (magic, crc) = (reader.u32()?, reader.u32()?);
    if magic != SLOT_MAGIC || crc != checksum(slot, reader.rest()) {
        return None;
    }
    let generation = reader.u64()?;
    let log = LogPosition::new(reader.u64()?, reader.u64()?);
    let state = SyncState { log, manifest: reader.u64()?, manifest_offset: reader.u64()? };
    Some(SlotRecord { generation, state })
}

fn checksum(slot: u64, fields: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&slot.to_le_bytes());
    hasher.update(fields);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::wal::testing::{TestFs, dir};

    fn noted(fs: &TestFs) -> SyncState {
        SyncFile::read(fs.io(), dir()).unwrap()
    }

    fn at(offset: u64) -> LogPosition {
        LogPosition::new(7, offset)
    }

    #[test]
    fn notes_of_log_and_manifest_stand_side_by_side_and_survive_reopening() {
        let fs = TestFs::new();
        assert_eq!(noted(&fs), SyncState::default(), "there is no file yet");
        let file = SyncFile::open(fs.io(), dir()).unwrap();
        assert_eq!(file.state(), SyncState::default());
        file.note_log(at(100)).unwrap();
        file.note_manifest(9, 50).unwrap();
        let expected = SyncState { log: at(100), manifest: 9, manifest_offset: 50 };
        assert_eq!((noted(&fs), file.state()), (expected, expected));
        let file = SyncFile::open(fs.io(), dir()).unwrap();
        file.note_log(at(200)).unwrap();
        assert_eq!(noted(&fs), SyncState { log: at(200), ..expected });
    }

    #[test]
    fn a_slot_has_the_documented_bytes() {
        let fs = TestFs::new();
        let file = SyncFile::open(fs.io(), dir()).unwrap();
        file.note_log(at(0x0201)).unwrap();
        file.note_manifest(9, 50).unwrap();
        file.note_log(at(0x0301)).unwrap();
        let content = fs.content("SYNC");
        assert_eq!(content.len(), 1024);
        let slot = &content[512..560];
        assert_eq!(&slot[..4], b"SYN1");
        let words: Vec<u64> =
            slot[8..].chunks(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
        assert_eq!(words, [3, 7, 0x0301, 9, 50]);
        let covered = [&1u64.to_le_bytes()[..], &slot[8..]].concat();
        assert_eq!(slot[4..8], crc32fast::hash(&covered).to_le_bytes());
    }

    #[test]
    fn a_damaged_slot_leaves_the_other_one() {
        let fs = TestFs::new();
        let file = SyncFile::open(fs.io(), dir()).unwrap();
        for offset in [100, 200, 300] {
            file.note_log(at(offset)).unwrap();
        }
        for bit in 0..48 * 8 {
            let copy = fs.copy();
            copy.change("SYNC", |data| data[512 + bit / 8] ^= 1 << (bit % 8));
            assert_eq!(noted(&copy).log, at(200), "bit {bit} of the newer slot");
            let copy = fs.copy();
            copy.change("SYNC", |data| data[bit / 8] ^= 1 << (bit % 8));
            assert_eq!(noted(&copy).log, at(300), "bit {bit} of the older slot");
        }
        let copy = fs.copy();
        copy.change("SYNC", |data| data.truncate(530));
        assert_eq!(noted(&copy).log, at(200));
    }

    #[test]
    fn slots_that_changed_places_do_not_count() {
        let fs = TestFs::new();
        let file = SyncFile::open(fs.io(), dir()).unwrap();
        file.note_log(at(100)).unwrap();
        fs.change("SYNC", |data| data.rotate_left(512));
        assert_eq!(noted(&fs), SyncState::default());
    }

    #[test]
    fn a_file_without_a_valid_slot_is_used_again() {
        let fs = TestFs::new();
        fs.replace("SYNC", b"");
        let file = SyncFile::open(fs.io(), dir()).unwrap();
        file.note_log(at(100)).unwrap();
        assert_eq!(noted(&fs).log, at(100));
    }
}
