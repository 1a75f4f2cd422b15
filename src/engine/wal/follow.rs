//! Reads what a writer has appended to its log since the last look.
//!
//! The writer goes on meanwhile. So a place without a valid record is the end for now: the writer
//! may be about to write there. Nothing is concluded about damage, which the writer's own next
//! recovery finds. Everything is read that was in the log when the call began: a segment that links
//! to another end of its predecessor was begun after the predecessor was read.

use std::path::Path;

use crate::engine::files::{FileNumber, log_path};
use crate::engine::wal::header::{FILE_HEADER_BYTES, SEGMENT_MAGIC};
use crate::engine::wal::position::LogPosition;
use crate::engine::wal::reader::RecordReader;
use crate::engine::wal::record::{RecordKind, decode_link};
use crate::engine::wal::recovery::segment_numbers;
use crate::error::Result;
use crate::io::fs::FileSystem;

/// Passes the payload of each data record from `from` on to `on_record`, in order, and returns the
/// end of the log for now. `from` is the end of a record or of the header of a segment that was
/// written since the writer opened the store.
pub fn follow(
    fs: &dyn FileSystem,
    dir: &Path,
    from: LogPosition,
    mut on_record: impl FnMut(&[u8]) -> Result<()>,
) -> Result<LogPosition> {
    let mut end = from;
    loop {
        let mut reader = open(fs, dir, end.segment)?;
        end.offset = reader.replay(end.offset, u64::MAX, |record, payload| match record.kind {
            RecordKind::Data => on_record(payload),
            _ => Ok(()),
        })?;
        match successor(fs, dir, end)? {
            Some(segment) => end = LogPosition::new(segment, FILE_HEADER_BYTES),
            None => return Ok(end),
        }
    }
}

fn open(fs: &dyn FileSystem, dir: &Path, number: FileNumber) -> Result<RecordReader> {
    let mut reader = RecordReader::open(fs, log_path(dir, number), number)?;
    reader.file_header(SEGMENT_MAGIC)?;
    Ok(reader)
}

/// The segment that continues the log at `end`.
fn successor(fs: &dyn FileSystem, dir: &Path, end: LogPosition) -> Result<Option<FileNumber>> {
    for number in segment_numbers(fs, dir, end.segment + 1)? {
        // A segment that is being prepared has no header yet, and one that is gone was a prepared
        // one, or has been flushed since.
        let Ok(mut reader) = open(fs, dir, number) else { continue };
        if let Some(first) = reader.record_at(FILE_HEADER_BYTES, u64::MAX)?
            && first.kind == RecordKind::Link
            && decode_link(reader.payload(&first)?) == Some(end)
        {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
