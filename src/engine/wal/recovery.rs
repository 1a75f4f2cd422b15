//! Replays the log when a store is opened, and tells an incomplete tail from damage.
//!
//! 1. Segments before the start are obsolete. Segments with a cut were written before the last
//!    open. They must be valid up to the cut, and nothing after it is read.
//! 2. The other segments form a chain: each ends where the link of its successor says.
//! 3. Where the chain breaks, recovery gathers all evidence of how far the log was synced: the file
//!    SYNC and every valid record, before the break, after it, and in all later segments.
//! 4. A break before that point is damage, and the open fails. Otherwise it is the incomplete tail
//!    that a crash leaves. It is accepted, and everything after it is discarded, so that there are
//!    no holes.
//!
//! Nothing is ever appended to a segment from before the open. The engine seals these segments,
//! records their cuts in the manifest, and starts a new segment. Recovery uses one thread, and
//! holds at most one record and a window in memory.

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

/// The result of recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The end of the log.
    pub end: LogPosition,
    /// How far the log is known to have been durable.
    pub synced: LogPosition,
    /// Every segment on disk from the start on, with its cut. The manifest must record these before
    /// anything is appended. A segment with an end of 0 holds nothing that counts, and may be
    /// removed once that is recorded.
    pub segments: Vec<Cut>,
    /// Number of bytes of replayed records, framing included.
    pub bytes: u64,
    /// Number of replayed data records.
    pub records: u64,
    /// Number of bytes after the end that are not zero and were discarded.
    pub discarded_bytes: u64,
}

/// Replays the data records from `start` to the end of the log, in order. `on_record` gets the end
/// position and the payload of each.
///
/// If `start.offset` is before the first record, the segment `start.segment` need not exist. `cuts`
/// are those of the manifest, in any order.
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
    // Segments before the last cut that no cut names were removed when the cuts were recorded. A
    // power cut can bring such a file back.
    let chained = numbers.into_iter().filter(|&number| last_cut.is_none_or(|last| number > last));
    let chain = chained.map(|number| recovery.inspect(number)).collect::<Result<Vec<_>>>()?;
    recovery.require_first(cuts, &chain)?;
    recovery.replay_chain(&chain)?;
    Ok(recovery.out)
}

/// Makes the old segments durable up to their cuts, so that the manifest may record these.
///
/// What was synced before (`synced` of [`Recovered`]) is durable. The rest is rewritten byte for
/// byte before the sync. After a failed sync, the kernel may hold that data as if it were clean,
/// and another sync alone would write nothing.
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

/// The numbers of the segments in `dir` from `first` on, ascending.
pub(super) fn segment_numbers(
    fs: &dyn FileSystem,
    dir: &Path,
    first: FileNumber,
) -> Result<Vec<FileNumber>> {
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

/// A segment written since the last open.
#[derive(Clone, Copy, Debug)]
struct ChainedSegment {
    number: FileNumber,
    /// The position that its first record links to, if that record is a valid link.
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

    /// Offset of the first record of a segment that counts.
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

    fn inspect(&self, number: FileNumber) -> Result<ChainedSegment> {
        let mut reader = self.open(number)?;
        let link = match reader.record_at(FILE_HEADER_BYTES, u64::MAX)? {
            Some(first) if first.kind == RecordKind::Link => decode_link(reader.payload(&first)?),
            _ => None,
        };
        Ok(ChainedSegment { number, link })
    }

    fn replay_chain(&mut self, chain: &[ChainedSegment]) -> Result<()> {
        self.require_predecessors(chain)?;
        let Some((first, mut later)) = chain.split_first() else {
            return self.accept_end();
        };
        let mut current = first.number;
        loop {
            let end = self.replay_chained(current)?;
            let Some(index) = successor(LogPosition::new(current, end), later) else { break };
            self.record_end(current, end);
            let (skipped, rest) = later.split_at_checked(index).unwrap_or((later, &[]));
            self.discard(skipped)?;
            let Some((next, rest)) = rest.split_first() else { break };
            (current, later) = (next.number, rest);
        }
        self.finish(later)
    }

    /// Checks that the segment of the start exists if it holds a record before the start. A segment
    /// with a cut may be missing: what counts of it was replayed, and if that was nothing, it may
    /// be gone.
    fn require_first(&self, cuts: &[Cut], chain: &[ChainedSegment]) -> Result<()> {
        let number = self.start.segment;
        let cut = cuts.iter().any(|&(other, _)| other == number);
        let chained = chain.first().is_some_and(|first| first.number == number);
        // Without a record before the start, the segment may have been empty and removed.
        let anywhere = self.start.offset <= FILE_HEADER_BYTES;
        self.require(anywhere || cut || chained, number)
    }

    /// Checks that every segment exists that a link names. The name of a segment was durable before
    /// its successor began, so a missing one was lost.
    fn require_predecessors(&self, chain: &[ChainedSegment]) -> Result<()> {
        for link in chain.iter().filter_map(|chained| chained.link) {
            let known = link.segment < self.start.segment
                || chain.iter().any(|chained| chained.number == link.segment);
            self.require(known, link.segment)?;
        }
        Ok(())
    }

    fn replay_chained(&mut self, number: FileNumber) -> Result<u64> {
        let mut reader = self.open(number)?;
        let from = self.first_offset(number);
        if from > reader.len() {
            return Err(Error::corrupt(reader.path(), from, "the log starts beyond the segment"));
        }
        self.replay(&mut reader, from, u64::MAX)
    }

    fn record_end(&mut self, number: FileNumber, end: u64) {
        let empty = end <= FILE_HEADER_BYTES;
        self.out.segments.push((number, if empty { 0 } else { end }));
    }

    /// Discards segments that are not part of the log. Their records still count as evidence.
    fn discard(&mut self, segments: &[ChainedSegment]) -> Result<()> {
        for segment in segments {
            self.out.segments.push((segment.number, 0));
            self.scan_beyond(segment.number, FILE_HEADER_BYTES)?;
        }
        Ok(())
    }

    fn scan_beyond(&mut self, number: FileNumber, from: u64) -> Result<()> {
        let mut reader = self.open(number)?;
        let beyond = scan(&mut reader, from)?;
        self.out.synced = self.out.synced.max(beyond.synced);
        self.out.discarded_bytes += beyond.used_bytes;
        Ok(())
    }

    /// Ends the chain. The `later` segments are not linked to it.
    fn finish(&mut self, later: &[ChainedSegment]) -> Result<()> {
        let LogPosition { segment, offset } = self.out.end;
        self.scan_beyond(segment, offset)?;
        self.record_end(segment, offset);
        self.discard(later)?;
        let mut links = later.iter().filter_map(|chained| chained.link);
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

/// Index of the segment in `later` that continues the log at `end`.
fn successor(end: LogPosition, later: &[ChainedSegment]) -> Option<usize> {
    later.iter().position(|chained| chained.link == Some(end))
}

#[cfg(test)]
mod tests;
