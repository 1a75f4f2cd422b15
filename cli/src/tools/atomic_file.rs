//! A file that exists complete or not at all. It is written under a temporary name and renamed at
//! the end; until then an older file of that name stays.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file being written. Dropping it before `finish` removes the temporary file.
pub(crate) struct AtomicFile {
    file: File,
    path: PathBuf,
    /// The temporary name; `None` for a pipe or a device, which is written in place.
    unfinished: Option<PathBuf>,
}

impl AtomicFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error| file_failure(path, &error);
        let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        if is_special {
            let file = File::options().write(true).open(path).map_err(failed)?;
            return Ok(Self { file, path: path.to_owned(), unfinished: None });
        }
        // Replaces the target of a link, not the link.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let unfinished = PathBuf::from(name);
        let file =
            File::create_new(&unfinished).map_err(|error| file_failure(&unfinished, &error))?;
        Ok(Self { file, path, unfinished: Some(unfinished) })
    }

    /// The writer for the content.
    pub(crate) fn writer(&self) -> impl Write + '_ {
        &self.file
    }

    /// Syncs the file and gives it its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        let renamed = self.file.sync_all().and_then(|()| std::fs::rename(unfinished, &self.path));
        renamed.map_err(|error| file_failure(&self.path, &error))?;
        self.unfinished = None;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // A file that cannot be removed still has a name that tells what it is.
            let _ = std::fs::remove_file(unfinished);
        }
    }
}

/// A failure that names the file.
pub(crate) fn file_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_once_it_is_finished_and_leaves_nothing_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let file = AtomicFile::create(&path).unwrap();
        file.writer().write_all(b"new").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let file = AtomicFile::create(&path).unwrap();
        file.writer().write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_are_followed_and_devices_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let file = AtomicFile::create(&link).unwrap();
        file.writer().write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let device = AtomicFile::create(Path::new("/dev/null")).unwrap();
        device.writer().write_all(b"gone").unwrap();
        device.finish().unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
}
