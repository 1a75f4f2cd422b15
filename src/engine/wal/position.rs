//! Positions in the log. They have the order of the commits.

use crate::engine::files::FileNumber;

/// A position between two records: byte `offset` of the file of segment `segment`. Segment numbers
/// only grow, so positions stay comparable after the store was opened again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// Number of the segment.
    pub segment: FileNumber,
    /// Byte offset in the segment's file.
    pub offset: u64,
}

impl LogPosition {
    /// The position of byte `offset` of `segment`.
    pub fn new(segment: FileNumber, offset: u64) -> Self {
        Self { segment, offset }
    }
}

impl std::fmt::Display for LogPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:06}:{}", self.segment, self.offset)
    }
}

/// `(segment, end)`: where a segment from before the last open ends, as the manifest records it. An
/// end of 0 means that nothing in the segment counts, and that the file may be gone.
pub type Cut = (FileNumber, u64);
