//! Replays the log at open, and tells an incomplete tail from damage.
//!
//! The rule:
//! 1. Segments before the start are obsolete. Segments with a cut are of an earlier life: they
//!    must be sound up to the cut, and nothing after it is looked at.
//! 2. The others form a chain: each ends where the link of its successor says.
//! 3. Where the chain breaks, all evidence is gathered of how far the log had been synced: the
//!    file SYNC and every valid record, before the break, after it, and in all later segments.
//! 4. A break before that point is damage and refuses. Otherwise it is the incomplete tail that
//!    a crash leaves: accepted, and everything after it is discarded, valid or not: no holes.
//!
//! Nothing is ever appended to a segment of an earlier life: the engine seals them, records their
//! cuts in the manifest, and starts a new segment. One thread; at most one record and a window
//! are held in memory.

use std::path::Path;

use crate::engine::files::{FileKind, FileNumber, log_path};
use crate::engine::wal::header::{FILE_HEADER_BYTES, SEGMENT_MAGIC};
use crate::engine::wal::position::{Cut, LogPosition};
use crate::engine::wal::reader::RecordReader;
use crate::engine::wal::record::{RecordKind, decode_link};
use crate::engine::wal::scan::scan;
use crate::engine::wal::sync_file::SyncState;
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// What recovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Where the log ends.
    pub end: LogPosition,
    /// How far it is known to have been durable already.
    pub synced: LogPosition,
    /// Every segment on disk from the start on, with its cut: what the manifest is to record
    /// before anything is appended. An end of 0: holds nothing that counts, may be removed once
    /// that is recorded.
    pub segments: Vec<Cut>,
    /// Bytes of records replayed, framing included.
    pub bytes: u64,
    /// Data records replayed.
    pub records: u64,
    /// Bytes after the end that are not zero, and were given up.
    pub discarded_bytes: u64,
}

/// Replays the data records from `start` to the log's end, in order; `on_record` gets the
/// position at which each ends, and its payload.
///
/// A `start.offset` before the first record asks for every segment from `start.segment` on,
/// whether that one exists or not. `cuts` are those of the manifest, in any order.
pub fn recover(
    fs: &dyn FileSystem,
    dir: &Path,
    start: LogPosition,
    cuts: &[Cut],
    sync_state: SyncState,
    on_record: impl FnMut(LogPosition, &[u8]) -> Result<()>,
) -> Result<Recovered> {
    let numbers = segment_numbers(fs, dir, start.segment)?;
    let out = Recovered { end: start, synced: sync_state.log, ..Recovered::default() };
    let mut recovery = Recovery { fs, dir, start, on_record, out };
    recovery.replay_cuts(cuts, &numbers)?;
    let last_cut = cuts.iter().map(|&(number, _)| number).max();
    // What the cuts do not name but precedes them had been removed when they were recorded: a
    // power cut can bring such a file back.
    let living = numbers.into_iter().filter(|&number| last_cut.is_none_or(|last| number > last));
    let chain = living.map(|number| recovery.inspect(number)).collect::<Result<Vec<_>>>()?;
    recovery.require_first(cuts, &chain)?;
    recovery.replay_chain(&chain)?;
    Ok(recovery.out)
}

/// Makes the old segments durable up to their cuts, so that the manifest may record these.
///
/// What had been synced before (`synced`, from [`Recovered`]) is durable; the rest is written
/// again, byte for byte, before the sync: when the life before this one ended by a failed sync,
/// the kernel may hold that data as if it were clean, and a sync alone would write nothing.
pub fn seal(fs: &dyn FileSystem, dir: &Path, segments: &[Cut], synced: LogPosition) -> Result<()> {
    for &(number, end) in segments {
        let from = if number == synced.segment { synced.offset } else { FILE_HEADER_BYTES };
        if number >= synced.segment && from < end {
            rewrite(fs, &log_path(dir, number), from, end)?;
        }
    }
    Ok(())
}

fn rewrite(fs: &dyn FileSystem, path: &Path, from: u64, end: u64) -> Result<()> {
    const PIECE: u64 = 256 << 10;
    let file = fs.open_write(path).map_err(|e| Error::io("open", path, &e))?;
    let mut piece = Vec::new();
    let mut at = from;
    while at < end {
        piece.resize(usize::try_from(PIECE.min(end - at)).unwrap_or(0), 0);
        file.read_exact_at(&mut piece, at).map_err(|e| Error::io("read", path, &e))?;
        file.write_all_at(&piece, at).map_err(|e| Error::io("write", path, &e))?;
        at += piece.len() as u64;
    }
    file.sync_data().map_err(|e| Error::io("sync", path, &e))
}

fn segment_numbers(fs: &dyn FileSystem, dir: &Path, first: FileNumber) -> Result<Vec<FileNumber>> {
    let names = fs.list(dir).map_err(|e| Error::io("list", dir, &e))?;
    let mut numbers: Vec<_> = names
        .iter()
        .filter_map(|name| match FileKind::parse(name) {
            Some(FileKind::Log(number)) if number >= first => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// A segment of the last life.
#[derive(Clone, Copy, Debug)]
struct Living {
    number: FileNumber,
    /// What its first record links to, if that is a valid link.
    link: Option<LogPosition>,
}

struct Recovery<'a, F> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    start: LogPosition,
    on_record: F,
    out: Recovered,
}

impl<F: FnMut(LogPosition, &[u8]) -> Result<()>> Recovery<'_, F> {
    fn open(&self, number: FileNumber) -> Result<RecordReader> {
        let path = log_path(self.dir, number);
        let mut reader = RecordReader::open(self.fs, path, number)?;
        let size = reader.file_header(SEGMENT_MAGIC)?.size;
        if size != reader.len() {
            let text = format!("the segment has {} bytes instead of {size}", reader.len());
            return Err(Error::corrupt(reader.path(), reader.len().min(size), text));
        }
        Ok(reader)
    }

    /// The offset of the first record of a segment that counts.
    fn first_offset(&self, number: FileNumber) -> u64 {
        let from_start = if number == self.start.segment { self.start.offset } else { 0 };
        from_start.max(FILE_HEADER_BYTES)
    }

    fn replay_cuts(&mut self, cuts: &[Cut], numbers: &[FileNumber]) -> Result<()> {
        let mut cuts: Vec<_> = cuts.iter().filter(|c| c.0 >= self.start.segment).collect();
        cuts.sort_unstable();
        for &&(number, end) in &cuts {
            let exists = numbers.binary_search(&number).is_ok();
            let from = self.first_offset(number);
            if from < end {
                self.require(exists, number)?;
                self.replay_up_to(number, from, end)?;
            }
            if exists {
                self.out.segments.push((number, end));
            }
        }
        Ok(())
    }

    fn require(&self, exists: bool, number: FileNumber) -> Result<()> {
        if exists {
            return Ok(());
        }
        let path = log_path(self.dir, number);
        Err(Error::corrupt(&path, 0, "the log segment is needed and missing"))
    }

    fn replay_up_to(&mut self, number: FileNumber, from: u64, cut: u64) -> Result<()> {
        let mut reader = self.open(number)?;
        let end = self.replay(&mut reader, from, cut)?;
        if end != cut {
            let text = format!("no valid record, the log goes on to {cut}");
            return Err(Error::corrupt(reader.path(), end, text));
        }
        Ok(())
    }

    fn replay(&mut self, reader: &mut RecordReader, from: u64, limit: u64) -> Result<u64> {
        let (out, on_record) = (&mut self.out, &mut self.on_record);
        let number = reader.number();
        let end = reader.replay(from, limit, |record, payload| {
            out.synced = out.synced.max(record.synced);
            out.bytes += record.end - record.offset;
            if record.kind == RecordKind::Data {
                out.records += 1;
                on_record(LogPosition::new(number, record.end), payload)?;
            }
            Ok(())
        })?;
        self.out.end = LogPosition::new(number, end);
        Ok(end)
    }

    fn inspect(&self, number: FileNumber) -> Result<Living> {
        let mut reader = self.open(number)?;
        let link = match reader.record_at(FILE_HEADER_BYTES, u64::MAX)? {
            Some(first) if first.kind == RecordKind::Link => decode_link(reader.payload(&first)?),
            _ => None,
        };
        Ok(Living { number, link })
    }

    fn replay_chain(&mut self, chain: &[Living]) -> Result<()> {
        self.require_predecessors(chain)?;
        let Some((first, mut later)) = chain.split_first() else {
            return self.accept_end();
        };
        let mut current = first.number;
        loop {
            let end = self.replay_living(current)?;
            let Some(index) = successor(LogPosition::new(current, end), later) else { break };
            self.keep(current, end);
            let (skipped, rest) = later.split_at_checked(index).unwrap_or((later, &[]));
            self.discard(skipped)?;
            let Some((next, rest)) = rest.split_first() else { break };
            (current, later) = (next.number, rest);
        }
        self.finish(later)
    }

    /// With a record before the start, its segment must be there; unless a cut names it: then what
    /// counts of it has been replayed, and if that was nothing, it may be gone.
    fn require_first(&self, cuts: &[Cut], chain: &[Living]) -> Result<()> {
        let number = self.start.segment;
        let cut = cuts.iter().any(|&(other, _)| other == number);
        let living = chain.first().is_some_and(|first| first.number == number);
        // Without a record before the start the segment may have been empty, and removed.
        let anywhere = self.start.offset <= FILE_HEADER_BYTES;
        self.require(anywhere || cut || living, number)
    }

    /// A segment's name was durable before its successor was begun: if a link names a segment
    /// from the start on that is not there, it was lost.
    fn require_predecessors(&self, chain: &[Living]) -> Result<()> {
        for link in chain.iter().filter_map(|living| living.link) {
            let known = link.segment < self.start.segment
                || chain.iter().any(|living| living.number == link.segment);
            self.require(known, link.segment)?;
        }
        Ok(())
    }

    fn replay_living(&mut self, number: FileNumber) -> Result<u64> {
        let mut reader = self.open(number)?;
        let from = self.first_offset(number);
        if from > reader.len() {
            return Err(Error::corrupt(reader.path(), from, "the log starts beyond the segment"));
        }
        self.replay(&mut reader, from, u64::MAX)
    }

    fn keep(&mut self, number: FileNumber, end: u64) {
        let empty = end <= FILE_HEADER_BYTES;
        self.out.segments.push((number, if empty { 0 } else { end }));
    }

    /// Segments that are not part of the log, but whose records are evidence.
    fn discard(&mut self, segments: &[Living]) -> Result<()> {
        for segment in segments {
            self.out.segments.push((segment.number, 0));
            self.look_beyond(segment.number, FILE_HEADER_BYTES)?;
        }
        Ok(())
    }

    fn look_beyond(&mut self, number: FileNumber, from: u64) -> Result<()> {
        let mut reader = self.open(number)?;
        let beyond = scan(&mut reader, from)?;
        self.out.synced = self.out.synced.max(beyond.synced);
        self.out.discarded_bytes += beyond.used_bytes;
        Ok(())
    }

    /// The chain ends here; `later` segments are not linked to it.
    fn finish(&mut self, later: &[Living]) -> Result<()> {
        let LogPosition { segment, offset } = self.out.end;
        self.look_beyond(segment, offset)?;
        self.keep(segment, offset);
        self.discard(later)?;
        let mut links = later.iter().filter_map(|living| living.link);
        if let Some(link) = links.find(|link| link.segment == segment && link.offset < offset) {
            let text = format!("the segment goes on after its recorded end {}", link.offset);
            return Err(Error::corrupt(&log_path(self.dir, segment), link.offset, text));
        }
        self.accept_end()
    }

    fn accept_end(&self) -> Result<()> {
        let Recovered { end, synced, .. } = self.out;
        if end >= synced {
            return Ok(());
        }
        self.require(self.out.segments.iter().any(|s| s.0 == synced.segment), synced.segment)?;
        let text = format!("no valid record, though the log was synced up to {synced}");
        Err(Error::corrupt(&log_path(self.dir, end.segment), end.offset, text))
    }
}

/// Which of the `later` segments continues the log at `end`.
fn successor(end: LogPosition, later: &[Living]) -> Option<usize> {
    later.iter().position(|living| living.link == Some(end))
}

#[cfg(test)]
mod tests;
