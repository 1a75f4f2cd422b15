//! Merges everything readable of a tree: the newest version of each key, in order.
//!
//! A table is opened when the merge reaches its smallest key, and closed at its end, so few are
//! open at once. Unlike other merges, this one relies only on tags: not on the levels of tables,
//! and not on a sequence number being in only one of them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;

use super::catalog::ListedTable;
use super::log::LoggedWrite;
use super::{Loss, Salvaged};
use crate::engine::batch::TreeId;
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag, compare};
use crate::engine::files::table_path;
use crate::engine::sstable::TableSalvage;
use crate::error::Error;
use crate::io::fs::FileSystem;

/// A source of entries.
enum Source {
    /// A table that is not open yet.
    Waiting(ListedTable),
    Table(Box<TableSalvage>, ListedTable),
    Log(std::vec::IntoIter<LoggedWrite>, Option<LoggedWrite>),
    Done,
}

/// The next entry of a source.
struct Head {
    key: Vec<u8>,
    tag: Tag,
    source: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.key, self.tag, &other.key, other.tag).then(self.source.cmp(&other.source))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

/// A merge of the tables and the log of one tree.
pub(super) struct Merge<'a> {
    fs: &'a Arc<dyn FileSystem>,
    dir: &'a Path,
    sources: Vec<Source>,
    heads: BinaryHeap<Reverse<Head>>,
    /// The current entry.
    current: Option<(Vec<u8>, Tag, Vec<u8>)>,
    newest: Sequence,
    tables: u64,
    blocks: u64,
    bytes: u64,
    losses: Vec<Loss>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        fs: &'a Arc<dyn FileSystem>,
        dir: &'a Path,
        tables: Vec<ListedTable>,
        logged: Vec<LoggedWrite>,
    ) -> Self {
        // The log comes first, so that its entry wins among equal tags.
        let mut sources = vec![Source::Log(logged.into_iter(), None)];
        sources.extend(tables.into_iter().map(Source::Waiting));
        let mut merge = Self {
            fs,
            dir,
            sources,
            heads: BinaryHeap::new(),
            current: None,
            newest: 0,
            tables: 0,
            blocks: 0,
            bytes: 0,
            losses: Vec::new(),
        };
        for source in 0..merge.sources.len() {
            merge.enqueue(source);
        }
        merge
    }

    /// Moves to the newest version of the next live key; `false` at the end.
    pub(super) fn advance(&mut self) -> bool {
        while let Some(Reverse(head)) = self.heads.pop() {
            if matches!(self.sources.get(head.source), Some(Source::Waiting(_))) {
                self.open(head.source);
                self.step(head.source);
                continue;
            }
            let value = self.value_of(head.source);
            self.newest = self.newest.max(head.tag.sequence());
            self.step(head.source);
            let shadowed = self.current.as_ref().is_some_and(|(key, _, _)| *key == head.key);
            if shadowed {
                continue;
            }
            let deleted = head.tag.is_delete();
            self.current = Some((head.key, head.tag, value));
            if !deleted {
                return true;
            }
        }
        self.current = None;
        false
    }

    pub(super) fn entry(&self) -> Option<(&[u8], Tag, &[u8])> {
        self.current.as_ref().map(|(key, tag, value)| (&key[..], *tag, &value[..]))
    }

    /// The newest sequence number found so far.
    pub(super) fn newest(&self) -> Sequence {
        self.newest
    }

    /// Total size of the tables read to their end.
    pub(super) fn bytes_done(&self) -> u64 {
        self.bytes
    }

    /// Adds the counts and losses of this merge to the report.
    pub(super) fn account(self, tree: TreeId, report: &mut Salvaged) {
        report.tables += self.tables;
        report.blocks += self.blocks;
        let losses = self.losses.into_iter().map(|loss| Loss { tree: Some(tree), ..loss });
        report.losses.extend(losses);
    }

    fn open(&mut self, source: usize) {
        let Some(slot) = self.sources.get_mut(source) else { return };
        let Source::Waiting(listed) = std::mem::replace(slot, Source::Done) else { return };
        let path = table_path(self.dir, listed.number);
        let opened = self.fs.open(&path).map_err(|e| Error::io("open", &path, &e));
        match opened.and_then(|file| TableSalvage::open(file, path.clone(), listed.number)) {
            Ok(table) => {
                self.tables += 1;
                let lower = listed.raised.then(|| listed.smallest.clone());
                let table = table.starting_at(lower);
                *slot = Source::Table(Box::new(table), listed);
            }
            Err(error) => {
                let loss = Loss::of_file(&path, error.message());
                self.losses.push(Loss { bytes: listed.size, ..loss });
            }
        }
    }

    /// Advances a source and puts it back into the heap.
    fn step(&mut self, source: usize) {
        let before = self.key_of(source);
        let mut damaged = Vec::new();
        let mut ended = false;
        match self.sources.get_mut(source) {
            Some(Source::Table(table, _)) => {
                ended = !table.advance();
                damaged = table.take_unreadable();
            }
            Some(Source::Log(rest, now)) => *now = rest.next(),
            _ => {}
        }
        if !damaged.is_empty() {
            let after = self.key_of(source).filter(|_| !ended);
            let path = self.path_of(source);
            self.losses.extend(damaged.into_iter().map(|part| Loss {
                file: path.clone(),
                offset: part.range.start,
                bytes: part.range.end.saturating_sub(part.range.start),
                detail: part.cause.message().to_owned(),
                tree: None,
                between: (before.clone(), after.clone()),
            }));
        }
        if ended {
            self.finish(source);
        } else {
            self.enqueue(source);
        }
    }

    fn finish(&mut self, source: usize) {
        let Some(slot) = self.sources.get_mut(source) else { return };
        if let Source::Table(table, listed) = std::mem::replace(slot, Source::Done) {
            self.blocks += table.blocks_read();
            self.bytes += listed.size;
        }
    }

    fn enqueue(&mut self, source: usize) {
        let head = match self.sources.get_mut(source) {
            Some(Source::Waiting(listed)) => {
                Some((listed.smallest.to_vec(), Tag::newest_at(MAX_SEQUENCE)))
            }
            Some(Source::Table(table, _)) => table.entry().map(|(key, tag, _)| (key.to_vec(), tag)),
            Some(Source::Log(rest, now)) => {
                if now.is_none() {
                    *now = rest.next();
                }
                now.as_ref().map(|logged| (logged.key.to_vec(), logged.tag))
            }
            Some(Source::Done) | None => None,
        };
        if let Some((key, tag)) = head {
            self.heads.push(Reverse(Head { key, tag, source }));
        }
    }

    fn key_of(&self, source: usize) -> Option<Vec<u8>> {
        match self.sources.get(source)? {
            Source::Table(table, _) => table.entry().map(|(key, _, _)| key.to_vec()),
            _ => None,
        }
    }

    fn value_of(&self, source: usize) -> Vec<u8> {
        match self.sources.get(source) {
            Some(Source::Table(table, _)) => {
                table.entry().map_or_else(Vec::new, |(_, _, value)| value.to_vec())
            }
            Some(Source::Log(_, Some(now))) => now.value.to_vec(),
            _ => Vec::new(),
        }
    }

    fn path_of(&self, source: usize) -> std::path::PathBuf {
        match self.sources.get(source) {
            Some(Source::Table(_, listed)) => table_path(self.dir, listed.number),
            _ => self.dir.to_owned(),
        }
    }
}

impl std::fmt::Debug for Merge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("tables", &self.tables).finish_non_exhaustive()
    }
}
