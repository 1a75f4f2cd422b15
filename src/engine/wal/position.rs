//! Positions in the log, ordered as the commits are.

use crate::engine::files::FileNumber;

/// A place between two records: byte `offset` of the file of segment `segment`. Segment numbers
/// only grow, so positions of all lives of a store are in one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// Number of the segment.
    pub segment: FileNumber,
    /// Byte offset in the segment's file.
    pub offset: u64,
}

impl LogPosition {
    /// Byte `offset` of `segment`.
    pub fn new(segment: FileNumber, offset: u64) -> Self {
        Self { segment, offset }
    }
}

impl std::fmt::Display for LogPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:06}:{}", self.segment, self.offset)
    }
}

/// `(segment, end)`: where a segment of an earlier life ends, as the manifest records it. An end
/// of 0 says that nothing in the segment counts, and that it may be gone.
pub type Cut = (FileNumber, u64);
