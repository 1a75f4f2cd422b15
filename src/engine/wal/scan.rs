//! Evidence beyond damage: every valid record, wherever it stands, says how far the log was
//! durable when it was written. Damage before that point cannot be a torn tail.

use crate::engine::wal::position::LogPosition;
use crate::engine::wal::reader::{Record, RecordReader};
use crate::engine::wal::record::{RECORD_ALIGNMENT, RECORD_MAGIC};
use crate::error::Result;

/// [`RECORD_ALIGNMENT`] in memory.
const WORD_BYTES: usize = 8;

/// What was found beyond a place where no valid record stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beyond {
    /// The furthest synced position any valid record names.
    pub synced: LogPosition,
    /// Bytes up to the last one that is not zero, in whole words.
    pub used_bytes: u64,
}

/// Looks at every 8-byte boundary of the file from `from` on.
pub fn scan(reader: &mut RecordReader, from: u64) -> Result<Beyond> {
    let mut beyond = Beyond::default();
    each(reader, from, |_, at, record| {
        let end = record.map_or(at + RECORD_ALIGNMENT, |record| record.end);
        beyond.used_bytes = end - from;
        beyond.synced = beyond.synced.max(record.map(|record| record.synced).unwrap_or_default());
        Ok(())
    })?;
    Ok(beyond)
}

/// Tells `visit` of every valid record from `from` on, and of every word that is neither zero nor
/// part of one. What a valid record carries was written by a user and is not searched for records.
pub fn each(
    reader: &mut RecordReader,
    from: u64,
    mut visit: impl FnMut(&mut RecordReader, u64, Option<&Record>) -> Result<()>,
) -> Result<()> {
    let mut offset = from.next_multiple_of(RECORD_ALIGNMENT);
    while offset < reader.len() {
        match next_used_word(reader.some_bytes(offset)?) {
            Found::Zeros(bytes) => offset += bytes,
            Found::Word { skip, is_magic } => {
                let at = offset + skip;
                let record = if is_magic { reader.record_at(at, u64::MAX)? } else { None };
                visit(reader, at, record.as_ref())?;
                offset = record.map_or(at + RECORD_ALIGNMENT, |record| record.end);
            }
        }
    }
    Ok(())
}

enum Found {
    Zeros(u64),
    Word { skip: u64, is_magic: bool },
}

fn next_used_word(bytes: &[u8]) -> Found {
    let words = bytes.chunks(WORD_BYTES);
    for (index, word) in words.enumerate() {
        if word.iter().any(|&b| b != 0) {
            let skip = index as u64 * RECORD_ALIGNMENT;
            return Found::Word { skip, is_magic: word.starts_with(&RECORD_MAGIC) };
        }
    }
    Found::Zeros(bytes.len().next_multiple_of(WORD_BYTES) as u64)
}
