//! Checkpoints and backups: copies of the store as of one moment, made while writes go on.
//!
//! 1. the current version is captured, and the log from where its tables end is pinned;
//! 2. the log is synced. What it holds by now belongs to the copy, and what comes later does not.
//!    This comes after step 1 because the commits that decided what a table leaves out are in the
//!    log by then;
//! 3. tables are linked (checkpoint) or copied (backup) under their numbers, which their checksums
//!    cover. The log is always copied, since the store continues to write to its own;
//! 4. a manifest is written that names the tables and records where each log segment ends, and
//!    then CURRENT;
//! 5. the directory, complete and synced, gets its final name (`target`).
//!
//! A failure leaves the store untouched, except that a failed sync of its log degrades it.
//!
//! Threads: any number of copies may run at once. `close` waits for them, and they end soon after
//! it begins.

mod target;
mod transfer;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::handle::Engine;
use crate::engine::version::{LogState, Version, write_manifest_of_copy};
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::{Cut, Log, LogPosition, SegmentPin};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;

pub(crate) use target::TargetDir;
use transfer::{Transfer, TransferEnd};

/// Receives the progress of a backup: bytes copied so far, and bytes in total. Returning `Break`
/// ends the backup.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// How tables get into a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyMethod {
    /// By a hard link: it takes no time and no space, but needs the same file system.
    Link,
    /// By copying the bytes, which are then read back and checked.
    Copy,
}

/// What a copy consists of. None of it is deleted while this lives.
struct CopyContents<'a> {
    version: Version,
    last_sequence: Sequence,
    /// Where the log begins.
    start: LogPosition,
    /// The segments to copy, with the end of each.
    cuts: Vec<Cut>,
    _pin: SegmentPin<'a>,
}

impl Engine {
    /// Copies the store to `dir` by hard links. `dir` must not exist and must be on the same file
    /// system.
    ///
    /// The time does not depend on the size of the store, and reads and writes go on. The copy
    /// holds every commit that returned before this call, and opens as a store of its own.
    pub fn checkpoint(&self, dir: &Path) -> Result<()> {
        let core = &self.core;
        if core.fs.is_volatile() {
            let message = "a store in memory has no files to link: make a backup instead";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        core.duplicate(&core.fs, dir, CopyMethod::Link, &mut |_, _| ControlFlow::Continue(()))?;
        Ok(())
    }

    /// Copies the store to `dir` of any file system while reads and writes go on. `dir` must not
    /// exist.
    ///
    /// The copy is read back and compared with its checksums. It holds every commit that returned
    /// before this call, and opens as a store of its own. Returns `false` if `progress` ended the
    /// backup; nothing is left of it then.
    pub fn backup(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        self.core.duplicate(fs, dir, CopyMethod::Copy, progress)
    }
}

impl Core {
    fn duplicate(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        tables: CopyMethod,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        let _running = self.copying.read();
        let log = self.writable()?;
        let target = TargetDir::begin(fs, dir, &self.dir)?;
        let contents = self.capture(log)?;
        let mut transfer = Transfer::new(self, &target, contents.bytes(tables), progress);
        match transfer.all(&contents, tables) {
            Err(TransferEnd::Cancelled) => return Ok(false),
            Err(TransferEnd::Failed(error)) => return Err(error),
            Ok(()) => {}
        }
        self.write_manifest(&target, &contents)?;
        target.publish()?;
        Ok(true)
    }

    /// Performs steps 1 and 2.
    fn capture<'a>(&self, log: &'a Log) -> Result<CopyContents<'a>> {
        let guard = self.manifest.lock();
        self.health.check()?;
        let manifest = guard.as_ref();
        let manifest =
            manifest.ok_or_else(|| Error::new(ErrorKind::Closed, "the store has been closed"))?;
        // The version and the start of the log change together, and only under this lock.
        let start = manifest.log.start;
        let version = self.view.load().version.clone();
        let last_sequence = self.sequences.visible();
        let pin = log.pin_from(start);
        drop(guard);
        let end = log.sync_all()?;
        let cuts = cuts_between(start, end, log.segments());
        Ok(CopyContents { version, last_sequence, start, cuts, _pin: pin })
    }

    /// Performs step 4.
    fn write_manifest(&self, target: &TargetDir, contents: &CopyContents<'_>) -> Result<()> {
        let number = self.numbers.allocate();
        let log = contents.log_state(number);
        let synced = log.cuts.last().map(|&(segment, end)| LogPosition::new(segment, end));
        let names = self.trees.iter().map(|tree| tree.config.name.as_str());
        let version = &contents.version;
        let (next_file, last) = (self.numbers.peek(), contents.last_sequence);
        let edit = version.as_edit(names, log, next_file, last, self.hash_seed, self.counted_from);
        write_manifest_of_copy(target.fs(), target.dir(), number, &edit, synced.unwrap_or_default())
    }
}

impl CopyContents<'_> {
    /// Number of bytes to copy.
    fn bytes(&self, tables: CopyMethod) -> u64 {
        let log: u64 = self.cuts.iter().map(|cut| cut.1 - self.first_offset(cut.0)).sum();
        let files = self.version.files();
        match tables {
            CopyMethod::Link => log,
            CopyMethod::Copy => log + files.map(|file| file.meta().size).sum::<u64>(),
        }
    }

    /// Offset of the first byte of a segment that is copied, after its header.
    fn first_offset(&self, segment: u64) -> u64 {
        first_offset(self.start, segment)
    }

    /// The log state for the manifest of the copy. It begins with the first segment of the copy or,
    /// if everything is in tables, at a number that no segment has.
    fn log_state(&self, unused: u64) -> LogState {
        let start = match self.cuts.first() {
            Some(&(segment, _)) if segment == self.start.segment => self.start,
            Some(&(segment, _)) => LogPosition::new(segment, 0),
            None => LogPosition::new(unused, 0),
        };
        LogState { start, cuts: self.cuts.clone() }
    }
}

fn first_offset(start: LogPosition, segment: u64) -> u64 {
    let from_start = if segment == start.segment { start.offset } else { 0 };
    from_start.max(FILE_HEADER_BYTES)
}

/// The segments that hold records of the log between `start` and `end`, with the end of each.
fn cuts_between(start: LogPosition, end: LogPosition, segments: Vec<Cut>) -> Vec<Cut> {
    let within = segments.into_iter().filter(|cut| cut.0 >= start.segment && cut.0 <= end.segment);
    let mut cuts: Vec<Cut> = within
        .map(|(number, cut)| (number, if number == end.segment { end.offset } else { cut }))
        .filter(|&(number, cut)| cut > first_offset(start, number))
        .collect();
    cuts.sort_unstable();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_cut_at_its_ends_and_empty_segments_are_left_out() {
        let at = LogPosition::new;
        let all = || vec![(3, 500), (5, 32), (7, 900), (9, 700), (12, 400)];
        assert_eq!(cuts_between(at(3, 40), at(9, 600), all()), [(3, 500), (7, 900), (9, 600)]);
        assert_eq!(cuts_between(at(3, 500), at(9, 32), all()), [(7, 900)]);
        assert_eq!(cuts_between(at(7, 0), at(7, 64), all()), [(7, 64)]);
        assert_eq!(cuts_between(at(9, 600), at(9, 600), all()), []);
        assert_eq!(cuts_between(at(11, 0), at(12, 400), all()), [(12, 400)]);
    }
}
