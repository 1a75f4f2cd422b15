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
//!       | 7 features (varint)                               the first field, if there are any
//!       | 8 hash seed (u64)                                 with feature 1
//!       | 9 added table with shortened bounds: as 4         with feature 8
//!       | 10 added table with a raised smallest key: tree u8, level u8, shortened u8, file
//!                                                           with feature 16
//!       | 11 counted from (u64)                             with feature 2
//!       | 12 added table with a weight: tree u8, level u8, flags u8, file, weight (zigzag varint);
//!            flags: 1 shortened bounds, 2 raised smallest key  with feature 2
//! ```
//! Fields may come in any order. An unknown field or feature is an error, since skipping it could
//! lose data.

use std::path::Path;

use crate::engine::batch::TreeId;
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::hash::HashSeed;
use crate::engine::wal::{Cut, LogPosition};
use crate::error::{Error, ErrorKind};
use crate::io::codec::{Reader, put_bytes, put_u64, put_varint, put_zigzag};

use super::file::FileMeta;

/// The feature of stores that hash keys with a seed.
const HASH_SEED: u64 = 1;
/// The feature of stores whose logs and tables may hold entries that have a weight.
const COUNTED_ROWS: u64 = 2;
/// The feature of stores whose large strings are in chunks.
const CHUNKED_STRINGS: u64 = 4;
/// The feature of stores that shorten the bounds of tables.
const SHORTENED_BOUNDS: u64 = 8;
/// The feature of manifests with tables whose smallest key was raised. Only an edit that adds such a
/// table has it.
const RAISED_BOUNDS: u64 = 16;
/// The features of the stores that this code writes.
const FEATURES: u64 = HASH_SEED | CHUNKED_STRINGS | SHORTENED_BOUNDS;
/// All features that this code knows.
const KNOWN_FEATURES: u64 = FEATURES | COUNTED_ROWS | RAISED_BOUNDS;

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
    /// Seed of the hash of user keys. Set once in the life of a store.
    pub hash_seed: Option<HashSeed>,
    /// What belongs to versions from this number on may be counted. Set once in the life of a store.
    pub counted_from: Option<Sequence>,
    /// The new state of the log.
    pub log: Option<LogState>,
    /// Tables that are added, with their tree and level.
    pub added: Vec<(TreeId, u8, FileMeta)>,
    /// Tables that are removed, with their tree and level.
    pub removed: Vec<(TreeId, u8, FileNumber)>,
    /// Names of the trees, by index.
    pub trees: Vec<Vec<u8>>,
}

/// Why bytes are no edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadEdit {
    /// They do not follow the grammar.
    Malformed,
    /// They need features that this code does not know.
    Features(u64),
}

impl BadEdit {
    /// The error for such a record of the manifest at `path`.
    pub(crate) fn in_file(self, path: &Path) -> Error {
        match self {
            Self::Malformed => Error::corrupt(path, 0, "a record is no edit"),
            Self::Features(unknown) => {
                let text = format!(
                    "the store has features {unknown:#x}, which this library does not know: \
                     use a newer one"
                );
                Error::new(ErrorKind::Incompatible, text)
            }
        }
    }
}

impl VersionEdit {
    /// Encodes the edit.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let raised = self.added.iter().any(|(_, _, file)| file.raised);
        let base = if self.hash_seed.is_some() { FEATURES } else { 0 };
        let weighs = self.added.iter().any(|(_, _, file)| file.weight != 0);
        let counted = if weighs || self.counted_from.is_some() { COUNTED_ROWS } else { 0 };
        let features = base | counted | if raised { RAISED_BOUNDS } else { 0 };
        if features != 0 {
            out.push(7);
            put_varint(&mut out, features);
        }
        if let Some(seed) = self.hash_seed {
            out.push(8);
            put_u64(&mut out, seed.raw());
        }
        if let Some(sequence) = self.counted_from {
            out.push(11);
            put_u64(&mut out, sequence);
        }
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
            let shortened = file.bounds.are_shortened();
            if file.weight != 0 {
                let flags = u8::from(shortened) | u8::from(file.raised) << 1;
                out.extend_from_slice(&[12, tree.0, *level, flags]);
                file.encode(&mut out);
                put_zigzag(&mut out, file.weight);
                continue;
            }
            if file.raised {
                out.extend_from_slice(&[10, tree.0, *level, u8::from(shortened)]);
            } else {
                out.extend_from_slice(&[if shortened { 9 } else { 4 }, tree.0, *level]);
            }
            file.encode(&mut out);
        }
        out
    }

    /// Decodes an edit.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadEdit> {
        let mut reader = Reader::new(bytes);
        let mut edit = Self::default();
        while !reader.is_empty() {
            let field = reader.u8().ok_or(BadEdit::Malformed)?;
            if field == 7 {
                let features = reader.varint().ok_or(BadEdit::Malformed)?;
                if features & !KNOWN_FEATURES != 0 {
                    return Err(BadEdit::Features(features & !KNOWN_FEATURES));
                }
                continue;
            }
            edit.decode_field(field, &mut reader).ok_or(BadEdit::Malformed)?;
        }
        Ok(edit)
    }

    fn decode_field(&mut self, field: u8, reader: &mut Reader<'_>) -> Option<()> {
        match field {
            1 => self.next_file = Some(reader.varint()?),
            2 => self.last_sequence = Some(reader.u64()?),
            3 => self.log = Some(decode_log(reader)?),
            4 | 9 => {
                let (tree, level) = decode_place(reader)?;
                self.added.push((tree, level, FileMeta::decode(reader, field == 9)?));
            }
            5 => {
                let (tree, level) = decode_place(reader)?;
                self.removed.push((tree, level, reader.varint()?));
            }
            10 => {
                let (tree, level) = decode_place(reader)?;
                let shortened = reader.u8().filter(|flag| *flag <= 1)? == 1;
                let file = FileMeta { raised: true, ..FileMeta::decode(reader, shortened)? };
                self.added.push((tree, level, file));
            }
            12 => {
                let (tree, level) = decode_place(reader)?;
                let flags = reader.u8().filter(|flags| *flags <= 3)?;
                let file = FileMeta::decode(reader, flags & 1 != 0)?;
                let weight = reader.zigzag().filter(|weight| *weight != 0)?;
                self.added.push((tree, level, FileMeta { raised: flags & 2 != 0, weight, ..file }));
            }
            6 => self.trees.push(reader.bytes()?.to_vec()),
            8 => self.hash_seed = Some(HashSeed::from_raw(reader.u64()?)),
            11 => self.counted_from = Some(reader.u64()?),
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
    use crate::engine::version::KeyBounds;
    use proptest::prelude::*;

    prop_compose! {
        fn some_file()(number: u64, size: u64, smallest: Vec<u8>, largest: Vec<u8>, shortened: bool,
                       entries: u64, tombstones: u64, seqs: (u64, u64), raised: bool, weight: i64) -> FileMeta {
            let bounds = KeyBounds::from_stored(&smallest, &largest, shortened);
            FileMeta { number, size, bounds, entries, tombstones, min_sequence: seqs.0, max_sequence: seqs.1, raised, weight }
        }
    }

    proptest! {
        #[test]
        fn every_edit_reads_back(
            next_file: Option<u64>, last_sequence: Option<u64>, seed: Option<u64>, counted_from: Option<u64>,
            start: Option<(u64, u64)>, cuts: Vec<(u64, u64)>,
            added in prop::collection::vec((0u8..3, 0u8..7, some_file()), 0..4),
            removed in prop::collection::vec((0u8..3, 0u8..7, any::<u64>()), 0..4),
            trees: Vec<Vec<u8>>,
        ) {
            let edit = VersionEdit {
                next_file, last_sequence, trees, counted_from, hash_seed: seed.map(HashSeed::from_raw),
                log: start.map(|(segment, offset)| LogState {
                    start: LogPosition { segment, offset }, cuts }),
                added: added.into_iter().map(|(t, l, f)| (TreeId(t), l, f)).collect(),
                removed: removed.into_iter().map(|(t, l, n)| (TreeId(t), l, n)).collect(),
            };
            prop_assert_eq!(VersionEdit::decode(&edit.encode()), Ok(edit));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            let _ = VersionEdit::decode(&bytes);
        }
    }

    /// A library that does not know chunks must refuse the store, not only the keys.
    #[test]
    fn a_complete_state_names_the_feature_of_strings_in_chunks() {
        let seed = Some(HashSeed::from_raw(7));
        let bytes = VersionEdit { hash_seed: seed, ..VersionEdit::default() }.encode();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Some(7));
        assert_ne!(reader.varint().unwrap() & 4, 0);
        assert_eq!(VersionEdit::default().encode(), []);
    }

    #[test]
    fn an_unknown_feature_is_told_apart_from_damage() {
        let mut bytes = vec![7];
        put_varint(&mut bytes, HASH_SEED | 96);
        bytes.extend_from_slice(&[200, 1, 2, 3]);
        assert_eq!(VersionEdit::decode(&bytes), Err(BadEdit::Features(96)));
        assert_eq!(VersionEdit::decode(&[200, 1, 2, 3]), Err(BadEdit::Malformed));
    }
}
