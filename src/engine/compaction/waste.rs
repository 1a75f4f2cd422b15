//! What of a table could go, and how what is above the engine says so.
//!
//! A judge looks at what a table says of itself, not at its blocks. Its word leads the strategy to
//! tables worth rewriting, and lets those go unread that nobody needs. Every table has a verdict
//! at any time: until it is judged, and after it was made by a merge, which passed the filter, it
//! counts as without waste.

use std::time::Instant;

use crate::engine::sstable::{Properties, Table};
use crate::error::Result;

/// Who needs a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needed {
    /// Perhaps someone: only a merge can tell.
    #[default]
    Perhaps,
    /// No reader; but it hides older versions of its keys, so it goes only where there are none.
    AsCover,
    /// No one, whatever lies below it.
    Never,
}

/// What a judge says of a table. Of waste once found and of a table once not needed that stays
/// true: what no reader can reach, none ever reaches again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waste {
    /// Bytes of the file that a merge through the filter would give back, roughly.
    pub bytes: u64,
    /// Whether the table may go unread.
    pub needed: Needed,
}

/// A table before its judge.
#[derive(Debug)]
pub struct Suspect<'a> {
    table: &'a Table,
}

impl<'a> Suspect<'a> {
    /// The table in question.
    pub(crate) fn new(table: &'a Table) -> Self {
        Self { table }
    }

    /// What it says of itself.
    pub fn properties(&self) -> &'a Properties {
        self.table.properties()
    }

    /// Bytes of its file.
    pub fn size(&self) -> u64 {
        self.table.file_size()
    }

    /// Roughly how many bytes of the file hold keys from `from` to before `to`, or to the end.
    /// Reads the table's index, if that is not in memory.
    pub fn bytes_between(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        let end = to.map_or(Ok(self.size()), |to| self.table.approximate_offset(to))?;
        Ok(end.saturating_sub(self.table.approximate_offset(from)?))
    }

    /// The part of the file that corresponds to `bytes` of its keys and values.
    pub fn share(&self, bytes: u64) -> u64 {
        let properties = self.properties();
        let whole = u128::from(properties.key_bytes) + u128::from(properties.value_bytes);
        let share = u128::from(self.size()) * u128::from(bytes) / whole.max(1);
        u64::try_from(share).unwrap_or(u64::MAX).min(self.size())
    }
}

/// The last word on a table.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// When it was given: at first, when the table was made or the store opened.
    pub at: Instant,
    /// What it was.
    pub waste: Waste,
}

impl Verdict {
    /// That of a table nobody has judged.
    pub fn unjudged() -> Self {
        Self { at: Instant::now(), waste: Waste::default() }
    }
}
