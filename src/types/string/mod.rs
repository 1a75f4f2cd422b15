//! Strings: bytes in the record of their key.
//!
//! - here: whole values, one or many keys;
//! - `options`: when SET writes and until when; `range`: parts of a value; `counter`: values that
//!   are numbers; `lcs`: what two values have in common.

mod counter;
mod lcs;
mod options;
mod range;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::encoding::meta::{HEADER_BYTES, Type, encode_string, with_expiry};
use crate::error::{Error, ErrorKind, Result};
use crate::types::db::commands;
use crate::types::txn::{Record, Tx, wrong_type};

pub(crate) use lcs::common_subsequence;
pub use lcs::{Lcs, LcsMatch};
pub use options::{Condition, Expiry, GetExpiry, SetExpiry, SetOptions, SetOutcome};
pub(crate) use range::{clamp, resolve};

commands! {
    /// GET: the value of `key`, or `None` if it does not exist. The bytes stay valid after the
    /// store is closed.
    read fn get(key: &[u8]) -> Option<Bytes>;
    /// GETDEL: removes `key`, and its value.
    write [key] fn getdel(key: &[u8]) -> Option<Bytes>;
    /// GETEX: the value of `key`, whose expiry changes as `expiry` says.
    write [key] fn getex(key: &[u8], expiry: GetExpiry) -> Option<Bytes>;
    /// GETSET: gives `key` the value; the one it had.
    write [key] fn getset(key: &[u8], value: &[u8]) -> Option<Bytes>;
    /// MGET: the values of keys; `None` for one that does not exist or is no string.
    read fn mget(keys: &[&[u8]]) -> Vec<Option<Bytes>>;
    /// MSET: gives each key its value, all at once; of a key named twice the last counts.
    write_keys [&keys_of(pairs)] fn mset(pairs: &[(&[u8], &[u8])]) -> ();
    /// MSETNX: MSET if none of the keys exists; whether it did.
    write_keys [&keys_of(pairs)] fn msetnx(pairs: &[(&[u8], &[u8])]) -> bool;
    /// PSETEX: gives `key` the value for so many milliseconds.
    write [key] fn psetex(key: &[u8], milliseconds: i64, value: &[u8]) -> ();
    /// SET: gives `key` the value, replacing a value of any type and its expiry.
    write [key] fn set(key: &[u8], value: &[u8]) -> ();
    /// SET with options.
    write [key] fn set_with(key: &[u8], value: &[u8], options: SetOptions) -> SetOutcome;
    /// SETEX: gives `key` the value for so many seconds.
    write [key] fn setex(key: &[u8], seconds: i64, value: &[u8]) -> ();
    /// SETNX: gives `key` the value if it does not exist; whether it did.
    write [key] fn setnx(key: &[u8], value: &[u8]) -> bool;
    /// STRLEN: bytes of the value, 0 if the key does not exist.
    read fn strlen(key: &[u8]) -> i64;
}

impl Tx<'_> {
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.typed(key, Type::String)?.map(|record| record.value()))
    }

    pub(crate) fn getdel(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.get(key)?;
        if value.is_some() {
            self.frees_space();
            self.delete_record(key);
        }
        Ok(value)
    }

    pub(crate) fn getex(&mut self, key: &[u8], expiry: GetExpiry) -> Result<Option<Bytes>> {
        let Some(record) = self.typed(key, Type::String)? else { return Ok(None) };
        match expiry {
            GetExpiry::Keep => {}
            GetExpiry::Persist if record.header.expire_ms == 0 => {}
            GetExpiry::Persist => self.put_deadline(key, &record, 0)?,
            GetExpiry::At(expiry) => {
                let deadline = expiry.deadline(self.now(), "getex")?;
                self.put_deadline(key, &record, deadline)?;
            }
        }
        Ok(Some(record.value()))
    }

    pub(crate) fn getset(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        let old = self.get(key)?;
        self.set(key, value)?;
        Ok(old)
    }

    pub(crate) fn mget(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().map(|key| self.get_if_string(key)).collect()
    }

    /// The value of a String; a key of another type has none.
    pub(crate) fn get_if_string(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let string = |record: &Record| record.header.kind == Type::String;
        Ok(self.record(key)?.filter(string).map(|record| record.value()))
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

    pub(crate) fn psetex(&mut self, key: &[u8], milliseconds: i64, value: &[u8]) -> Result<()> {
        let deadline = Expiry::Milliseconds(milliseconds).deadline(self.now(), "psetex")?;
        self.put_string(key, value, deadline)
    }

    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_string(key, value, 0)
    }

    pub(crate) fn set_with(
        &mut self,
        key: &[u8],
        value: &[u8],
        options: SetOptions,
    ) -> Result<SetOutcome> {
        let deadline = match options.expiry {
            SetExpiry::At(expiry) => Some(expiry.deadline(self.now(), "set")?),
            SetExpiry::Never => Some(0),
            SetExpiry::Keep => None,
        };
        let blind = !options.get && options.condition == Condition::Always && deadline == Some(0);
        let record = if blind { None } else { self.record(key)? };
        let old = match &record {
            Some(record) if options.get && record.header.kind != Type::String => {
                return Err(wrong_type());
            }
            Some(record) if options.get => Some(record.value()),
            _ => None,
        };
        let written = match options.condition {
            Condition::Always => true,
            Condition::IfMissing => record.is_none(),
            Condition::IfExists => record.is_some(),
        };
        if written {
            let kept = record.as_ref().map_or(0, |record| record.header.expire_ms);
            self.put_until(key, value, deadline.unwrap_or(kept), record.is_some())?;
        }
        Ok(SetOutcome { written, old })
    }

    pub(crate) fn setex(&mut self, key: &[u8], seconds: i64, value: &[u8]) -> Result<()> {
        let deadline = Expiry::Seconds(seconds).deadline(self.now(), "setex")?;
        self.put_string(key, value, deadline)
    }

    pub(crate) fn setnx(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let missing = self.record(key)?.is_none();
        if missing {
            self.set(key, value)?;
        }
        Ok(missing)
    }

    pub(crate) fn strlen(&self, key: &[u8]) -> Result<i64> {
        Ok(self.get(key)?.map_or(0, |value| length(value.len())))
    }

    /// Gives the key this value and expiry (0 = never), whatever it was.
    pub(crate) fn put_string(&mut self, key: &[u8], value: &[u8], expire_ms: u64) -> Result<()> {
        self.store().limits().check_value(value)?;
        self.put_record(key, encode_string(value, expire_ms))
    }

    /// [`Tx::put_string`] with an expiry that may have passed: then the key is removed.
    fn put_until(&mut self, key: &[u8], value: &[u8], deadline: u64, exists: bool) -> Result<()> {
        if deadline == 0 || deadline > self.now() {
            return self.put_string(key, value, deadline);
        }
        if exists {
            self.delete_record(key);
        }
        Ok(())
    }

    /// Gives a string another expiry; one that has passed removes it.
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

    /// The string to change in place, empty if the key does not exist.
    pub(crate) fn draft(&self, key: &[u8]) -> Result<Draft> {
        let record = self.typed(key, Type::String)?;
        let exists = record.is_some();
        let record = record.map_or_else(|| encode_string(b"", 0), |found| found.bytes.to_vec());
        Ok(Draft { record, exists })
    }

    /// Gives the key what was made of its draft; its expiry stays.
    pub(crate) fn put_draft(&mut self, key: &[u8], draft: Draft) -> Result<()> {
        self.store().limits().check_value_len(draft.len())?;
        self.put_record_over(key, draft.record, draft.exists)
    }

    /// An error if a string of `first + second` bytes would be too long.
    pub(crate) fn check_growth(&self, first: u64, second: usize) -> Result<()> {
        let total = first.checked_add(second as u64);
        if total.is_some_and(|total| total <= self.store().limits().value) {
            return Ok(());
        }
        let text = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        Err(Error::new(ErrorKind::OutOfRange, text))
    }
}

/// A string that is being changed: its record, so that the change costs one copy.
pub(crate) struct Draft {
    record: Vec<u8>,
    exists: bool,
}

impl Draft {
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    pub(crate) fn len(&self) -> usize {
        self.record.len().saturating_sub(HEADER_BYTES)
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.record.get(HEADER_BYTES..).unwrap_or_default()
    }

    pub(crate) fn value_mut(&mut self) -> &mut [u8] {
        self.record.get_mut(HEADER_BYTES..).unwrap_or_default()
    }

    pub(crate) fn extend(&mut self, more: &[u8]) {
        self.record.extend_from_slice(more);
    }

    /// Makes the value at least `len` bytes long, with zeros.
    pub(crate) fn grow(&mut self, len: usize) {
        if len > self.len() {
            self.record.resize(len + HEADER_BYTES, 0);
        }
    }

    /// Replaces the value.
    pub(crate) fn replace(&mut self, value: &[u8]) {
        self.record.truncate(HEADER_BYTES);
        self.record.extend_from_slice(value);
    }
}

fn keys_of<'a>(pairs: &[(&'a [u8], &[u8])]) -> Vec<&'a [u8]> {
    pairs.iter().map(|(key, _)| *key).collect()
}

/// A length as the commands reply it.
pub(crate) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
