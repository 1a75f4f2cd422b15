//! A copy of the store as of one moment, in a directory of its own, made while writes go on.
//!
//! 1. the tables of the present version are taken, and the log is kept from where they end;
//! 2. the log is synced: what is in it by now belongs to the copy, what comes later does not. In
//!    this order, since what a table left out was decided by commits that are in the log by then;
//! 3. tables are linked (a checkpoint) or copied (a backup), under their numbers, which their
//!    checksums cover. The log is copied, never linked: the store goes on writing to its own;
//! 4. a manifest that names them, with a cut for every segment of the log, and CURRENT;
//! 5. the directory, complete and synced, gets its name (`target`).
//!
//! Nothing that fails here touches the store, but for the sync of its log.
//!
//! Threads: any number of copies run at once. `close` waits for them, and they end soon after it
//! has begun.

mod target;
mod transfer;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::install::snapshot_edit;
use crate::engine::version::current::set_current;
use crate::engine::version::{LogState, ManifestWriter};
use crate::engine::view::Version;
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::{Cut, KeptLog, Log, LogPosition, SyncFile};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;

pub(crate) use target::Target;
use transfer::{Stop, Transfer};

/// What is told of a backup while it runs: bytes copied, and bytes in all. Breaking ends it.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// How tables get into the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tables {
    /// A second name for the same file: no time, no space, the same file system.
    Link,
    /// Byte by byte, then read back and checked.
    Copy,
}

/// What a copy consists of. Nothing of it vanishes as long as this lives.
struct Contents<'a> {
    version: Version,
    last_sequence: Sequence,
    /// Where the log begins, and the segments of which a part is copied.
    start: LogPosition,
    cuts: Vec<Cut>,
    _kept: KeptLog<'a>,
}

impl Core {
    /// A copy in `dir`, which must not exist, on the store's own file system, by hard links.
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<()> {
        if self.fs.is_volatile() {
            let message = "a store in memory has no files to link: make a backup instead";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.duplicate(&self.fs, dir, Tables::Link, &mut |_, _| ControlFlow::Continue(()))?;
        Ok(())
    }

    /// A copy in `dir` of any file system; `false` if `progress` ended it.
    pub(crate) fn backup(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        self.duplicate(fs, dir, Tables::Copy, progress)
    }

    fn duplicate(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        tables: Tables,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        let _running = self.copying.read();
        let log = self.writable()?;
        let target = Target::begin(fs, dir, &self.dir)?;
        let contents = self.capture(log)?;
        let mut transfer = Transfer::new(self, &target, contents.bytes(tables), progress);
        match transfer.all(&contents, tables) {
            Err(Stop::Cancelled) => return Ok(false),
            Err(Stop::Failed(error)) => return Err(error),
            Ok(()) => {}
        }
        self.describe(&target, &contents)?;
        target.publish()?;
        Ok(true)
    }

    /// Steps 1 and 2.
    fn capture<'a>(&self, log: &'a Log) -> Result<Contents<'a>> {
        let guard = self.manifest.lock();
        self.health.check()?;
        let manifest = guard.as_ref();
        let manifest =
            manifest.ok_or_else(|| Error::new(ErrorKind::Closed, "the store has been closed"))?;
        // Version and start of the log change together, and only under this lock.
        let start = manifest.log.start;
        let version = self.view.load().version.clone();
        let last_sequence = self.sequences.visible();
        let kept = log.keep_from(start);
        drop(guard);
        let end = log.sync_all()?;
        let cuts = cuts_between(start, end, log.segments());
        Ok(Contents { version, last_sequence, start, cuts, _kept: kept })
    }

    /// Step 4.
    fn describe(&self, target: &Target, contents: &Contents<'_>) -> Result<()> {
        let (fs, dir) = (&**target.fs(), target.dir());
        let sync_file = Arc::new(SyncFile::open(fs, dir)?);
        let number = self.numbers.allocate();
        let log = contents.log_state(number);
        let synced = log.cuts.last().map(|&(segment, end)| LogPosition::new(segment, end));
        let edit = snapshot_edit(
            self.trees.iter().map(|tree| tree.config.name.as_str()),
            &contents.version,
            log,
            self.numbers.peek(),
            contents.last_sequence,
        );
        let manifest = ManifestWriter::create(
            Arc::clone(target.fs()),
            dir,
            number,
            &edit.encode(),
            // Its own: what happens there is no fault of the store.
            Arc::default(),
            Arc::clone(&sync_file),
        )?;
        sync_file.note_manifest(number, manifest.end())?;
        sync_file.note_log(synced.unwrap_or_default())?;
        sync_file.sync()?;
        set_current(fs, dir, number)
    }
}

impl Contents<'_> {
    /// How much will be copied.
    fn bytes(&self, tables: Tables) -> u64 {
        let log: u64 = self.cuts.iter().map(|cut| cut.1 - self.first_offset(cut.0)).sum();
        let files = self.version.trees.iter().flat_map(|levels| levels.files());
        match tables {
            Tables::Link => log,
            Tables::Copy => log + files.map(|file| file.meta().size).sum::<u64>(),
        }
    }

    /// The first byte of a segment that is copied, after its header.
    fn first_offset(&self, segment: u64) -> u64 {
        first_offset(self.start, segment)
    }

    /// What the copy's manifest says of the log. It begins with the first segment that is there,
    /// or, if all is in tables, at a number that no segment has.
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

/// Where each segment ends that holds records of the log from `start` to `end`.
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
