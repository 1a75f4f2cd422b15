//! Options of SET and GETEX.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};

/// When a key ceases to exist. Zero and less are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// EX: so many seconds from now.
    Seconds(i64),
    /// PX: so many milliseconds from now.
    Milliseconds(i64),
    /// EXAT: at this second since 1970.
    AtSeconds(i64),
    /// PXAT: at this millisecond since 1970.
    AtMilliseconds(i64),
}

impl Expiry {
    /// In milliseconds since 1970, for the command of that name.
    pub(crate) fn deadline(self, now_ms: u64, command: &str) -> Result<u64> {
        let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
        let deadline = match self {
            Self::Seconds(n) => n.checked_mul(1000).and_then(|ms| ms.checked_add(now)),
            Self::Milliseconds(n) => n.checked_add(now),
            Self::AtSeconds(n) => n.checked_mul(1000),
            Self::AtMilliseconds(n) => Some(n),
        };
        let (Self::Seconds(given)
        | Self::Milliseconds(given)
        | Self::AtSeconds(given)
        | Self::AtMilliseconds(given)) = self;
        deadline.filter(|_| given > 0).and_then(|ms| u64::try_from(ms).ok()).ok_or_else(|| {
            let message = format!("ERR invalid expire time in '{command}' command");
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

/// When SET writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// In any case.
    #[default]
    Always,
    /// NX: if the key does not exist.
    IfMissing,
    /// XX: if the key exists.
    IfExists,
}

/// Until when SET writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetExpiry {
    /// For good.
    #[default]
    Never,
    /// KEEPTTL: as long as the key would have lived.
    Keep,
    /// EX, PX, EXAT, PXAT.
    At(Expiry),
}

/// What GETEX does to the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GetExpiry {
    /// Nothing.
    #[default]
    Keep,
    /// PERSIST: removes it.
    Persist,
    /// EX, PX, EXAT, PXAT.
    At(Expiry),
}

/// Options of SET; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// NX, XX.
    pub condition: Condition,
    /// EX, PX, EXAT, PXAT, KEEPTTL.
    pub expiry: SetExpiry,
    /// GET: the old value is asked for; it is an error if that is no string.
    pub get: bool,
}

/// What SET did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    /// Whether the condition held.
    pub written: bool,
    /// The value the key had, if it was asked for.
    pub old: Option<Bytes>,
}
