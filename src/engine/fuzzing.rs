//! Entry points for fuzzing of what the engine stores. Each takes any bytes, and must neither panic
//! nor allocate more than a multiple of them. Not in normal builds: tests and the feature `fuzzing`.

use std::path::Path;

pub use super::sstable::fuzzing::{block, filter, footer, index, properties};
use super::version::edit::VersionEdit;
use super::wal::LogPosition;
use super::wal::reader::RecordReader;
use super::wal::record::{RecordKind, decode_link, encode};
use super::wal::scan::scan;
use super::{MemFs, batch};

const NUMBER: u64 = 7;

/// Reads a file of records from its start, and looks for records behind its first break.
fn read_log(bytes: &[u8]) -> usize {
    let (fs, path) = (MemFs::untracked(), Path::new("/log"));
    if fs.write_file(path, bytes).is_err() {
        return 0;
    }
    let Ok(mut reader) = RecordReader::open(&fs, path.to_owned(), NUMBER) else { return 0 };
    let mut records = 0;
    let end = reader.replay(0, u64::MAX, |record, payload| {
        records += 1;
        if record.kind == RecordKind::Link {
            let _ = decode_link(payload);
        }
        if let Some((_, operations)) = batch::decode(payload) {
            operations.take_while(Result::is_ok).for_each(drop);
        }
        Ok(())
    });
    if let Ok(end) = end {
        assert!(end <= bytes.len() as u64, "the end is within the file");
        let _ = scan(&mut reader, end);
    }
    records
}

/// The log: the bytes as they are; as the payload of a valid record; and as valid records of the
/// pieces between newlines, of which one byte is then changed.
pub fn log_record(data: &[u8]) {
    read_log(data);
    let at = |offset: usize| LogPosition::new(NUMBER, offset as u64);
    let (mut log, mut count) = (Vec::new(), 0);
    for payload in data.split(|byte| *byte == b'\n') {
        let position = at(log.len());
        encode(&mut log, position, RecordKind::Data, at(0), payload);
        count += 1;
    }
    assert_eq!(read_log(&log), count, "every record that was written is read");
    if let [place, with, ..] = *data {
        let place = usize::from(place) * log.len() / 256;
        if let Some(byte) = log.get_mut(place) {
            *byte ^= with;
        }
        assert!(read_log(&log) <= count, "no record appears");
    }
    let mut whole = Vec::new();
    encode(&mut whole, at(0), RecordKind::Data, at(0), data);
    assert_eq!(read_log(&whole), 1, "any payload is read");
}

/// An edit of the manifest.
pub fn manifest_edit(data: &[u8]) {
    if let Ok(edit) = VersionEdit::decode(data) {
        let again = VersionEdit::decode(&edit.encode());
        assert_eq!(again.ok().as_ref(), Some(&edit), "an edit reads back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs every file of a corpus.
    fn replay(target: &str, run: fn(&[u8])) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
        let mut files = 0;
        for entry in std::fs::read_dir(&dir).unwrap() {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files > 0, "{} is empty", dir.display());
    }

    #[test]
    fn every_corpus_of_the_engine_runs() {
        replay("log_record", log_record);
        replay("manifest_edit", manifest_edit);
        replay("table_footer", footer);
        replay("table_index", index);
        replay("table_block", block);
        replay("table_filter", filter);
        replay("table_properties", properties);
    }
}
