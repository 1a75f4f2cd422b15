//! The file CURRENT, which names the current manifest.
//!
//! It has three lines of text, for example:
//!
//! ```text
//! lsmkv format 2
//! manifest 17
//! crc 1f2e3d4c
//! ```
//! The crc, in hexadecimal, covers the bytes before its line. The first and the last line keep
//! their form in every later format, so that this version can tell a newer store from a damaged
//! one. The file is replaced as a whole: it is written under a temporary name, synced and renamed,
//! and then the directory is synced.

use std::path::{Path, PathBuf};

use crate::engine::files::{FileNumber, current_path};
use crate::engine::reserve::ReserveRole;
use crate::engine::space::DiskSpace;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{File, FileSystem};

/// The format of the stores that this code writes, and the newest that it reads. Stores of format 1
/// have no features; the first writable open makes them stores of this one.
const FORMAT: u32 = 2;

/// Largest size of the file in any format.
const MAX_BYTES: u64 = 4096;

/// Makes `number` the current manifest.
pub fn set_current(fs: &dyn FileSystem, dir: &Path, number: FileNumber) -> Result<()> {
    let temporary = write_temporary(fs, dir, number, None)?;
    switch(fs, dir, &temporary)
}

/// Writes and syncs the new content under a temporary name. A failure changes nothing. With
/// `space`, a full disk is met from the reserve.
pub fn write_temporary(
    fs: &dyn FileSystem,
    dir: &Path,
    number: FileNumber,
    space: Option<&DiskSpace>,
) -> Result<PathBuf> {
    let path = dir.join("CURRENT.tmp");
    let failed = |what: &str, e: &std::io::Error| Error::io(what, &path, e);
    if fs.exists(&path).map_err(|e| failed("look for", &e))? {
        fs.remove(&path).map_err(|e| failed("remove", &e))?;
    }
    let content = render(FORMAT, number);
    let fill = |file: &dyn File, trim: bool| {
        let len = content.len() as u64;
        file.write_all_at(content.as_bytes(), 0)
            .and_then(|()| if trim { file.set_len(len) } else { Ok(()) })
            .map_err(|e| failed("write", &e))
            .and_then(|()| file.sync_all().map_err(|e| failed("sync", &e)))
            .inspect_err(|_| _ = fs.remove(&path))
    };
    let created = fs.create(&path).map_err(|e| failed("create", &e));
    match (created.and_then(|file| fill(&*file, false)), space) {
        (Err(error), Some(space)) if error.kind() == ErrorKind::Full => {
            let taken = space.reserve.take(ReserveRole::Current, content.len() as u64, &path)?;
            taken.map_or(Err(error), |(file, _)| fill(&*file, true))?;
        }
        (written, _) => written?,
    }
    Ok(path)
}

/// Renames the file that [`write_temporary`] wrote. After a failure either manifest may be current.
pub fn switch(fs: &dyn FileSystem, dir: &Path, temporary: &Path) -> Result<()> {
    let path = current_path(dir);
    fs.rename(temporary, &path).map_err(|e| Error::io("rename to", &path, &e))?;
    fs.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, &e))
}

/// The number of the current manifest; `None` if there is no file CURRENT.
pub fn read_current(fs: &dyn FileSystem, dir: &Path) -> Result<Option<FileNumber>> {
    let path = current_path(dir);
    let file = match fs.open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", &path, &e)),
    };
    let len = file.len().map_err(|e| Error::io("read the length of", &path, &e))?;
    if len > MAX_BYTES {
        return Err(Error::corrupt(&path, 0, format!("{len} bytes are too many for this file")));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", &path, &e))?;
    parse(&path, &bytes).map(Some)
}

fn render(version: u32, number: FileNumber) -> String {
    let covered = format!("lsmkv format {version}\nmanifest {number}\n");
    let crc = crc32fast::hash(covered.as_bytes());
    format!("{covered}crc {crc:08x}\n")
}

fn parse(path: &Path, bytes: &[u8]) -> Result<FileNumber> {
    let damaged = |what: &str| Error::corrupt(path, 0, what);
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
    let covered = text
        .len()
        .checked_sub("crc 00000000\n".len())
        .and_then(|at| text.split_at_checked(at))
        .filter(|(covered, last)| {
            *last == format!("crc {:08x}\n", crc32fast::hash(covered.as_bytes()))
        })
        .map(|(covered, _)| covered)
        .ok_or_else(|| damaged("the text does not match its checksum"))?;
    let (first, rest) = covered.split_once('\n').ok_or_else(|| damaged("a line is missing"))?;
    let version: u32 = first
        .strip_prefix("lsmkv format ")
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| damaged("the first line names no format"))?;
    if !(1..=FORMAT).contains(&version) {
        let text = format!("the store has format {version}, this library reads up to {FORMAT}");
        return Err(Error::new(ErrorKind::Incompatible, text));
    }
    rest.strip_prefix("manifest ")
        .and_then(|rest| rest.strip_suffix('\n'))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| damaged("the second line names no manifest"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::wal::testing::{TestFs, dir};

    fn kind_of(fs: &TestFs, content: &[u8]) -> ErrorKind {
        fs.replace("CURRENT", content);
        read_current(fs.io(), dir()).unwrap_err().kind()
    }

    #[test]
    fn the_last_manifest_set_is_the_one_in_force() {
        let fs = TestFs::new();
        assert_eq!(read_current(fs.io(), dir()).unwrap(), None);
        set_current(fs.io(), dir(), 7).unwrap();
        assert_eq!(read_current(fs.io(), dir()).unwrap(), Some(7));
        set_current(fs.io(), dir(), 12_345_678).unwrap();
        assert_eq!(read_current(fs.io(), dir()).unwrap(), Some(12_345_678));
    }

    #[test]
    fn the_content_is_the_documented_text() {
        let fs = TestFs::new();
        set_current(fs.io(), dir(), 17).unwrap();
        let crc = crc32fast::hash(b"lsmkv format 2\nmanifest 17\n");
        let expected = format!("lsmkv format 2\nmanifest 17\ncrc {crc:08x}\n");
        assert_eq!(fs.content("CURRENT"), expected.into_bytes());
    }

    #[test]
    fn every_flipped_bit_and_truncation_is_corrupt() {
        let fs = TestFs::new();
        let good = render(1, 17).into_bytes();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(kind_of(&fs, &bad), ErrorKind::Corrupt, "bit {bit}");
        }
        for len in 0..good.len() {
            assert_eq!(kind_of(&fs, &good[..len]), ErrorKind::Corrupt, "{len} bytes");
        }
        assert_eq!(kind_of(&fs, &vec![b'x'; 5000]), ErrorKind::Corrupt);
    }

    #[test]
    fn a_newer_format_is_incompatible_whatever_else_it_says() {
        let fs = TestFs::new();
        let covered = "lsmkv format 3\nsomething new\nand more\n";
        let text = format!("{covered}crc {:08x}\n", crc32fast::hash(covered.as_bytes()));
        assert_eq!(kind_of(&fs, text.as_bytes()), ErrorKind::Incompatible);
    }

    #[test]
    fn a_left_over_temporary_does_not_block_the_next_switch() {
        let fs = TestFs::new();
        fs.replace("CURRENT.tmp", b"half");
        set_current(fs.io(), dir(), 3).unwrap();
        assert_eq!(read_current(fs.io(), dir()).unwrap(), Some(3));
    }
}
