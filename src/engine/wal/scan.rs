//! Scans for records after damage. Every valid record tells how far the log was durable when it was
//! written, and damage before that point cannot be a torn tail.

use crate::engine::wal::position::LogPosition;
use crate::engine::wal::reader::{Record, RecordReader};
use crate::engine::wal::record::{RECORD_ALIGNMENT, RECORD_MAGIC};
use crate::error::Result;

/// [`RECORD_ALIGNMENT`] as a `usize`.
const WORD_BYTES: usize = 8;

/// What a scan found.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanSummary {
    /// The furthest synced position that a valid record contains.
    pub synced: LogPosition,
    /// Number of bytes up to the last word that is not zero.
    pub used_bytes: u64,
}

/// Scans the file for records at 8-byte boundaries, from `from` on.
pub fn scan(reader: &mut RecordReader, from: u64) -> Result<ScanSummary> {
    let mut summary = ScanSummary::default();
    for_each_record(reader, from, |_, at, record| {
        let end = record.map_or(at + RECORD_ALIGNMENT, |record| record.end);
        summary.used_bytes = end - from;
        summary.synced = summary.synced.max(record.map(|record| record.synced).unwrap_or_default());
        Ok(())
    })?;
    Ok(summary)
}

/// Calls `visit` for every valid record from `from` on, and for every word that is neither zero nor
/// part of a record. The payload of a valid record comes from a user and is not scanned.
pub fn for_each_record(
    reader: &mut RecordReader,
    from: u64,
    mut visit: impl FnMut(&mut RecordReader, u64, Option<&Record>) -> Result<()>,
) -> Result<()> {
    let mut offset = from.next_multiple_of(RECORD_ALIGNMENT);
    while offset < reader.len() {
        match next_used_word(reader.some_bytes(offset)?) {
            WordScan::Zeros(bytes) => offset += bytes,
            WordScan::Word { skip, is_magic } => {
                let at = offset + skip;
                let record = if is_magic { reader.record_at(at, u64::MAX)? } else { None };
                visit(reader, at, record.as_ref())?;
                offset = record.map_or(at + RECORD_ALIGNMENT, |record| record.end);
            }
        }
    }
    Ok(())
}

enum WordScan {
    Zeros(u64),
    Word { skip: u64, is_magic: bool },
}

fn next_used_word(bytes: &[u8]) -> WordScan {
    let words = bytes.chunks(WORD_BYTES);
    for (index, word) in words.enumerate() {
        if word.iter().any(|&b| b != 0) {
            let skip = index as u64 * RECORD_ALIGNMENT;
            return WordScan::Word { skip, is_magic: word.starts_with(&RECORD_MAGIC) };
        }
    }
    WordScan::Zeros(bytes.len().next_multiple_of(WORD_BYTES) as u64)
}
