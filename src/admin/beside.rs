//! A store that is read while another process, or another handle, has it open.
//!
//! Such a store takes no lock and changes nothing. It sees one moment, until it is refreshed. The
//! writer goes on while files are read, so what was read may not fit together, for instance when the
//! log has moved on to another segment. Then everything is read again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::{BesideFs, FileSystem};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::txn::Db;
use crate::types::KeyRange;

/// The minimum number of attempts, and their minimum total time, before an error counts.
const MIN_ATTEMPTS: u32 = 20;
const RETRY_TIME: Duration = Duration::from_secs(5);
/// The maximum pause between two attempts. The first pauses are short, since a busy store changes
/// quickly.
const MAX_PAUSE: Duration = Duration::from_millis(50);

impl Db {
    /// Moves on to what the writer has committed by now, if this store was opened beside one. All
    /// handles of the store see it from then on. Snapshots, iterators and running calls keep their
    /// moment. Every write that had returned before this call is seen, whatever its sync mode.
    ///
    /// A store that holds its lock has nothing to do: nobody else writes to it.
    ///
    /// ```
    /// # use lsmkv::{Db, Options};
    /// # let dir = tempfile::tempdir()?;
    /// let writer = Db::open(dir.path(), Options::default())?;
    /// let reader = Db::open(dir.path(), Options { read_only: true, ..Options::default() })?;
    /// writer.set(b"k", b"v")?;
    /// assert_eq!(reader.get(b"k")?, None);
    /// reader.refresh()?;
    /// assert_eq!(reader.get(b"k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refresh(&self) -> Result<()> {
        retried(|| self.store().refresh())
    }
}

/// Opens a store without its lock, by `open` on a file system that has none.
pub(super) fn opened(
    fs: &Arc<dyn FileSystem>,
    options: &Options,
    open: impl Fn(Arc<dyn FileSystem>, Options) -> Result<Db>,
) -> Result<Db> {
    let options = Options { read_only: true, create_if_missing: false, ..options.clone() };
    retried(|| {
        let db = open(Arc::new(BesideFs::new(Arc::clone(fs))), options.clone())?;
        // Reads the first key: the replayed log is readable.
        drop(db.iter(KeyRange::default())?);
        Ok(db)
    })
}

/// Repeats what fails because a writer changes files meanwhile.
fn retried<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let mut attempts = 0;
    loop {
        attempts += 1;
        match attempt() {
            Err(error) if may_pass(&error) => {
                if attempts >= MIN_ATTEMPTS && begun.elapsed() > RETRY_TIME {
                    return Err(error);
                }
                std::thread::sleep((Duration::from_millis(1) * attempts).min(MAX_PAUSE));
            }
            other => return other,
        }
    }
}

/// Whether an error may come from a file that the writer has changed or removed meanwhile.
fn may_pass(error: &Error) -> bool {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    let is_forbidden = matches!(error.os_errno(), EPERM | EACCES);
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) && !is_forbidden
}
