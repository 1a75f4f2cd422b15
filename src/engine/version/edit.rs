//! Version edits: changes of the set of files. Each is one record of the manifest.
//!
//! ```text
//! edit  = field*
//! field = 1 next file number (varint)
//!       | 2 last sequence (u64)
//!       | 3 log: start segment, start offset, count, (segment, end)*  (varints)
//!       | 4 added table: tree u8, level u8, file
//!       | 5 removed table: tree u8, level u8, number (varint)
//!       | 6 tree: name (length, bytes)                      only in a manifest's first record
//! ```
//! Fields may come in any order. An unknown tag is an error, since skipping it could lose data.

use crate::engine::batch::TreeId;
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::wal::{Cut, LogPosition};
use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};

use super::file::FileMeta;

/// Number of levels of a tree, level 0 included.
pub const LEVELS: usize = 7;

/// Where the log begins, and where segments from before the last open end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogState {
    /// Tables hold everything before this position.
    pub start: LogPosition,
    /// Segments written before the last open, with their final ends.
    pub cuts: Vec<Cut>,
}

/// A change of the set of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEdit {
    /// File numbers from this one on are unused.
    pub next_file: Option<FileNumber>,
    /// No flushed entry has a larger sequence number.
    pub last_sequence: Option<Sequence>,
    /// The new state of the log.
    pub log: Option<LogState>,
    /// Tables that are added, with their tree and level.
    pub added: Vec<(TreeId, u8, FileMeta)>,
    /// Tables that are removed, with their tree and level.
    pub removed: Vec<(TreeId, u8, FileNumber)>,
    /// Names of the trees, by index.
    pub trees: Vec<Vec<u8>>,
}

impl VersionEdit {
    /// Encodes the edit.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for name in &self.trees {
            out.push(6);
            put_bytes(&mut out, name);
        }
        if let Some(number) = self.next_file {
            out.push(1);
            put_varint(&mut out, number);
        }
        if let Some(sequence) = self.last_sequence {
            out.push(2);
            put_u64(&mut out, sequence);
        }
        if let Some(log) = &self.log {
            encode_log(log, &mut out);
        }
        for (tree, level, number) in &self.removed {
            out.extend_from_slice(&[5, tree.0, *level]);
            put_varint(&mut out, *number);
        }
        for (tree, level, file) in &self.added {
            out.extend_from_slice(&[4, tree.0, *level]);
            file.encode(&mut out);
        }
        out
    }

    /// Decodes an edit; `None` if the bytes do not follow the grammar.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut edit = Self::default();
        while !reader.is_empty() {
            edit.decode_field(&mut reader)?;
        }
        Some(edit)
    }

    fn decode_field(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        match reader.u8()? {
            1 => self.next_file = Some(reader.varint()?),
            2 => self.last_sequence = Some(reader.u64()?),
            3 => self.log = Some(decode_log(reader)?),
            4 => {
                let (tree, level) = decode_place(reader)?;
                self.added.push((tree, level, FileMeta::decode(reader)?));
            }
            5 => {
                let (tree, level) = decode_place(reader)?;
                self.removed.push((tree, level, reader.varint()?));
            }
            6 => self.trees.push(reader.bytes()?.to_vec()),
            _ => return None,
        }
        Some(())
    }
}

fn decode_place(reader: &mut Reader<'_>) -> Option<(TreeId, u8)> {
    let tree = TreeId(reader.u8()?);
    let level = reader.u8()?;
    ((level as usize) < LEVELS).then_some((tree, level))
}

fn encode_log(log: &LogState, out: &mut Vec<u8>) {
    out.push(3);
    put_varint(out, log.start.segment);
    put_varint(out, log.start.offset);
    put_varint(out, log.cuts.len() as u64);
    for (segment, end) in &log.cuts {
        put_varint(out, *segment);
        put_varint(out, *end);
    }
}

fn decode_log(reader: &mut Reader<'_>) -> Option<LogState> {
    let start = LogPosition { segment: reader.varint()?, offset: reader.varint()? };
    let count = reader.varint()?;
    let cuts = (0..count)
        .map(|_| Some((reader.varint()?, reader.varint()?)))
        .collect::<Option<Vec<_>>>()?;
    Some(LogState { start, cuts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    prop_compose! {
        fn some_file()(number: u64, size: u64, smallest: Vec<u8>, largest: Vec<u8>,
                       entries: u64, tombstones: u64, seqs: (u64, u64)) -> FileMeta {
            FileMeta { number, size, smallest: Bytes::from(smallest), largest: Bytes::from(largest),
                       entries, tombstones, min_sequence: seqs.0, max_sequence: seqs.1 }
        }
    }

    proptest! {
        #[test]
        fn every_edit_reads_back(
            next_file: Option<u64>, last_sequence: Option<u64>,
            start: Option<(u64, u64)>, cuts: Vec<(u64, u64)>,
            added in prop::collection::vec((0u8..3, 0u8..7, some_file()), 0..4),
            removed in prop::collection::vec((0u8..3, 0u8..7, any::<u64>()), 0..4),
            trees: Vec<Vec<u8>>,
        ) {
            let edit = VersionEdit {
                next_file, last_sequence, trees,
                log: start.map(|(segment, offset)| LogState {
                    start: LogPosition { segment, offset }, cuts }),
                added: added.into_iter().map(|(t, l, f)| (TreeId(t), l, f)).collect(),
                removed: removed.into_iter().map(|(t, l, n)| (TreeId(t), l, n)).collect(),
            };
            prop_assert_eq!(VersionEdit::decode(&edit.encode()), Some(edit));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            let _ = VersionEdit::decode(&bytes);
        }
    }
}
