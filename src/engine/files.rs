//! Names and numbers of the files in a store's directory.
//!
//! One counter numbers log segments, tables and manifests. So a number is never used for two files,
//! not even after the store was closed and opened again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of a log segment, table or manifest.
pub type FileNumber = u64;

/// What a file in the directory is, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `NNNNNN.log`: a log segment.
    Log(FileNumber),
    /// `NNNNNN.table`: a sorted table.
    Table(FileNumber),
    /// `MANIFEST-NNNNNN`: a manifest, which is a log of version edits.
    Manifest(FileNumber),
    /// `CURRENT`: names the current manifest.
    Current,
    /// `LOCK`: carries the directory lock.
    Lock,
    /// `SYNC`: records how far log and manifest were synced.
    Sync,
    /// `RESERVE-*`: space for a full disk.
    Reserve,
    /// `*.tmp`: a file that was not completed.
    Temporary,
}

impl FileKind {
    /// Parses a file name; `None` if no file of a store has such a name.
    pub fn parse(name: &Path) -> Option<Self> {
        let name = name.to_str()?;
        match name {
            "CURRENT" => return Some(Self::Current),
            "LOCK" => return Some(Self::Lock),
            "SYNC" => return Some(Self::Sync),
            _ => {}
        }
        if name.ends_with(".tmp") {
            return Some(Self::Temporary);
        }
        if name.starts_with("RESERVE-") {
            return Some(Self::Reserve);
        }
        if let Some(number) = name.strip_prefix("MANIFEST-") {
            return parse_number(number).map(Self::Manifest);
        }
        let (number, extension) = name.split_once('.')?;
        match extension {
            "log" => parse_number(number).map(Self::Log),
            "table" => parse_number(number).map(Self::Table),
            _ => None,
        }
    }
}

fn parse_number(digits: &str) -> Option<FileNumber> {
    let plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// The path of a log segment: `dir/NNNNNN.log`.
pub fn log_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{number:06}.log"))
}

/// The path of a table: `dir/NNNNNN.table`.
pub fn table_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{number:06}.table"))
}

/// The path of a manifest: `dir/MANIFEST-NNNNNN`.
pub fn manifest_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("MANIFEST-{number:06}"))
}

/// The path of a file until it is complete and synced: `dir/NNNNNN.tmp`.
pub fn temporary_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{number:06}.tmp"))
}

/// The path of the file that names the current manifest: `dir/CURRENT`.
pub fn current_path(dir: &Path) -> PathBuf {
    dir.join("CURRENT")
}

/// The path of the lock file: `dir/LOCK`.
pub fn lock_path(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}

/// The path of the sync file: `dir/SYNC`.
pub fn sync_path(dir: &Path) -> PathBuf {
    dir.join("SYNC")
}

/// Allocates file numbers, never the same one twice.
#[derive(Debug)]
pub struct FileNumbers(AtomicU64);

impl FileNumbers {
    /// An allocator whose first number is `next`.
    pub fn starting_at(next: FileNumber) -> Self {
        Self(AtomicU64::new(next))
    }

    /// Allocates a number that no file has had.
    pub fn allocate(&self) -> FileNumber {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The number that `allocate` returns next. Recorded as a lower bound for later numbers.
    pub fn peek(&self) -> FileNumber {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_what_it_is() {
        let dir = Path::new("/d");
        let name = |p: PathBuf| FileKind::parse(Path::new(p.file_name().unwrap()));
        assert_eq!(name(log_path(dir, 7)), Some(FileKind::Log(7)));
        assert_eq!(name(table_path(dir, 12_345_678)), Some(FileKind::Table(12_345_678)));
        assert_eq!(name(manifest_path(dir, 1)), Some(FileKind::Manifest(1)));
        assert_eq!(name(temporary_path(dir, 9)), Some(FileKind::Temporary));
        assert_eq!(name(current_path(dir)), Some(FileKind::Current));
        assert_eq!(name(lock_path(dir)), Some(FileKind::Lock));
        assert_eq!(name(sync_path(dir)), Some(FileKind::Sync));
        assert_eq!(name(dir.join("RESERVE-log-1")), Some(FileKind::Reserve));
        assert_eq!(name(dir.join("RESERVE-log-1.tmp")), Some(FileKind::Temporary));
    }

    #[test]
    fn foreign_names_are_not_ours() {
        for name in ["", "a.log", "1.log", "+00001.log", "000001.sst", "MANIFEST-x", "notes"] {
            assert_eq!(FileKind::parse(Path::new(name)), None, "{name}");
        }
    }
}
