//! Strings.

use bytes::Bytes;

use crate::encoding::meta::{Type, encode_string};
use crate::error::Result;
use crate::types::db::commands;
use crate::types::txn::Tx;

commands! {
    /// GET: the value of `key`, or `None` if it does not exist. The bytes stay valid after the
    /// store is closed.
    read fn get(key: &[u8]) -> Option<Bytes>;
    /// SET: gives `key` the value, replacing a value of any type and its expiry.
    write [key] fn set(key: &[u8], value: &[u8]) -> ();
    /// STRLEN: bytes of the value, 0 if the key does not exist.
    read fn strlen(key: &[u8]) -> i64;
    /// APPEND: adds to the end of the value; its new length.
    write [key] fn append(key: &[u8], value: &[u8]) -> i64;
}

impl Tx<'_> {
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.typed(key, Type::String)?.map(|record| record.value()))
    }

    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_string(key, value, 0)
    }

    /// Gives the key this value and expiry (0 = never), whatever it was.
    pub(crate) fn put_string(&mut self, key: &[u8], value: &[u8], expire_ms: u64) -> Result<()> {
        self.store().limits().check_value(value)?;
        self.put_record(key, encode_string(value, expire_ms))
    }

    pub(crate) fn strlen(&self, key: &[u8]) -> Result<i64> {
        Ok(self.get(key)?.map_or(0, |value| length(value.len())))
    }

    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<i64> {
        let record = self.typed(key, Type::String)?;
        let expire_ms = record.as_ref().map_or(0, |record| record.header.expire_ms);
        let mut whole = record.map_or_else(Vec::new, |record| record.value().to_vec());
        whole.extend_from_slice(value);
        if !value.is_empty() || whole.is_empty() {
            self.put_string(key, &whole, expire_ms)?;
        }
        Ok(length(whole.len()))
    }
}

/// A length as the commands reply it.
pub(crate) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
