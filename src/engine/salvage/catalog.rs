//! The tables and the part of the log that a damaged store consists of.
//!
//! An undamaged manifest decides alone. Otherwise the newest manifest with a complete first record
//! is read as far as possible, skipping damage. Every table in the directory that it neither names
//! nor removes counts as well.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use bytes::Bytes;

use super::{Loss, Observer, Salvaged};
use crate::engine::batch::TreeId;
use crate::engine::files::{FileKind, FileNumber, current_path, manifest_path, table_path};
use crate::engine::sstable::TableSalvage;
use crate::engine::version::{LogState, VersionEdit, read_current, read_manifest};
use crate::engine::wal::SyncFile;
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::reader::RecordReader;
use crate::engine::wal::scan;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;

/// A table of the damaged store.
#[derive(Clone, Debug)]
pub(super) struct ListedTable {
    pub(super) number: FileNumber,
    pub(super) tree: TreeId,
    pub(super) size: u64,
    /// Lower bound of its keys.
    pub(super) smallest: Bytes,
    /// Whether entries before the lower bound do not count.
    pub(super) raised: bool,
}

/// The tables and the log state of a damaged store.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    tables: BTreeMap<FileNumber, ListedTable>,
    removed: HashSet<FileNumber>,
    pub(super) log: LogState,
    /// Whether the manifest was read to its end.
    pub(super) complete: bool,
}

impl Catalog {
    pub(super) fn read(
        fs: &dyn FileSystem,
        dir: &Path,
        trees: usize,
        observer: &dyn Observer,
        report: &mut Salvaged,
    ) -> Result<Self> {
        let names = fs.list(dir).map_err(|e| Error::io("list", dir, &e))?;
        let kinds: Vec<FileKind> = names.iter().filter_map(|name| FileKind::parse(name)).collect();
        let mut catalog = match Self::as_recorded(fs, dir) {
            Ok(catalog) => catalog,
            Err(error) if error.kind() == ErrorKind::Incompatible => return Err(error),
            Err(error) => {
                report.losses.push(Loss::of_file(&current_path(dir), error.message()));
                let mut catalog = Self::pieced_together(fs, dir, &kinds);
                catalog.adopt(fs, dir, &kinds, observer, report);
                catalog
            }
        };
        catalog.tables.retain(|_, table| table.tree.index() < trees);
        catalog.drop_missing(dir, &kinds, report);
        Ok(catalog)
    }

    fn as_recorded(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let Some(number) = read_current(fs, dir)? else {
            return Err(Error::corrupt(&current_path(dir), 0, "it is missing"));
        };
        let mut catalog = Self { complete: true, ..Self::default() };
        let path = manifest_path(dir, number);
        read_manifest(fs, dir, number, SyncFile::read(fs, dir)?, |payload| {
            let edit = VersionEdit::decode(payload).map_err(|bad| bad.in_file(&path))?;
            catalog.apply(&edit);
            Ok(())
        })?;
        Ok(catalog)
    }

    /// The catalog according to the newest manifest that holds a complete state.
    fn pieced_together(fs: &dyn FileSystem, dir: &Path, kinds: &[FileKind]) -> Self {
        let mut numbers: Vec<FileNumber> = kinds
            .iter()
            .filter_map(|kind| match kind {
                FileKind::Manifest(number) => Some(*number),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        for number in numbers.into_iter().rev() {
            let mut catalog = Self::default();
            let mut whole = false;
            let Ok(mut reader) = RecordReader::open(fs, manifest_path(dir, number), number) else {
                continue;
            };
            let read =
                scan::for_each_record(&mut reader, FILE_HEADER_BYTES, |reader, _, record| {
                    if let Some(edit) = record
                        .and_then(|record| VersionEdit::decode(reader.payload(record).ok()?).ok())
                    {
                        whole |= !edit.trees.is_empty();
                        catalog.apply(&edit);
                    }
                    Ok(())
                });
            if whole || (read.is_ok() && !catalog.tables.is_empty()) {
                return catalog;
            }
        }
        Self::default()
    }

    fn apply(&mut self, edit: &VersionEdit) {
        for (_, _, number) in &edit.removed {
            self.tables.remove(number);
            self.removed.insert(*number);
        }
        for (tree, _, meta) in &edit.added {
            self.removed.remove(&meta.number);
            let listed = ListedTable {
                number: meta.number,
                tree: *tree,
                size: meta.size,
                smallest: Bytes::copy_from_slice(meta.bounds.smallest()),
                raised: meta.raised,
            };
            self.tables.insert(meta.number, listed);
        }
        if let Some(log) = &edit.log {
            self.log = log.clone();
        }
    }

    /// Adds tables that no manifest names.
    fn adopt(
        &mut self,
        fs: &dyn FileSystem,
        dir: &Path,
        kinds: &[FileKind],
        observer: &dyn Observer,
        report: &mut Salvaged,
    ) {
        for kind in kinds {
            let FileKind::Table(number) = *kind else { continue };
            if self.tables.contains_key(&number) || self.removed.contains(&number) {
                continue;
            }
            let path = table_path(dir, number);
            let opened = fs.open(&path).map_err(|e| Error::io("open", &path, &e));
            let opened = opened.and_then(|file| TableSalvage::open(file, path.clone(), number));
            match opened.as_ref().ok().and_then(TableSalvage::properties) {
                Some(properties) => {
                    let listed = ListedTable {
                        number,
                        tree: observer.tree_of(properties),
                        size: properties.key_bytes + properties.value_bytes,
                        smallest: Bytes::copy_from_slice(&properties.smallest),
                        raised: false,
                    };
                    self.tables.insert(number, listed);
                }
                None => {
                    let detail = "no manifest names this table, and it does not say what it is";
                    report.losses.push(Loss::of_file(&path, detail));
                }
            }
        }
    }

    fn drop_missing(&mut self, dir: &Path, kinds: &[FileKind], report: &mut Salvaged) {
        let present: HashSet<FileNumber> = kinds
            .iter()
            .filter_map(|kind| match kind {
                FileKind::Table(number) => Some(*number),
                _ => None,
            })
            .collect();
        self.tables.retain(|number, table| {
            if present.contains(number) {
                return true;
            }
            let loss = Loss::of_file(&table_path(dir, *number), "the table is missing");
            report.losses.push(Loss { bytes: table.size, tree: Some(table.tree), ..loss });
            false
        });
    }

    pub(super) fn tables_of(&self, tree: TreeId) -> Vec<ListedTable> {
        self.tables.values().filter(|table| table.tree == tree).cloned().collect()
    }

    /// Total size of the tables.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.values().map(|table| table.size).sum()
    }

    /// Total size of the tables of trees before `tree`.
    pub(super) fn bytes_before(&self, tree: TreeId) -> u64 {
        self.tables.values().filter(|table| table.tree < tree).map(|table| table.size).sum()
    }
}

impl Loss {
    /// The loss of a whole file.
    pub(super) fn of_file(file: &Path, detail: &str) -> Self {
        Self {
            file: file.to_owned(),
            offset: 0,
            bytes: 0,
            detail: detail.to_owned(),
            tree: None,
            between: (None, None),
        }
    }
}
