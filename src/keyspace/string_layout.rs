//! Which strings are kept in chunks, and how large the chunks are.

use crate::options::Options;

/// How strings are written. Each is read as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringLayout {
    /// The most bytes of a string that is kept whole in its record.
    pub(crate) inline_bytes: u64,
    /// The chunks of longer ones have `1 << shift` bytes.
    pub(crate) shift: u8,
}

impl StringLayout {
    /// Derives the layout from the options, which were validated.
    pub(crate) fn new(options: &Options) -> Self {
        let shift = u8::try_from(options.chunk_bytes.ilog2()).unwrap_or(u8::MAX);
        Self { inline_bytes: options.inline_max_bytes, shift }
    }

    /// Whether a string of this length is kept in chunks.
    #[inline]
    pub(crate) fn is_large(self, len: usize) -> bool {
        len as u64 > self.inline_bytes
    }
}
