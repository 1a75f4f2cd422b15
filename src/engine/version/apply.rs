//! What a version edit changes, and a whole version as one edit.

use std::sync::Arc;

use super::edit::{LogState, VersionEdit};
use super::file::{FileMeta, TableFile};
use super::levels::{Levels, Version};
use crate::engine::batch::TreeId;
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::hash::HashSeed;

impl Version {
    /// The version after `edit`; `None` if the edit does not fit this version. A file that only
    /// changes its level keeps its open reader; `open` makes the others, also those whose smallest
    /// key was raised.
    pub(crate) fn apply(
        &self,
        edit: &VersionEdit,
        open: &dyn Fn(usize, FileMeta) -> Option<Arc<TableFile>>,
    ) -> Option<Self> {
        let mut trees: Vec<Levels> = self.trees.iter().map(|levels| (**levels).clone()).collect();
        let mut removed = Vec::new();
        for (tree, level, number) in &edit.removed {
            removed.push(trees.get_mut(tree.index())?.take(*level as usize, *number)?);
        }
        for (tree, level, meta) in &edit.added {
            let known = removed.iter().find(|file| file.meta().number == meta.number);
            let file = match known {
                Some(file) if file.meta() == meta => Arc::clone(file),
                Some(file) => Arc::new(file.raised(meta.clone())),
                None => open(tree.index(), meta.clone())?,
            };
            let levels = trees.get_mut(tree.index())?;
            *levels = std::mem::take(levels).with_added(*level as usize, file)?;
        }
        trees.iter().all(|levels| levels.first_overlap().is_none()).then_some(())?;
        Some(Self { trees: trees.into_iter().map(Arc::new).collect() })
    }

    /// The files that `edit` removes from the store. Files that it moves are not among them.
    pub(crate) fn removed_by(&self, edit: &VersionEdit) -> Vec<Arc<TableFile>> {
        let moved =
            |number: &FileNumber| edit.added.iter().any(|(_, _, meta)| meta.number == *number);
        edit.removed
            .iter()
            .filter(|(_, _, number)| !moved(number))
            .filter_map(|(tree, level, number)| {
                let files = self.trees.get(tree.index())?.level(*level as usize);
                files.iter().find(|file| file.meta().number == *number).cloned()
            })
            .collect()
    }

    /// This version as one edit: the first record of a manifest. `names` are those of the trees.
    pub(crate) fn as_edit<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        log: LogState,
        next_file: FileNumber,
        last_sequence: Sequence,
        hash_seed: HashSeed,
        counted_from: Sequence,
    ) -> VersionEdit {
        let mut added = Vec::new();
        for (tree, levels) in (0u8..).zip(&self.trees) {
            for (level, files) in (0u8..).zip(levels.iter().map(|(_, files)| files)) {
                added.extend(files.iter().map(|file| (TreeId(tree), level, file.meta().clone())));
            }
        }
        VersionEdit {
            next_file: Some(next_file),
            last_sequence: Some(last_sequence),
            hash_seed: Some(hash_seed),
            counted_from: Some(counted_from),
            log: Some(log),
            added,
            removed: Vec::new(),
            trees: names.map(|name| name.as_bytes().to_vec()).collect(),
        }
    }
}
