//! What a crash leaves of a file system: a new file system, in which a seed decides about the
//! unsynced changes.
//!
//! Names and bytes are lost independently, as on a disk: a name can survive without the bytes of
//! its file. A write survives in units of 512-byte sectors.

use std::collections::{BTreeMap, BTreeSet};

use super::content::{Change, Content};
use super::entry::{Entry, FileId};
use super::journal::{Journal, NameChange};
use super::pages::Pages;
use super::tree::{ROOT, Tree};
use crate::io::splitmix::{SplitMix64, mix};

/// The unit that a disk writes as a whole or not at all.
const SECTOR: u64 = 512;

/// What happens to unsynced changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashMode {
    /// The process died: nothing is lost, and unsynced changes stay unsynced, so that a later power
    /// cut can lose them.
    KeepAll,
    /// A power cut that leaves exactly the durable state.
    DropUnsynced,
    /// A power cut on a journaling file system. Each directory keeps a prefix of its changes of
    /// names. Each file loses all changes, no change, or everything after some write, which is
    /// torn; or each of its sectors is as after some of the writes to it.
    Ordered,
    /// The worst power cut: any subset of the changes of names and of the writes survives, and any
    /// of the sectors of each write.
    Chaotic,
}

impl CrashMode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::KeepAll, Self::DropUnsynced, Self::Ordered, Self::Chaotic];
}

impl Tree {
    /// A copy of the file system with no open files.
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

    /// Removes what no name leads to, and counts the names of the rest.
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

/// The first writes survive, one is torn, and the others are lost.
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

/// Sectors reach the disk in any order. Each has the content it had in memory at some time: the
/// writes to it up to that time, and none after. So does the length, so that a file can be long
/// without its bytes.
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

/// Each write is lost, complete or torn, independently of the others.
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

/// Applies any of the sectors of a write, and sometimes its length without its bytes.
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

/// The pieces of a write per sector, with their offsets.
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
