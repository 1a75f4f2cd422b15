//! The expiry of single hash fields, as servers from 7.4 on store it.

/// The encoding of the expiry times of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldExpiryEncoding {
    /// Milliseconds since 1970, 0 = never: release candidates of 7.4, and packed hashes.
    Absolute,
    /// One more than the milliseconds after this time, 0 = never.
    After(u64),
}

/// The expiry of a field at the time of the import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldExpiry {
    Never,
    Later,
    Over,
}

impl FieldExpiryEncoding {
    /// Classifies a stored time; `None` if it is not valid.
    pub(super) fn classify(self, stored: u64, now_ms: u64) -> Option<FieldExpiry> {
        let at = match (self, stored) {
            (_, 0) => return Some(FieldExpiry::Never),
            (Self::Absolute, at) => at,
            (Self::After(first), more) => first.checked_add(more - 1)?,
        };
        Some(if at > now_ms { FieldExpiry::Later } else { FieldExpiry::Over })
    }
}
