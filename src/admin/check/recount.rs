//! Compares the number of rows that the engine tells for a collection with those that a walk meets.

use crate::encoding::keys::after_prefix;
use crate::engine::{Reader, TreeId};
use crate::error::Result;
use crate::keyspace::trees::SCORE;

/// The number of rows between two comparisons.
const STRETCH: u64 = 1024;

/// Counts the rows that a walk meets, and compares their number from time to time.
pub(super) struct Recount<'c> {
    reader: &'c Reader,
    tree: TreeId,
    prefix: &'c [u8],
    is_counted: bool,
    walked: u64,
    /// The first difference: the rows walked and the rows told.
    wrong: Option<(u64, u64)>,
}

impl<'c> Recount<'c> {
    /// Begins with the rows that have this prefix. If they are not counted, nothing is compared.
    pub(super) fn new(
        reader: &'c Reader,
        tree: TreeId,
        prefix: &'c [u8],
        is_counted: bool,
    ) -> Self {
        Self { reader, tree, prefix, is_counted, walked: 0, wrong: None }
    }

    /// Notes that the walk has met a row.
    pub(super) fn row(&mut self, key: &[u8]) -> Result<()> {
        if self.walked.is_multiple_of(STRETCH) {
            self.compare(key)?;
        }
        self.walked += 1;
        Ok(())
    }

    /// Ends the walk: the number of rows it met, and what is wrong with the number that the engine
    /// tells.
    pub(super) fn finish(mut self) -> Result<(u64, Option<String>)> {
        self.compare(&after_prefix(self.prefix).unwrap_or_default())?;
        let wrong = self.wrong.map(|(walked, told)| {
            let rows = if self.tree == SCORE { "scores" } else { "members" };
            format!("{told} {rows} are counted where there are {walked}")
        });
        Ok((self.walked, wrong))
    }

    fn compare(&mut self, end: &[u8]) -> Result<()> {
        if self.is_counted && self.wrong.is_none() {
            let told = self.reader.count(self.tree, self.prefix, end)?;
            self.wrong = (told != self.walked).then_some((self.walked, told));
        }
        Ok(())
    }
}
