//! A limit on open table files, so that a store of any size stays within the process's limit of
//! descriptors.
//!
//! A [`BoundedFile`] may lose its descriptor to another file; its next read opens the file again.
//! The path stays valid meanwhile, since a table is deleted only when nothing refers to it. Beside a
//! writer of another process that does not hold: there, files stay open.
//!
//! Threads: a read holds the descriptor it uses, so closing a file never disturbs a reader.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Weak;

use crate::io::fs::{File, FileSystem};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{ArcSwapOption, Mutex};

/// The open files, in the order they were opened, and their limit.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    fs: Arc<dyn FileSystem>,
    /// `None` if files stay open as long as they are used.
    limit: Option<usize>,
    open: Mutex<VecDeque<Weak<FileSlot>>>,
}

#[derive(Debug)]
struct FileSlot {
    path: PathBuf,
    file: ArcSwapOption<OpenFile>,
    used: AtomicBool,
}

/// A sized wrapper of a trait object, which `ArcSwapOption` needs.
#[derive(Debug)]
struct OpenFile(Arc<dyn File>);

impl OpenFiles {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, limit: usize) -> Self {
        // A file that is gone by name cannot be opened again.
        let limit = if fs.is_beside_writer() { None } else { Some(limit.max(1)) };
        Self { fs, limit, open: Mutex::default() }
    }

    /// A file for reading that counts towards the limit. It is opened now, so that a missing file
    /// is noticed.
    pub(crate) fn file(self: &Arc<Self>, path: PathBuf) -> io::Result<BoundedFile> {
        let slot =
            Arc::new(FileSlot { path, file: ArcSwapOption::empty(), used: AtomicBool::new(true) });
        let file = BoundedFile { files: Arc::clone(self), slot };
        file.handle()?;
        Ok(file)
    }

    /// Opens the file of a slot, and closes others to stay within the limit.
    fn open(&self, slot: &Arc<FileSlot>) -> io::Result<Arc<OpenFile>> {
        let Some(limit) = self.limit else {
            let handle = Arc::new(OpenFile(self.fs.open(&slot.path)?));
            slot.file.store(Some(Arc::clone(&handle)));
            return Ok(handle);
        };
        let file = match self.fs.open(&slot.path) {
            Err(e) if out_of_descriptors(&e) => {
                // The process has used up its descriptors: close half of ours and try again.
                let half = self.open.lock().len() / 2;
                self.close_down_to(half);
                self.fs.open(&slot.path)?
            }
            other => other?,
        };
        let handle = Arc::new(OpenFile(file));
        let mut open = self.open.lock();
        if slot.file.swap(Some(Arc::clone(&handle))).is_none() {
            open.push_back(Arc::downgrade(slot));
        }
        drop(open);
        self.close_down_to(limit);
        Ok(handle)
    }

    /// Closes files until at most `limit` are open, beginning with those not read since the last
    /// check.
    fn close_down_to(&self, limit: usize) {
        let mut open = self.open.lock();
        let mut chances = open.len();
        while open.len() > limit {
            let Some(slot) = open.pop_front() else { return };
            let Some(slot) = slot.upgrade() else { continue };
            if chances > 0 && slot.used.swap(false, Ordering::Relaxed) {
                chances -= 1;
                open.push_back(Arc::downgrade(&slot));
            } else {
                slot.file.store(None);
            }
        }
    }
}

/// Whether the process or the system has used up its descriptors.
pub(crate) fn out_of_descriptors(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// A read-only file whose descriptor may be closed and opened again between reads.
#[derive(Debug)]
pub(crate) struct BoundedFile {
    files: Arc<OpenFiles>,
    slot: Arc<FileSlot>,
}

impl BoundedFile {
    fn handle(&self) -> io::Result<Arc<OpenFile>> {
        self.slot.used.store(true, Ordering::Relaxed);
        match self.slot.file.load_full() {
            Some(handle) => Ok(handle),
            None => self.files.open(&self.slot),
        }
    }
}

impl File for BoundedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.handle()?.0.read_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.handle()?.0.len()
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::fault::{Effect, Fault, FaultFs};
    use crate::io::mem::MemFs;
    use std::path::Path;

    fn files_of(fs: &MemFs, count: u8) {
        for n in 0..count {
            fs.write_file(Path::new(&format!("/{n}")), &[n; 10]).unwrap();
        }
    }

    fn read(file: &BoundedFile) -> u8 {
        let mut buf = [0; 1];
        file.read_exact_at(&mut buf, 5).unwrap();
        buf[0]
    }

    #[test]
    fn no_more_than_the_limit_are_open_and_all_can_be_read() {
        let fs = MemFs::new();
        files_of(&fs, 20);
        let files = Arc::new(OpenFiles::new(Arc::new(fs), 4));
        let all: Vec<_> =
            (0..20).map(|n| files.file(PathBuf::from(format!("/{n}"))).unwrap()).collect();
        for round in 0..3 {
            for (n, file) in (0u8..).zip(&all) {
                assert_eq!(read(file), n, "round {round}");
                assert!(files.open.lock().len() <= 4);
            }
        }
        let open = all.iter().filter(|file| file.slot.file.load().is_some()).count();
        assert_eq!(open, 4);
        drop(all);
        files.close_down_to(0);
        assert!(files.open.lock().is_empty());
    }

    #[test]
    fn when_the_process_is_out_of_descriptors_some_are_given_back() {
        let mem = MemFs::new();
        files_of(&mem, 3);
        let fs = Arc::new(FaultFs::new(Arc::new(mem)));
        let files = Arc::new(OpenFiles::new(fs.clone(), 100));
        let first = files.file("/0".into()).unwrap();
        let second = files.file("/1".into()).unwrap();
        fs.arm(Fault::once(fs.calls() + 1, Effect::Errno(24)));
        let third = files.file("/2".into()).unwrap();
        assert_eq!([read(&first), read(&second), read(&third)], [0, 1, 2]);
    }

    #[test]
    fn a_missing_file_is_noticed_at_once() {
        let files = Arc::new(OpenFiles::new(Arc::new(MemFs::new()), 4));
        assert_eq!(files.file("/none".into()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
