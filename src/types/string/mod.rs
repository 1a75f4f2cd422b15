//! Strings: bytes in the record of their key or, if they are many, in chunks.
//!
//! - here: whole values of one or many keys; `set`: SET and its older forms; `options`: its options;
//! - `chunks`: strings in chunks; `writer`: their making; `staged`: strings that come in parts;
//!   `draft`: strings under change;
//! - `range`: parts of a value; `counter`: values that are numbers;
//!   `lcs`: the longest common subsequence of two values.

pub(crate) mod chunks;
mod counter;
mod draft;
mod lcs;
#[cfg(test)]
mod model_tests;
mod options;
#[cfg(test)]
mod power_cut_tests;
mod range;
mod set;
#[cfg(feature = "server")]
mod staged;
#[cfg(test)]
mod tests;
mod writer;

use bytes::Bytes;

use crate::encoding::meta::{Type, encode_string, with_expiry};
use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::db::commands;
use crate::txn::{Record, Tx};

use chunks::StringValue;
pub use lcs::{Lcs, LcsMatch};
pub use options::{Condition, Expiry, GetExpiry, SetExpiry, SetOptions, SetOutcome};
pub(crate) use range::{clamp, resolve};
#[cfg(feature = "server")]
pub(crate) use staged::StagedString;

commands! {
    /// GETEX: the value of `key`, whose expiry changes as `expiry` says.
    write [key] fn getex(key: &[u8], expiry: GetExpiry) -> Option<Bytes>;
    /// SET: sets the value of `key`, replacing a value of any type and its expiry.
    write [key] fn set(key: &[u8], value: &[u8]) -> ();
    /// SET with options: sets the value of `key` as the options say.
    write [key] fn set_with(key: &[u8], value: &[u8], options: SetOptions) -> SetOutcome;
}

impl Tx<'_> {
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.typed(key, Type::String)? {
            Some(record) => self.value_of(key, record).map(Some),
            None => Ok(None),
        }
    }

    /// The value of a string with this record.
    #[inline]
    pub(crate) fn value_of(&self, key: &[u8], record: Record) -> Result<Bytes> {
        record.whole_value().or_else(|record| self.value_in_chunks(key, record))
    }

    #[cold]
    fn value_in_chunks(&self, key: &[u8], record: Record) -> Result<Bytes> {
        let value = StringValue::of(self, key, record.into_string(key)?);
        value.range(self, 0..value.len())
    }

    /// Hands out the value of a string in parts, if `begin` wants it, which is told its length.
    /// Returns whether the key exists.
    pub(crate) fn get_parts(
        &self,
        key: &[u8],
        begin: impl FnOnce(usize) -> bool,
        mut part: impl FnMut(&[u8]),
    ) -> Result<bool> {
        let Some(value) = self.string(key)? else { return Ok(false) };
        match (begin(value.len()), value) {
            (false, _) => {}
            (true, StringValue::Whole(value)) => part(&value),
            (true, StringValue::Chunked(string)) => {
                string.each_part(self, 0..string.chunks.len, part)?;
            }
        }
        Ok(true)
    }

    /// The value of a string, without reading more than its record.
    pub(crate) fn string(&self, key: &[u8]) -> Result<Option<StringValue>> {
        match self.typed(key, Type::String)? {
            Some(record) => Ok(Some(StringValue::of(self, key, record.into_string(key)?))),
            None => Ok(None),
        }
    }

    pub(crate) fn getdel(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.as_read(|tx| tx.get(key))?;
        if value.is_some() {
            self.frees_space();
            self.delete_record(key);
            self.notify(Classes::GENERIC, "del", key);
        }
        Ok(value)
    }

    pub(crate) fn getex(&mut self, key: &[u8], expiry: GetExpiry) -> Result<Option<Bytes>> {
        let record = self.as_read(|tx| tx.typed(key, Type::String))?;
        let Some(record) = record else { return Ok(None) };
        match expiry {
            GetExpiry::Keep => {}
            GetExpiry::Persist if record.header.expire_ms == 0 => {}
            GetExpiry::Persist => {
                self.put_deadline(key, &record, 0)?;
                self.notify(Classes::GENERIC, "persist", key);
            }
            GetExpiry::At(expiry) => {
                let deadline = expiry.deadline(self.now(), "getex")?;
                self.put_deadline(key, &record, deadline)?;
                let passed = deadline <= self.now();
                self.notify(Classes::GENERIC, if passed { "del" } else { "expire" }, key);
            }
        }
        self.value_of(key, record).map(Some)
    }

    pub(crate) fn mget(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().map(|key| self.get_if_string(key)).collect()
    }

    /// The value of a string; `None` for a key of another type.
    fn get_if_string(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.record(key)? {
            Some(record) if record.header.kind == Type::String => {
                self.value_of(key, record).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The value of a string, without reading more than its record; `None` for a key of another
    /// type.
    pub(crate) fn string_or_none(&self, key: &[u8]) -> Result<Option<StringValue>> {
        match self.record(key)? {
            Some(record) if record.header.kind == Type::String => {
                Ok(Some(StringValue::of(self, key, record.into_string(key)?)))
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn mset(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    pub(crate) fn msetnx(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        for (key, _) in pairs {
            if self.record(key)?.is_some() {
                return Ok(false);
            }
        }
        self.mset(pairs)?;
        Ok(true)
    }

    pub(crate) fn strlen(&self, key: &[u8]) -> Result<i64> {
        Ok(self.string(key)?.map_or(0, |value| length(value.len())))
    }

    /// Sets the value and expiry of a key, whatever it held; 0 means no expiry.
    pub(crate) fn put_string(&mut self, key: &[u8], value: &[u8], expire_ms: u64) -> Result<()> {
        self.store().limits().check_value(value)?;
        if self.store().strings().is_large(value.len()) {
            return self.put_large(key, value, expire_ms);
        }
        self.put_record(key, encode_string(value, expire_ms))
    }

    /// Sets the expiry of a string. An expiry that has passed removes it.
    fn put_deadline(&mut self, key: &[u8], record: &Record, deadline: u64) -> Result<()> {
        if deadline != 0 && deadline <= self.now() {
            self.delete_record(key);
            return Ok(());
        }
        match with_expiry(&record.bytes, deadline) {
            Some(changed) => self.put_record(key, changed),
            None => Ok(()),
        }
    }

    /// Fails if a string of `first + second` bytes would be too long.
    pub(crate) fn check_growth(&self, first: u64, second: usize) -> Result<()> {
        let total = first.checked_add(second as u64);
        if total.is_some_and(|total| total <= self.store().limits().value) {
            return Ok(());
        }
        let text = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        Err(Error::new(ErrorKind::OutOfRange, text))
    }
}

/// Converts a length for a reply.
pub(crate) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
