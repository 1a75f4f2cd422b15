//! Where stores live while they are measured: a directory on a disk, removed afterwards.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FsWord, statfs, syncfs};
use tempfile::TempDir;

use crate::Result;

const TMPFS: FsWord = 0x0102_1994;
const RAMFS: FsWord = 0x8584_58f6;

/// A fresh directory under `base`, or under the first usual place that is no tmpfs.
pub(crate) fn create(base: Option<&Path>) -> Result<TempDir> {
    let base = match base {
        Some(base) => {
            fs::create_dir_all(base)?;
            base.to_owned()
        }
        None => default_base(),
    };
    if in_memory(&base) {
        eprintln!("note: the scratch directory is in memory, so synced writes cost nothing");
    }
    Ok(tempfile::Builder::new().prefix("lsmkv-bench-").tempdir_in(base)?)
}

fn default_base() -> PathBuf {
    let usual = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from(".")];
    let on_disk = usual.iter().find(|place| place.is_dir() && !in_memory(place));
    on_disk.cloned().unwrap_or_else(std::env::temp_dir)
}

fn in_memory(place: &Path) -> bool {
    statfs(place).is_ok_and(|found| [TMPFS, RAMFS].contains(&found.f_type))
}

/// Writes back what is dirty on the file system of `place`, so that one measurement does not pay
/// for the writes of the one before.
pub(crate) fn write_back(place: &Path) -> Result<()> {
    Ok(syncfs(fs::File::open(place)?)?)
}

/// Bytes allocated to the files under `dir`; holes don't count.
pub(crate) fn disk_bytes(dir: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total +=
            if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_bytes_count_what_is_allocated_in_all_subdirectories() {
        let scratch = create(None).unwrap();
        let below = scratch.path().join("below");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("full"), vec![1; 100_000]).unwrap();
        fs::File::create(scratch.path().join("hole")).unwrap().set_len(1 << 30).unwrap();
        write_back(scratch.path()).unwrap();
        let bytes = disk_bytes(scratch.path()).unwrap();
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_scratch_directory_goes_away_with_its_handle() {
        let base = tempfile::tempdir().unwrap();
        let scratch = create(Some(base.path())).unwrap();
        let path = scratch.path().to_owned();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }
}
