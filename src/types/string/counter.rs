//! Strings that are numbers.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::types::db::commands;
use crate::types::long_double::add_long_double;
use crate::types::number::parse_integer;
use crate::types::txn::Tx;

commands! {
    /// DECR: takes one from the number; the result.
    write [key] fn decr(key: &[u8]) -> i64;
    /// DECRBY: takes from the number; the result.
    write [key] fn decrby(key: &[u8], decrement: i64) -> i64;
    /// INCR: adds one to the number, 0 if the key does not exist; the result.
    write [key] fn incr(key: &[u8]) -> i64;
    /// INCRBY: adds to the number, 0 if the key does not exist; the result.
    write [key] fn incrby(key: &[u8], increment: i64) -> i64;
    /// INCRBYFLOAT: adds to the number, both decimal text of any precision, as 80-bit floats; the
    /// result as text.
    write [key] fn incrbyfloat(key: &[u8], increment: &[u8]) -> Bytes;
}

fn overflow(message: &str) -> Error {
    Error::new(ErrorKind::Overflow, message)
}

impl Tx<'_> {
    pub(crate) fn decr(&mut self, key: &[u8]) -> Result<i64> {
        self.incrby(key, -1)
    }

    pub(crate) fn decrby(&mut self, key: &[u8], decrement: i64) -> Result<i64> {
        let negated = decrement.checked_neg();
        self.incrby(key, negated.ok_or_else(|| overflow("ERR decrement would overflow"))?)
    }

    pub(crate) fn incr(&mut self, key: &[u8]) -> Result<i64> {
        self.incrby(key, 1)
    }

    pub(crate) fn incrby(&mut self, key: &[u8], increment: i64) -> Result<i64> {
        let mut draft = self.draft(key)?;
        let number = if draft.exists() { parse_integer(draft.value())? } else { 0 };
        let sum = number.checked_add(increment);
        let sum = sum.ok_or_else(|| overflow("ERR increment or decrement would overflow"))?;
        draft.replace(sum.to_string().as_bytes());
        self.put_draft(key, draft)?;
        Ok(sum)
    }

    pub(crate) fn incrbyfloat(&mut self, key: &[u8], increment: &[u8]) -> Result<Bytes> {
        let mut draft = self.draft(key)?;
        let number: &[u8] = if draft.exists() { draft.value() } else { b"0" };
        let sum = add_long_double(number, increment)?;
        draft.replace(sum.as_bytes());
        self.put_draft(key, draft)?;
        Ok(sum.into())
    }
}
