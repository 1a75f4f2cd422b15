//! Paths of Unix sockets. The address of a socket holds a short path; through the descriptor of its
//! directory one of any length fits.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The longest path that the address of a socket holds, without its end.
pub(crate) const LONGEST: usize = 107;

/// A directory whose sockets have short paths, as long as this value lives.
#[derive(Debug)]
pub(crate) struct NearDirectory(File);

impl NearDirectory {
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        File::open(dir).map(Self)
    }

    /// The short path of a socket in the directory.
    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd())).join(name.as_ref())
    }
}
