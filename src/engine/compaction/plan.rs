//! What a strategy decides and the executor carries out.

use std::sync::Arc;

use crate::engine::version::TableFile;

/// Why a plan was made, for the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Level 0 has too many files.
    Level0,
    /// A level is larger than its target.
    Size,
    /// A file holds mostly tombstones.
    Tombstones,
    /// Much of a file is what the filter would let go.
    Waste,
    /// The user asked.
    Manual,
}

/// One step of compaction in one tree.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Merge files and write the result to a level.
    Merge {
        /// Files by level, upper levels first.
        inputs: Vec<(usize, Vec<Arc<TableFile>>)>,
        /// Where the result goes.
        output_level: usize,
        /// Why.
        reason: Reason,
    },
    /// Give files to a deeper level as they are.
    Move {
        /// The level they are in.
        from: usize,
        /// The level they go to.
        to: usize,
        /// The files.
        files: Vec<Arc<TableFile>>,
    },
    /// Remove files unread: nothing in them can be seen any more.
    Drop {
        /// The level they are in.
        level: usize,
        /// The files.
        files: Vec<Arc<TableFile>>,
    },
}

impl Plan {
    /// All files of the plan with their levels.
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

    /// Bytes to be read.
    pub fn input_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.meta().size).sum()
    }
}
