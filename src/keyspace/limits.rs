//! The longest key and value a store accepts.

use crate::encoding::packed;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// The limits that the user's options set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a key.
    pub key: u64,
    /// The most bytes of a value, field, member or element.
    pub value: u64,
}

/// The longest physical key or value that a table can hold.
const ENGINE_MAX: u64 = 1 << 30;

impl Limits {
    /// Fails if the key is too long.
    #[inline]
    pub fn check_key(&self, key: &[u8]) -> Result<()> {
        self.check_key_len(key.len())
    }

    /// Fails if the value is too long.
    #[inline]
    pub fn check_value(&self, value: &[u8]) -> Result<()> {
        self.check_value_len(value.len())
    }

    /// Fails if a key of this length is too long.
    #[inline]
    pub fn check_key_len(&self, len: usize) -> Result<()> {
        check_len("key", len, "max_key_bytes", self.key)
    }

    /// Fails if a value of this length is too long.
    #[inline]
    pub fn check_value_len(&self, len: usize) -> Result<()> {
        check_len("value", len, "max_value_bytes", self.value)
    }

    /// Derives the options of the engine, whose keys are longer than the user's: a row's key holds
    /// the escaped user key and a member.
    pub(crate) fn widen(&self, mut options: Options) -> Options {
        let wrapped = |bytes: u64| bytes.saturating_add(64).min(ENGINE_MAX);
        // A record may hold a whole packed collection, and a row a chunk of a string. They were
        // accepted once, so they can always be written again.
        let member = self.value.max(packed::MOST_BYTES).max(options.chunk_bytes);
        options.max_key_bytes = wrapped(self.key.saturating_mul(2).saturating_add(member));
        options.max_value_bytes = wrapped(member);
        options
    }
}

#[inline]
fn check_len(what: &str, len: usize, option: &str, limit: u64) -> Result<()> {
    if len as u64 <= limit {
        return Ok(());
    }
    let message = format!("the {what} has {len} bytes, the store accepts {limit}: see {option}");
    Err(Error::new(ErrorKind::TooLarge, message))
}
