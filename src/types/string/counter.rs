//! Strings that are numbers.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::types::long_double::add_long_double;
use crate::types::number::{not_a_float, not_an_integer, parse_integer};

/// No integer has more digits.
const LONGEST_INTEGER: usize = 40;
/// The reference takes no longer text for a float.
const LONGEST_FLOAT: usize = 5 << 10;

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
        let number = match draft.exists() {
            true => match draft.if_short(self, LONGEST_INTEGER)? {
                Some(text) => parse_integer(&text)?,
                None => return Err(not_an_integer()),
            },
            false => 0,
        };
        let sum = number.checked_add(increment);
        let sum = sum.ok_or_else(|| overflow("ERR increment or decrement would overflow"))?;
        draft.replace(sum.to_string().as_bytes());
        self.put_draft(draft)?;
        self.notify(Classes::STRING, "incrby", key);
        Ok(sum)
    }

    pub(crate) fn incrbyfloat(&mut self, key: &[u8], increment: &[u8]) -> Result<Bytes> {
        let mut draft = self.draft(key)?;
        let sum = match draft.exists() {
            true => match draft.if_short(self, LONGEST_FLOAT)? {
                Some(text) => add_long_double(&text, increment)?,
                None => return Err(not_a_float()),
            },
            false => add_long_double(b"0", increment)?,
        };
        draft.replace(sum.as_bytes());
        self.put_draft(draft)?;
        self.notify(Classes::STRING, "incrbyfloat", key);
        Ok(sum.into())
    }
}
