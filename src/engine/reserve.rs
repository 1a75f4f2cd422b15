//! The reserve: files of allocated disk space for the time when the disk is full.
//!
//! A reserve file is renamed into its role and written in place. It is never removed to make room,
//! since somebody else could take the room. It lasts across a close and the death of the process.
//! The reserve is filled up again as soon as there is space, before anything else takes it.
//!
//! A slot for a table may hold a smaller file than it should when there is little space: a table of
//! any size helps a merge to go on. A complete reserve has full slots only.
//!
//! Invariant: a file gets the name of its slot once its space is allocated. The content does not
//! matter, and is not synced.
//!
//! Threads: any. The lock is held while files are created, so that no two threads fill up at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::FileKind;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{File, FileSystem};
use crate::options::Options;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a reserve file may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveRole {
    /// The file CURRENT.
    Current,
    /// A manifest.
    Manifest,
    /// A log segment.
    Log,
    /// A small table.
    Table,
}

/// The slots, in the order in which they are filled: first what an open needs, then what a merge
/// needs to free more, then what takes a delete and flushes it: one table per tree, of which there
/// are three. The second log segment comes last: with all others, what is in the log can be flushed,
/// and then its space comes back.
const SLOTS: [(ReserveRole, &str); 8] = [
    (ReserveRole::Current, "RESERVE-current"),
    (ReserveRole::Manifest, "RESERVE-manifest"),
    (ReserveRole::Table, "RESERVE-table-1"),
    (ReserveRole::Log, "RESERVE-log-1"),
    (ReserveRole::Table, "RESERVE-table-2"),
    (ReserveRole::Table, "RESERVE-table-3"),
    (ReserveRole::Table, "RESERVE-table-4"),
    (ReserveRole::Log, "RESERVE-log-2"),
];

const CURRENT_BYTES: u64 = 4096;
const LEAST_MANIFEST_BYTES: u64 = 64 << 10;
const LEAST_TABLE_BYTES: u64 = 32 << 10;
/// Smallest table that a merge or flush writes if there is space for no other.
const LEAST_MERGED_BYTES: u64 = 16 << 10;

/// The reserve of a store.
#[derive(Debug)]
pub struct Reserve {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// Size of a log segment of the reserve; 0 if there is no reserve.
    segment_bytes: u64,
    manifest_bytes: AtomicU64,
    /// Allocated bytes by slot; 0 if there is no file.
    held: Mutex<[u64; SLOTS.len()]>,
    is_complete: AtomicBool,
}

impl Reserve {
    /// The reserve of the store in `dir`, of whose files `names` exist. Changes nothing on disk.
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path, names: &[PathBuf], segment_bytes: u64) -> Self {
        // The size is looked at when the file is used, or when the reserve is next filled.
        let size = |slot| u64::from(names.iter().any(|name| name.as_os_str() == slot));
        let held = SLOTS.map(|(_, slot)| size(slot));
        let manifest_bytes = AtomicU64::new(LEAST_MANIFEST_BYTES.max(segment_bytes / 4));
        let is_complete = AtomicBool::new(segment_bytes == 0);
        let (dir, held) = (dir.to_owned(), Mutex::new(held));
        Self { fs, dir, segment_bytes, manifest_bytes, held, is_complete }
    }

    /// Size of the log segments of a store's reserve: a quarter of the whole, and never more than
    /// other segments. 0 if the store has none.
    pub fn segment_bytes_for(options: &Options, is_volatile: bool) -> u64 {
        if is_volatile || options.read_only || options.disk_reserve == 0 {
            return 0;
        }
        (options.disk_reserve / 4).min(options.log_segment_bytes).max(4096)
    }

    /// Size of a log segment of the reserve; 0 if there is no reserve.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Size of a table of the reserve.
    pub fn table_bytes(&self) -> u64 {
        (self.segment_bytes / 2).max(LEAST_TABLE_BYTES)
    }

    /// Whether every slot is filled. Always so for a store without a reserve.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Whether a file for `role` is there.
    pub fn has(&self, role: ReserveRole) -> bool {
        let held = self.held.lock();
        SLOTS.iter().zip(&*held).any(|((of, _), held)| *of == role && *held > 0)
    }

    /// Whether every file for `role` is there.
    pub fn has_all(&self, role: ReserveRole) -> bool {
        let held = self.held.lock();
        SLOTS.iter().zip(&*held).all(|((of, _), held)| *of != role || *held > 0)
    }

    /// Says how large a manifest may become. Takes effect when the slot is next filled.
    pub fn expect_manifest(&self, first_record: u64) {
        // In steps, so that it does not change with every open.
        let wanted = first_record.saturating_mul(2).checked_next_multiple_of(LEAST_MANIFEST_BYTES);
        let wanted = wanted.unwrap_or(first_record);
        self.manifest_bytes.fetch_max(wanted, Ordering::Relaxed);
    }

    /// Fills the slots. Fails with `Full` if there is too little space for one of them.
    pub fn refill(&self) -> Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        let mut held = self.held.lock();
        let mut filled = Ok(());
        for ((role, name), held) in SLOTS.iter().zip(held.iter_mut()) {
            let wanted = self.size(*role);
            if *held >= wanted {
                continue;
            }
            let full = match *held > 0 {
                true => self.grow(name, wanted, held),
                false => self.fill(*role, name, held),
            };
            if full.is_err() {
                filled = full;
                break;
            }
        }
        self.is_complete.store(filled.is_ok(), Ordering::Release);
        filled
    }

    fn size(&self, role: ReserveRole) -> u64 {
        match role {
            ReserveRole::Current => CURRENT_BYTES,
            ReserveRole::Manifest => self.manifest_bytes.load(Ordering::Relaxed),
            ReserveRole::Log => self.segment_bytes,
            ReserveRole::Table => self.table_bytes(),
        }
    }

    /// Creates the file of a slot, for a table also a smaller one than wanted.
    fn fill(&self, role: ReserveRole, name: &str, held: &mut u64) -> Result<()> {
        let wanted = self.size(role);
        let least = if role == ReserveRole::Table { LEAST_TABLE_BYTES.min(wanted) } else { wanted };
        let mut size = wanted;
        loop {
            let failure = match self.create(name, size) {
                Ok(()) => {
                    *held = size;
                    return if size < wanted { self.grow(name, wanted, held) } else { Ok(()) };
                }
                Err(error) => error,
            };
            if failure.kind() != ErrorKind::Full || size / 2 < least {
                return Err(failure);
            }
            size /= 2;
        }
    }

    fn create(&self, name: &str, size: u64) -> Result<()> {
        let (path, temporary) = (self.dir.join(name), self.dir.join(format!("{name}.tmp")));
        let failed = |what: &str, e: &std::io::Error| Error::io(what, &temporary, e);
        let created = match self.fs.create(&temporary) {
            // It could not be removed before.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                self.fs.remove(&temporary).and_then(|()| self.fs.create(&temporary))
            }
            created => created,
        };
        let file = created.map_err(|e| failed("create", &e))?;
        let filled = file
            .allocate(size)
            .map_err(|e| failed("allocate", &e))
            .and_then(|()| self.fs.rename(&temporary, &path).map_err(|e| failed("rename", &e)));
        if filled.is_err() {
            let _ = self.fs.remove(&temporary);
        }
        filled
    }

    /// Enlarges the file of a slot. A copy of the directory may also have left out its space.
    fn grow(&self, name: &str, wanted: u64, held: &mut u64) -> Result<()> {
        let path = self.dir.join(name);
        let failed = |what: &str, e: &std::io::Error| Error::io(what, &path, e);
        let file = self.fs.open_write(&path).map_err(|e| failed("open", &e))?;
        *held = file.len().map_err(|e| failed("read the length of", &e))?.max(1);
        file.allocate(wanted).map_err(|e| failed("allocate", &e))?;
        *held = wanted;
        Ok(())
    }

    /// Renames a file for `role` with room for `needed` bytes to `path`, and returns it with its
    /// size; `None` if there is none. The content is arbitrary for tables and zeros otherwise.
    pub fn take(
        &self,
        role: ReserveRole,
        needed: u64,
        path: &Path,
    ) -> Result<Option<(Arc<dyn File>, u64)>> {
        self.take_but(0, role, needed, path)
    }

    /// Takes a file unless at most `spared` of its role are left.
    fn take_but(
        &self,
        spared: usize,
        role: ReserveRole,
        needed: u64,
        path: &Path,
    ) -> Result<Option<(Arc<dyn File>, u64)>> {
        let mut held = self.held.lock();
        let slots = SLOTS.iter().zip(held.iter_mut());
        let mut slots: Vec<_> = slots.filter(|((of, _), held)| *of == role && **held > 0).collect();
        if slots.len() <= spared {
            return Ok(None);
        }
        for ((_, name), held) in &mut slots {
            let from = self.dir.join(name);
            let Some((file, size)) = self.open(&from, self.size(role))? else {
                **held = 0;
                self.is_complete.store(false, Ordering::Release);
                continue;
            };
            if size < needed {
                continue;
            }
            self.fs.rename(&from, path).map_err(|e| Error::io("rename to", path, &e))?;
            **held = 0;
            self.is_complete.store(false, Ordering::Release);
            return Ok(Some((file, size)));
        }
        Ok(None)
    }

    /// Opens a reserve file; `None` if somebody has removed it. Its space is allocated again, since
    /// a copy of the directory may have left it out.
    fn open(&self, path: &Path, size: u64) -> Result<Option<(Arc<dyn File>, u64)>> {
        let failed = |what: &str, e: &std::io::Error| Error::io(what, path, e);
        let file = match self.fs.open_write(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|e| failed("open", &e))?,
        };
        let len = file.len().map_err(|e| failed("read the length of", &e))?;
        file.allocate(size.min(len)).map_err(|e| failed("allocate", &e))?;
        Ok(Some((file, len)))
    }

    /// Creates a table file at `path` with space for `wanted` bytes, or takes one of the reserve.
    /// Returns it with its size. A flush leaves one file to merges: without one they could not free
    /// the space for the next flush. A merge takes whatever there is.
    pub fn create_table(
        &self,
        path: &Path,
        wanted: u64,
        for_flush: bool,
    ) -> Result<(Arc<dyn File>, u64)> {
        let failure = match self.new_table(path, wanted) {
            Err(error) if error.kind() == ErrorKind::Full => error,
            other => return other,
        };
        let spared = usize::from(for_flush);
        if let Some(taken) = self.take_but(spared, ReserveRole::Table, 1, path)? {
            return Ok(taken);
        }
        let mut smaller = wanted / 2;
        while smaller >= LEAST_MERGED_BYTES {
            match self.new_table(path, smaller) {
                Err(error) if error.kind() == ErrorKind::Full => smaller /= 2,
                other => return other,
            }
        }
        if for_flush {
            return Err(failure);
        }
        self.take(ReserveRole::Log, 1, path)?.ok_or(failure)
    }

    fn new_table(&self, path: &Path, size: u64) -> Result<(Arc<dyn File>, u64)> {
        let file = self.fs.create(path).map_err(|e| Error::io("create", path, &e))?;
        let allocated = file.allocate(size).map_err(|e| Error::io("allocate", path, &e));
        allocated.map(|()| (file, size)).inspect_err(|_| _ = self.fs.remove(path))
    }

    /// Removes the files of an earlier reserve if the store is to have none.
    pub fn remove_unwanted(&self, names: &[PathBuf]) {
        if self.segment_bytes > 0 {
            return;
        }
        for name in names.iter().filter(|name| FileKind::parse(name) == Some(FileKind::Reserve)) {
            let _ = self.fs.remove(&self.dir.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::mem::MemFs;

    const DIR: &str = "/";

    fn reserve(fs: &MemFs) -> Reserve {
        let names = fs.list(Path::new(DIR)).unwrap();
        Reserve::new(Arc::new(fs.clone()), Path::new(DIR), &names, 256 << 10)
    }

    #[test]
    fn slots_are_filled_taken_and_found_again() {
        let fs = MemFs::new();
        let first = reserve(&fs);
        assert!(!first.is_complete() && !first.has(ReserveRole::Log));
        first.refill().unwrap();
        assert!(first.is_complete());
        let segment = Path::new("/000001.log");
        let (_, size) = first.take(ReserveRole::Log, 1, segment).unwrap().unwrap();
        assert_eq!((size, fs.exists(segment).unwrap()), (256 << 10, true));
        assert!(!first.is_complete() && first.has(ReserveRole::Log));
        let second = reserve(&fs);
        assert!(!second.is_complete());
        assert!(second.take(ReserveRole::Log, size, Path::new("/000002.log")).unwrap().is_some());
        assert!(second.take(ReserveRole::Log, 1, Path::new("/000003.log")).unwrap().is_none());
        assert!(second.take(ReserveRole::Table, 1 << 30, segment).unwrap().is_none(), "too small");
        second.refill().unwrap();
        let third = reserve(&fs);
        third.refill().unwrap();
        assert!(third.is_complete());
        fs.remove(Path::new("/RESERVE-manifest")).unwrap();
        let manifest = Path::new("/MANIFEST-000009");
        assert!(third.take(ReserveRole::Manifest, 1, manifest).unwrap().is_none());
        assert!(!third.is_complete(), "somebody has removed it");
        third.refill().unwrap();
        assert!(third.take(ReserveRole::Manifest, 1, manifest).unwrap().is_some());
    }

    #[test]
    fn a_full_disk_leaves_no_half_slot_behind() {
        for capacity in (0..900u64 << 10).step_by(10_007) {
            let fs = MemFs::with_capacity(capacity);
            let part = reserve(&fs);
            let filled = part.refill();
            assert_eq!(filled.is_ok(), part.is_complete());
            assert!(filled.is_ok() || filled.unwrap_err().kind() == ErrorKind::Full);
            let names = fs.list(Path::new(DIR)).unwrap();
            assert!(names.iter().all(|name| FileKind::parse(name) == Some(FileKind::Reserve)));
            // A table comes from the disk while there is space, and from the reserve after that.
            let has_any = part.has(ReserveRole::Table) || part.has(ReserveRole::Log);
            let before = (fs.free_bytes(Path::new(DIR)), has_any);
            let wanted = part.table_bytes();
            let table = part.create_table(Path::new("/000001.table"), wanted, false);
            let possible = before.0.unwrap() >= LEAST_MERGED_BYTES || before.1;
            assert_eq!(table.is_ok(), possible, "{capacity} bytes");
            // A flush leaves the last one to merges.
            let filled_tables = usize::from(part.has(ReserveRole::Table));
            fs.set_capacity(fs.bytes_in_use());
            let flushed = (2..9)
                .map(|n| part.create_table(Path::new(&format!("/{n:06}.table")), wanted, true));
            assert!(flushed.filter(Result::is_ok).count() < 4);
            assert!(part.has(ReserveRole::Table) || filled_tables == 0, "{capacity} bytes");
        }
    }

    /// A flush that wanted a table of the usual size, and no smaller one, failed beside enough space
    /// for what it had to write, and then nothing deleted was ever freed.
    #[test]
    fn a_flush_takes_what_space_there_is() {
        let fs = MemFs::new();
        let reserve = reserve(&fs);
        reserve.refill().unwrap();
        let wanted = reserve.table_bytes();
        fs.set_capacity(fs.bytes_in_use() + wanted - 1);
        let tables =
            (1..).map(|n| reserve.create_table(Path::new(&format!("/{n:06}.table")), wanted, true));
        let sizes: Vec<u64> = tables.map_while(|table| table.ok().map(|(_, size)| size)).collect();
        assert_eq!(sizes.iter().filter(|size| **size == wanted).count(), 3, "one is for merges");
        assert!(sizes.len() > 3 && reserve.has(ReserveRole::Table), "{sizes:?}");
    }

    /// Deletes can be written to the log once there is a segment, and flushed once there is a table
    /// for each tree and one for a merge; a second segment comes after these.
    #[test]
    fn what_flushes_a_segment_comes_before_another_segment() {
        let mut seen = 0;
        for capacity in (0..1300u64 << 10).step_by(10_007) {
            let part = reserve(&MemFs::with_capacity(capacity));
            let _ = part.refill();
            let count = |role| {
                let held = part.held.lock();
                SLOTS.iter().zip(&*held).filter(|((of, _), held)| *of == role && **held > 0).count()
            };
            if count(ReserveRole::Log) == 2 {
                assert_eq!(count(ReserveRole::Table), 4, "{capacity} bytes");
                seen += 1;
            }
        }
        assert!(seen > 0);
    }

    #[test]
    fn a_store_that_wants_no_reserve_removes_it() {
        let fs = MemFs::new();
        reserve(&fs).refill().unwrap();
        let names = fs.list(Path::new(DIR)).unwrap();
        let none = Reserve::new(Arc::new(fs.clone()), Path::new(DIR), &names, 0);
        none.remove_unwanted(&names);
        none.refill().unwrap();
        assert!(none.is_complete() && fs.list(Path::new(DIR)).unwrap().is_empty());
    }
}
