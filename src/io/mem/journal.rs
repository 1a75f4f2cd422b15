//! Unsynced changes of directory entries, in order.
//!
//! Invariants: every change is atomic, also a rename across directories. Changes become durable in
//! the order of each directory they touch. So making one durable also makes everything before it in
//! any of its directories durable.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use super::entry::{DirId, Entry};
use crate::io::splitmix::SplitMix64;

/// Binds a name in a directory to `entry`, or removes the name.
#[derive(Clone, Debug)]
pub(super) struct Rebind {
    pub(super) dir: DirId,
    pub(super) name: OsString,
    pub(super) entry: Option<Entry>,
}

/// The changes of names that one call makes atomically.
#[derive(Clone, Debug)]
pub(super) struct NameChange(pub(super) Vec<Rebind>);

impl NameChange {
    fn touches_any(&self, dirs: &BTreeSet<DirId>) -> bool {
        self.0.iter().any(|rebind| dirs.contains(&rebind.dir))
    }

    fn dirs(&self) -> impl Iterator<Item = DirId> {
        self.0.iter().map(|rebind| rebind.dir)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Journal(Vec<NameChange>);

impl Journal {
    pub(super) fn push(&mut self, change: NameChange) {
        self.0.push(change);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.0.iter().flat_map(|change| &change.0).filter_map(|rebind| rebind.entry)
    }

    /// Removes and returns the changes that a sync of `dir` makes durable, in order.
    pub(super) fn take_synced(&mut self, dir: DirId) -> Vec<NameChange> {
        let mut dirs = BTreeSet::from([dir]);
        let mut is_synced = vec![false; self.0.len()];
        for (change, synced) in self.0.iter().zip(&mut is_synced).rev() {
            *synced = change.touches_any(&dirs);
            if *synced {
                dirs.extend(change.dirs());
            }
        }
        let mut is_synced = is_synced.into_iter();
        self.0.extract_if(.., |_| is_synced.next().unwrap_or(false)).collect()
    }

    /// A random prefix of the changes of each directory, as a journaling file system leaves them. A
    /// change of two directories is in both prefixes or in neither.
    pub(super) fn random_prefix(&self, random: &mut SplitMix64) -> Vec<NameChange> {
        let mut left = BTreeMap::<DirId, u64>::new();
        for dir in self.0.iter().flat_map(NameChange::dirs) {
            *left.entry(dir).or_default() += 1;
        }
        for count in left.values_mut() {
            *count = random.below(*count + 1);
        }
        let mut kept = Vec::new();
        for change in &self.0 {
            let fits = change.dirs().all(|dir| left.get(&dir).is_some_and(|&n| n > 0));
            for dir in change.dirs() {
                left.entry(dir).and_modify(|n| *n = if fits { n.saturating_sub(1) } else { 0 });
            }
            if fits {
                kept.push(change.clone());
            }
        }
        kept
    }

    /// A random subset of the changes, in order.
    pub(super) fn random_subset(&self, random: &mut SplitMix64) -> Vec<NameChange> {
        self.0.iter().filter(|_| random.one_in(2)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::mem::entry::FileId;

    fn change(number: u64, dirs: &[u64]) -> NameChange {
        let rebind = |&dir: &u64| Rebind {
            dir: DirId(dir),
            name: "n".into(),
            entry: Some(Entry::File(FileId(number))),
        };
        NameChange(dirs.iter().map(rebind).collect())
    }

    fn numbers(changes: &[NameChange]) -> Vec<u64> {
        let number = |change: &NameChange| match change.0[0].entry {
            Some(Entry::File(FileId(number))) => number,
            _ => panic!("only files here"),
        };
        changes.iter().map(number).collect()
    }

    fn journal() -> Journal {
        let dirs: [&[u64]; 6] = [&[1], &[2], &[1, 2], &[3], &[1], &[2]];
        Journal(dirs.iter().zip(0..).map(|(dirs, number)| change(number, dirs)).collect())
    }

    #[test]
    fn a_directory_sync_takes_what_came_before_in_the_other_directory_of_a_rename() {
        let mut journal = journal();
        assert_eq!(numbers(&journal.take_synced(DirId(1))), [0, 1, 2, 4]);
        assert_eq!(numbers(&journal.0), [3, 5]);
        assert_eq!(numbers(&journal.take_synced(DirId(9))), [0; 0]);
        assert_eq!(numbers(&journal.take_synced(DirId(2))), [5]);
    }

    #[test]
    fn a_random_prefix_has_no_hole_in_any_directory() {
        let all = journal();
        let mut outcomes = BTreeSet::new();
        for seed in 0..500 {
            let kept = numbers(&all.random_prefix(&mut SplitMix64::new(seed)));
            for of_one_directory in [&[0, 2, 4][..], &[1, 2, 5], &[3]] {
                let there: Vec<_> = of_one_directory.iter().map(|n| kept.contains(n)).collect();
                assert!(there.is_sorted_by(|a, b| a >= b), "{kept:?}");
            }
            outcomes.insert(kept);
        }
        assert!(outcomes.contains(&vec![]));
        assert!(outcomes.contains(&vec![0, 1, 2, 3, 4, 5]));
        assert!(outcomes.contains(&vec![0, 3]), "directories are cut independently");
    }

    #[test]
    fn a_random_subset_can_be_any_of_them() {
        let all = journal();
        let outcomes: BTreeSet<_> =
            (0..2000).map(|s| numbers(&all.random_subset(&mut SplitMix64::new(s)))).collect();
        assert_eq!(outcomes.len(), 64);
    }
}
