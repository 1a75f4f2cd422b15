//! The longest key and value a store accepts.

use crate::encoding::packed;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// As the user set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key.
    pub key: u64,
    /// Bytes of a value, field, member or element.
    pub value: u64,
}

/// Longest physical key or value of a table.
const ENGINE_MAX: u64 = 1 << 30;

impl Limits {
    /// An error for a key that is too long.
    #[inline]
    pub fn check_key(&self, key: &[u8]) -> Result<()> {
        self.check_key_len(key.len())
    }

    /// An error for a value that is too long.
    #[inline]
    pub fn check_value(&self, value: &[u8]) -> Result<()> {
        self.check_value_len(value.len())
    }

    /// [`Limits::check_key`] before there is a slice.
    #[inline]
    pub fn check_key_len(&self, len: usize) -> Result<()> {
        check_len("key", len, "max_key_bytes", self.key)
    }

    /// [`Limits::check_value`] before there is a slice.
    #[inline]
    pub fn check_value_len(&self, len: usize) -> Result<()> {
        check_len("value", len, "max_value_bytes", self.value)
    }

    /// The options for the engine, which sees keys and values in our wrapping: a row's key holds
    /// the user key, escaped, and a member.
    pub(crate) fn widen(&self, mut options: Options) -> Options {
        let wrapped = |bytes: u64| bytes.saturating_add(64).min(ENGINE_MAX);
        // A record may hold a whole collection, and its members were accepted once: they can
        // always have rows.
        let member = self.value.max(packed::MOST_BYTES);
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
