//! When single fields of a hash expire, as servers from 7.4 on store it.

/// How the times of a hash are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldTimes {
    /// In milliseconds since 1970, 0 = never: release candidates of 7.4, and packed hashes.
    Absolute,
    /// One more than the milliseconds after this time, 0 = never.
    After(u64),
}

/// What a field's time means for an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldTime {
    Never,
    Later,
    Over,
}

impl FieldTimes {
    /// What a stored time means now; nothing if it cannot be one.
    pub(super) fn judge(self, stored: u64, now_ms: u64) -> Option<FieldTime> {
        let at = match (self, stored) {
            (_, 0) => return Some(FieldTime::Never),
            (Self::Absolute, at) => at,
            (Self::After(first), more) => first.checked_add(more - 1)?,
        };
        Some(if at > now_ms { FieldTime::Later } else { FieldTime::Over })
    }
}
