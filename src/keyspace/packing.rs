//! How large a collection may be to be stored inside its record.

use crate::encoding::packed::{MOST_BYTES, MOST_MEMBERS, Packed};
use crate::options::Options;

/// The limits of a packed collection: the user's options, capped so that a packed record can always
/// be rewritten on a full disk and inside a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackingLimits {
    /// The largest number of members.
    pub(crate) members: u64,
    /// The largest number of bytes of all members and values.
    pub(crate) bytes: usize,
}

impl PackingLimits {
    /// Derives the limits from the options. A removal rewrites every remaining member, so the size
    /// never exceeds `spare_bytes` or a quarter of a transaction's limit.
    pub(crate) fn new(options: &Options, spare_bytes: usize) -> Self {
        let bytes = u64::from(options.packed_max_bytes).min(MOST_BYTES);
        let bytes = usize::try_from(bytes.min(options.txn_max_bytes / 4)).unwrap_or(0);
        Self {
            members: u64::from(options.packed_max_members.min(MOST_MEMBERS)),
            bytes: bytes.min(spare_bytes),
        }
    }

    /// Whether the members fit into a record.
    pub(crate) fn fits(self, packed: &Packed) -> bool {
        packed.size() <= self.members && packed.bytes().len() <= self.bytes
    }

    /// Whether new collections start packed.
    pub(crate) fn is_enabled(self) -> bool {
        self.members > 0
    }
}
