//! Options of SET and GETEX.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};

/// When a key expires. Zero and negative numbers are errors.
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
    /// The expiry in milliseconds since 1970; errors name the command.
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
    /// SET writes whether the key exists or not.
    #[default]
    Always,
    /// NX: if the key does not exist.
    IfMissing,
    /// XX: if the key exists.
    IfExists,
}

/// The expiry that SET gives the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetExpiry {
    /// The key does not expire.
    #[default]
    Never,
    /// KEEPTTL: the expiry that the key has.
    Keep,
    /// EX, PX, EXAT, PXAT: this expiry.
    At(Expiry),
}

/// What GETEX does to the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GetExpiry {
    /// GETEX leaves the expiry as it is.
    #[default]
    Keep,
    /// PERSIST: GETEX removes the expiry.
    Persist,
    /// EX, PX, EXAT, PXAT: this expiry.
    At(Expiry),
}

/// The options of SET. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// NX, XX: when to write.
    pub condition: Condition,
    /// EX, PX, EXAT, PXAT, KEEPTTL: the expiry.
    pub expiry: SetExpiry,
    /// GET: return the old value, and fail if it is no string.
    pub get: bool,
}

/// The result of SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    /// Whether the condition held.
    pub written: bool,
    /// The old value of the key, if it was asked for.
    pub old: Option<Bytes>,
}
