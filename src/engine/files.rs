//! Names and numbers of the files in a store's directory.
//!
//! One counter numbers logs, tables and manifests alike, so a number never names two files, in
//! this life of the store or any later one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of a log segment, table or manifest.
pub type FileNumber = u64;

/// What a file in the directory is, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `NNNNNN.log`: a log segment.
    Log(FileNumber),
    /// `NNNNNN.table`: a sorted table.
    Table(FileNumber),
    /// `MANIFEST-NNNNNN`: a log of version edits.
    Manifest(FileNumber),
    /// `CURRENT`: names the manifest in force.
    Current,
    /// `LOCK`: carries the directory lock.
    Lock,
    /// `SYNC`: how far log and manifest were synced.
    Sync,
    /// `*.tmp`: left over from an unfinished creation.
    Temporary,
}

impl FileKind {
    /// Reads a file name; `None` for a name that is not ours.
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

/// `dir/NNNNNN.log`.
pub fn log_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{number:06}.log"))
}

/// `dir/NNNNNN.table`.
pub fn table_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{number:06}.table"))
}

/// `dir/MANIFEST-NNNNNN`.
pub fn manifest_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("MANIFEST-{number:06}"))
}

/// `dir/NNNNNN.tmp`: the name a file has until it is complete and synced.
pub fn temporary_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{number:06}.tmp"))
}

/// `dir/CURRENT`.
pub fn current_path(dir: &Path) -> PathBuf {
    dir.join("CURRENT")
}

/// `dir/LOCK`.
pub fn lock_path(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}

/// `dir/SYNC`.
pub fn sync_path(dir: &Path) -> PathBuf {
    dir.join("SYNC")
}

/// Hands out file numbers; never the same one twice.
#[derive(Debug)]
pub struct FileNumbers(AtomicU64);

impl FileNumbers {
    /// The first number handed out will be `next`.
    pub fn starting_at(next: FileNumber) -> Self {
        Self(AtomicU64::new(next))
    }

    /// A number no file has had.
    pub fn allocate(&self) -> FileNumber {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// What the next call of `allocate` returns, as a lower bound to record.
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
    }

    #[test]
    fn foreign_names_are_not_ours() {
        for name in ["", "a.log", "1.log", "+00001.log", "000001.sst", "MANIFEST-x", "notes"] {
            assert_eq!(FileKind::parse(Path::new(name)), None, "{name}");
        }
    }
}
