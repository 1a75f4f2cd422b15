//! What a crash leaves of a file system: a new one, drawn from the unsynced changes by a seed.
//!
//! Names and bytes are lost independently, as they are on disk: a name can survive without the
//! bytes of its file. A write never survives in units smaller than a 512-byte sector.

use std::collections::{BTreeMap, BTreeSet};

use super::content::{Change, Content};
use super::journal::{Journal, NameChange};
use super::pages::Pages;
use super::tree::{Entry, FileId, ROOT, Tree};
use crate::io::splitmix::{SplitMix64, mix};

/// What a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// What happens to that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashMode {
    /// The process died: nothing is lost, and what was not synced still is not, so that a power
    /// cut after it can take it away.
    KeepAll,
    /// Power cut: exactly the durable state is left.
    DropUnsynced,
    /// Power cut on a journaling file system: each directory keeps a prefix of its changes of
    /// names; each file loses all, nothing, everything after some write (that one torn), or each
    /// of its sectors stays as it was after any of the writes to it.
    Ordered,
    /// Power cut, at its worst: any subset of the changes of names and of the writes survives, and
    /// of each write any of its sectors.
    Chaotic,
}

impl CrashMode {
    /// All modes, for tests that go through them.
    pub const ALL: [Self; 4] = [Self::KeepAll, Self::DropUnsynced, Self::Ordered, Self::Chaotic];
}

impl Tree {
    /// The same file system with nothing open.
    pub(super) fn without_handles(&self) -> Tree {
        let mut tree = self.clone();
        for file in tree.files.values_mut() {
            file.handles = 0;
        }
        tree.empty_limbo();
        tree.recount_used();
        tree
    }

    /// The file system after a crash.
    pub(super) fn crashed(&self, seed: u64, mode: CrashMode) -> Tree {
        if mode == CrashMode::KeepAll || !self.tracked {
            return self.without_handles();
        }
        let mut random = SplitMix64::new(seed);
        let mut tree = self.clone();
        for change in self.surviving_names(mode, &mut random) {
            tree.make_durable(&change);
        }
        tree.journal = Journal::default();
        tree.limbo.clear();
        for dir in tree.dirs.values_mut() {
            dir.current.clone_from(&dir.durable);
        }
        tree.keep_only_reachable();
        for file in tree.files.values_mut() {
            file.content = Content::settled(surviving_bytes(&file.content, mode, &mut random));
        }
        tree.recount_used();
        tree
    }

    fn surviving_names(&self, mode: CrashMode, random: &mut SplitMix64) -> Vec<NameChange> {
        match mode {
            CrashMode::KeepAll | CrashMode::DropUnsynced => Vec::new(),
            CrashMode::Ordered => self.journal.random_prefix(random),
            CrashMode::Chaotic => self.journal.random_subset(random),
        }
    }

    /// Drops what no name leads to, and counts the names of the rest.
    fn keep_only_reachable(&mut self) {
        let mut names = BTreeMap::<FileId, u32>::new();
        let mut dirs = BTreeSet::from([ROOT]);
        let mut left = vec![ROOT];
        while let Some(dir) = left.pop() {
            for entry in self.dirs.get(&dir).into_iter().flat_map(|dir| dir.current.values()) {
                match *entry {
                    Entry::File(id) => *names.entry(id).or_default() += 1,
                    Entry::Dir(id) => {
                        dirs.insert(id);
                        left.push(id);
                    }
                }
            }
        }
        self.dirs.retain(|id, _| dirs.contains(id));
        self.files.retain(|id, file| {
            file.handles = 0;
            file.names = names.get(id).copied().unwrap_or(0);
            file.names > 0
        });
    }
}

fn surviving_bytes(content: &Content, mode: CrashMode, random: &mut SplitMix64) -> Pages {
    match mode {
        CrashMode::KeepAll => content.current().clone(),
        CrashMode::DropUnsynced => content.durable().clone(),
        CrashMode::Ordered => match random.below(4) {
            0 => content.durable().clone(),
            1 => content.current().clone(),
            2 => cut_after_some_write(content, random),
            _ => each_sector_at_some_time(content, random),
        },
        CrashMode::Chaotic => any_subset(content, random),
    }
}

/// The first writes are whole, one is torn, the others are lost.
fn cut_after_some_write(content: &Content, random: &mut SplitMix64) -> Pages {
    let mut image = content.durable().clone();
    let changes = content.unsynced();
    let whole = usize::try_from(random.below(changes.len() as u64 + 1)).unwrap_or(0);
    for change in changes.iter().take(whole) {
        apply(&mut image, change);
    }
    if let Some(change) = changes.get(whole) {
        tear(&mut image, change, random);
    }
    image
}

/// Sectors reach the disk in any order, but each holds what it held in memory at some time: the
/// writes to it up to that time, and none after. The length has such a time too, so that a file
/// can be long and its bytes missing.
fn each_sector_at_some_time(content: &Content, random: &mut SplitMix64) -> Pages {
    let mut image = content.durable().clone();
    let changes = content.unsynced();
    let salt = random.next_u64();
    let end_of_time = |sector: u64| mix(salt ^ mix(sector)) % (changes.len() as u64 + 1);
    let end_of_lengths = random.below(changes.len() as u64 + 1);
    for (change, time) in changes.iter().zip(0..) {
        match change {
            Change::Write { offset, bytes } => {
                for (at, piece) in sectors(*offset, bytes) {
                    if time < end_of_time(at / SECTOR) {
                        image.write_at(piece, at);
                    }
                }
                if time < end_of_lengths {
                    image.grow_to(offset + bytes.len() as u64);
                }
            }
            Change::Length(len) if time < end_of_lengths => image.set_len(*len),
            Change::Length(_) => {}
        }
    }
    image
}

/// Each write is lost, whole or torn, whatever became of the others.
fn any_subset(content: &Content, random: &mut SplitMix64) -> Pages {
    let mut image = content.durable().clone();
    for change in content.unsynced() {
        match random.below(3) {
            0 => {}
            1 => apply(&mut image, change),
            _ => tear(&mut image, change, random),
        }
    }
    image
}

fn apply(image: &mut Pages, change: &Change) {
    match change {
        Change::Write { offset, bytes } => image.write_at(bytes, *offset),
        Change::Length(len) => image.set_len(*len),
    }
}

/// Applies any of a write's sectors; and sometimes its length, with none of its bytes behind it.
fn tear(image: &mut Pages, change: &Change, random: &mut SplitMix64) {
    let Change::Write { offset, bytes } = change else { return };
    for (at, piece) in sectors(*offset, bytes) {
        if random.one_in(2) {
            image.write_at(piece, at);
        }
    }
    if random.one_in(4) {
        image.grow_to(offset + bytes.len() as u64);
    }
}

/// A write's pieces, none across a sector's border, with their offsets.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let (mut at, mut rest) = (offset, bytes);
    std::iter::from_fn(move || {
        let to_border = usize::try_from(SECTOR - at % SECTOR).unwrap_or(usize::MAX);
        let (piece, later) = rest.split_at(rest.len().min(to_border));
        let start = at;
        at += piece.len() as u64;
        rest = later;
        (!piece.is_empty()).then_some((start, piece))
    })
}
