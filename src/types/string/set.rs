//! SET and its older forms.
//!
//! Each has a second form, with `_by`, that takes what puts the value with its expiry: a value that
//! came in parts is in rows already.

use bytes::Bytes;

use super::options::{Condition, Expiry, SetExpiry, SetOptions, SetOutcome};
use crate::encoding::meta::Type;
use crate::error::Result;
use crate::keyspace::errors::wrong_type;
use crate::messages::events::Classes;
use crate::txn::Tx;

impl Tx<'_> {
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.set_by(key, |tx, deadline| tx.put_string(key, value, deadline))
    }

    pub(crate) fn set_by(
        &mut self,
        key: &[u8],
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        self.meet(key)?;
        put(self, 0)?;
        self.notify(Classes::STRING, "set", key);
        Ok(())
    }

    pub(crate) fn getset(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        self.getset_by(key, |tx, deadline| tx.put_string(key, value, deadline))
    }

    pub(crate) fn getset_by(
        &mut self,
        key: &[u8],
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<Option<Bytes>> {
        let old = self.as_read(|tx| tx.get(key))?;
        self.set_by(key, put)?;
        Ok(old)
    }

    pub(crate) fn setnx(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.setnx_by(key, |tx, deadline| tx.put_string(key, value, deadline))
    }

    pub(crate) fn setnx_by(
        &mut self,
        key: &[u8],
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<bool> {
        let missing = self.record(key)?.is_none();
        if missing {
            self.set_by(key, put)?;
        }
        Ok(missing)
    }

    pub(crate) fn setex(&mut self, key: &[u8], seconds: i64, value: &[u8]) -> Result<()> {
        self.setex_by(key, seconds, |tx, deadline| tx.put_string(key, value, deadline))
    }

    pub(crate) fn setex_by(
        &mut self,
        key: &[u8],
        seconds: i64,
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        let deadline = Expiry::Seconds(seconds).deadline(self.now(), "setex")?;
        self.set_until(key, deadline, put)
    }

    pub(crate) fn psetex(&mut self, key: &[u8], milliseconds: i64, value: &[u8]) -> Result<()> {
        self.psetex_by(key, milliseconds, |tx, deadline| tx.put_string(key, value, deadline))
    }

    pub(crate) fn psetex_by(
        &mut self,
        key: &[u8],
        milliseconds: i64,
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        let deadline = Expiry::Milliseconds(milliseconds).deadline(self.now(), "psetex")?;
        self.set_until(key, deadline, put)
    }

    /// Sets the value and expiry of a key, whatever it held.
    fn set_until(
        &mut self,
        key: &[u8],
        deadline: u64,
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        self.meet(key)?;
        put(self, deadline)?;
        self.notify(Classes::STRING, "set", key);
        self.notify(Classes::GENERIC, "expire", key);
        Ok(())
    }

    pub(crate) fn set_with(
        &mut self,
        key: &[u8],
        value: &[u8],
        options: SetOptions,
    ) -> Result<SetOutcome> {
        self.set_with_by(key, options, |tx, deadline| tx.put_string(key, value, deadline))
    }

    pub(crate) fn set_with_by(
        &mut self,
        key: &[u8],
        options: SetOptions,
        put: impl FnOnce(&mut Self, u64) -> Result<()>,
    ) -> Result<SetOutcome> {
        let deadline = match options.expiry {
            SetExpiry::At(expiry) => Some(expiry.deadline(self.now(), "set")?),
            SetExpiry::Never => Some(0),
            SetExpiry::Keep => None,
        };
        let blind = !options.get && options.condition == Condition::Always && deadline == Some(0);
        let record = match blind {
            true => None,
            false if options.get => self.as_read(|tx| tx.record(key))?,
            false => self.record(key)?,
        };
        if blind {
            self.meet(key)?;
        }
        let kind = record.as_ref().map(|record| record.header.kind);
        if options.get && kind.is_some_and(|kind| kind != Type::String) {
            return Err(wrong_type());
        }
        let kept = record.as_ref().map_or(0, |record| record.header.expire_ms);
        let exists = record.is_some();
        let written = match options.condition {
            Condition::Always => true,
            Condition::IfMissing => !exists,
            Condition::IfExists => exists,
        };
        let old = match record {
            Some(record) if options.get => Some(self.value_of(key, record)?),
            _ => None,
        };
        if written {
            let deadline = deadline.unwrap_or(kept);
            // An expiry that has passed removes the key.
            if deadline == 0 || deadline > self.now() {
                put(self, deadline)?;
            } else if exists {
                self.delete_record(key);
            }
            self.notify(Classes::STRING, "set", key);
            if matches!(options.expiry, SetExpiry::At(_)) {
                self.notify(Classes::GENERIC, "expire", key);
            }
        }
        Ok(SetOutcome { written, old })
    }
}
