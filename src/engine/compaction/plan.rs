//! Compaction plans: what the picker decides and the compactor carries out.

use std::sync::Arc;

use crate::engine::version::TableFile;

/// Why a merge was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Level 0 has too many files.
    Level0,
    /// A level is larger than its target.
    Size,
    /// A file holds mostly tombstones.
    Tombstones,
    /// A file is mostly garbage.
    Garbage,
    /// The user asked for it.
    Manual,
}

/// One compaction of one tree.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Merges files and writes the result to one level.
    Merge {
        /// The files to merge by level, upper levels first.
        inputs: Vec<(usize, Vec<Arc<TableFile>>)>,
        /// The level of the result.
        output_level: usize,
        /// Why the files are merged.
        reason: Reason,
    },
    /// Moves files to a deeper level without reading them.
    Move {
        /// The level the files are in.
        from: usize,
        /// The level the files move to.
        to: usize,
        /// The files.
        files: Vec<Arc<TableFile>>,
    },
    /// Drops files without reading them, since no reader can see anything in them.
    Drop {
        /// The level the files are in.
        level: usize,
        /// The files.
        files: Vec<Arc<TableFile>>,
    },
}

impl Plan {
    /// The files of the plan with their levels.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        let (merged, others) = match self {
            Self::Merge { inputs, .. } => (inputs.as_slice(), None),
            Self::Move { from, files, .. } => (&[][..], Some((*from, files))),
            Self::Drop { level, files } => (&[][..], Some((*level, files))),
        };
        let merged = merged.iter().flat_map(|(level, files)| files.iter().map(|f| (*level, f)));
        merged.chain(
            others.into_iter().flat_map(|(level, files)| files.iter().map(move |f| (level, f))),
        )
    }

    /// Total size of the files of the plan.
    pub fn input_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.meta().size).sum()
    }
}
