//! The expiry of keys. A key's record holds it in milliseconds since 1970; an expiry that is not in
//! the future deletes the key at once.

use crate::encoding::meta::with_expiry;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::db::commands;
use crate::txn::{Record, Tx};

/// The conditions under which an expiry is set. A key without an expiry expires later than any
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireIf {
    /// Only if the key has no expiry.
    pub none: bool,
    /// Only if the key has an expiry.
    pub some: bool,
    /// Only if the new expiry is later.
    pub later: bool,
    /// Only if the new expiry is earlier.
    pub earlier: bool,
}

impl ExpireIf {
    /// Without any condition.
    pub const ALWAYS: Self = Self { none: false, some: false, later: false, earlier: false };

    /// Fails if the conditions exclude each other.
    pub(crate) fn check(self) -> Result<()> {
        let message = if self.none && (self.some || self.later || self.earlier) {
            "ERR NX and XX, GT or LT options at the same time are not compatible"
        } else if self.later && self.earlier {
            "ERR GT and LT options at the same time are not compatible"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Syntax, message))
    }

    /// Whether the conditions hold; a `current` of 0 means no expiry.
    fn holds(self, current: u64, at_ms: i64) -> bool {
        let has = current != 0;
        let order = i128::from(at_ms).cmp(&i128::from(current));
        !(self.none && has
            || self.some && !has
            || self.later && !(has && order.is_gt())
            || self.earlier && has && !order.is_lt())
    }
}

/// The error for a time beyond what a 64-bit number of milliseconds holds.
pub(crate) fn invalid_expire_time(command: &str) -> Error {
    let message = format!("ERR invalid expire time in '{command}' command");
    Error::new(ErrorKind::Invalid, message)
}

commands! {
    /// EXPIRE: sets the expiry in seconds from now; whether the key exists and the condition held.
    write [key] fn expire(key: &[u8], seconds: i64, condition: ExpireIf) -> bool;
    /// PEXPIRE: sets the expiry in milliseconds from now; whether the key exists and the condition
    /// held.
    write [key] fn pexpire(key: &[u8], ms: i64, condition: ExpireIf) -> bool;
    /// EXPIREAT: sets the expiry in seconds since 1970; whether the key exists and the condition
    /// held.
    write [key] fn expireat(key: &[u8], second: i64, condition: ExpireIf) -> bool;
    /// PEXPIREAT: sets the expiry in milliseconds since 1970; whether the key exists and the
    /// condition held.
    write [key] fn pexpireat(key: &[u8], ms: i64, condition: ExpireIf) -> bool;
}

fn rounded_seconds(ms: i64) -> i64 {
    if ms < 0 { ms } else { ms / 1000 + i64::from(ms % 1000 >= 500) }
}

impl Tx<'_> {
    fn expire_in(
        &mut self,
        key: &[u8],
        ms: Option<i64>,
        condition: ExpireIf,
        command: &str,
    ) -> Result<bool> {
        condition.check()?;
        let now = i64::try_from(self.now()).unwrap_or(i64::MAX);
        let at_ms = ms.and_then(|ms| ms.checked_add(now));
        self.expire_at(key, at_ms.ok_or_else(|| invalid_expire_time(command))?, condition)
    }

    fn expire_at(&mut self, key: &[u8], at_ms: i64, condition: ExpireIf) -> Result<bool> {
        let Some(record) = self.record(key)? else { return Ok(false) };
        if !condition.holds(record.header.expire_ms, at_ms) {
            return Ok(false);
        }
        match u64::try_from(at_ms) {
            Ok(at_ms) if at_ms > self.now() => {
                self.put_expiry(key, &record, at_ms)?;
                self.notify(Classes::GENERIC, "expire", key);
            }
            _ => {
                self.frees_space();
                self.delete_record(key);
                self.notify(Classes::GENERIC, "del", key);
            }
        }
        Ok(true)
    }

    fn put_expiry(&mut self, key: &[u8], record: &Record, expire_ms: u64) -> Result<()> {
        // A record that was read has a header.
        let changed = with_expiry(&record.bytes, expire_ms).unwrap_or_default();
        self.put_record(key, changed)
    }

    pub(crate) fn expire(&mut self, key: &[u8], seconds: i64, cond: ExpireIf) -> Result<bool> {
        self.expire_in(key, seconds.checked_mul(1000), cond, "expire")
    }

    pub(crate) fn pexpire(&mut self, key: &[u8], ms: i64, cond: ExpireIf) -> Result<bool> {
        self.expire_in(key, Some(ms), cond, "pexpire")
    }

    pub(crate) fn expireat(&mut self, key: &[u8], second: i64, cond: ExpireIf) -> Result<bool> {
        cond.check()?;
        let at_ms = second.checked_mul(1000).ok_or_else(|| invalid_expire_time("expireat"))?;
        self.expire_at(key, at_ms, cond)
    }

    pub(crate) fn pexpireat(&mut self, key: &[u8], ms: i64, cond: ExpireIf) -> Result<bool> {
        cond.check()?;
        self.expire_at(key, ms, cond)
    }

    pub(crate) fn persist(&mut self, key: &[u8]) -> Result<bool> {
        match self.record(key)? {
            Some(record) if record.header.expire_ms != 0 => {
                self.put_expiry(key, &record, 0)?;
                self.notify(Classes::GENERIC, "persist", key);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn ttl(&self, key: &[u8]) -> Result<i64> {
        Ok(rounded_seconds(self.pttl(key)?))
    }

    pub(crate) fn pttl(&self, key: &[u8]) -> Result<i64> {
        let at_ms = self.pexpiretime(key)?;
        let now = i64::try_from(self.now()).unwrap_or(i64::MAX);
        Ok(if at_ms < 0 { at_ms } else { at_ms - now })
    }

    pub(crate) fn expiretime(&self, key: &[u8]) -> Result<i64> {
        Ok(rounded_seconds(self.pexpiretime(key)?))
    }

    pub(crate) fn pexpiretime(&self, key: &[u8]) -> Result<i64> {
        Ok(match self.record(key)?.map(|record| record.header.expire_ms) {
            None => -2,
            Some(0) => -1,
            Some(expire_ms) => i64::try_from(expire_ms).unwrap_or(i64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::engine::MemFs;
    use crate::io::clock::ManualClock;
    use crate::options::Options;
    use crate::txn::Db;

    const ALWAYS: ExpireIf = ExpireIf::ALWAYS;
    const NOW: u64 = 1_000_000;

    fn open() -> (Db, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(NOW));
        let fs = Arc::new(MemFs::untracked());
        let db = Db::open_on(fs, Path::new("/db"), Options::default(), clock.clone()).unwrap();
        db.set(b"k", b"v").unwrap();
        (db, clock)
    }

    #[test]
    fn a_key_lives_until_its_millisecond_and_not_longer() {
        let (db, clock) = open();
        assert_eq!(db.ttl(b"k").unwrap(), -1);
        assert_eq!(db.ttl(b"none").unwrap(), -2);
        assert!(db.expire(b"k", 2, ALWAYS).unwrap());
        clock.advance(501);
        assert_eq!((db.ttl(b"k").unwrap(), db.pttl(b"k").unwrap()), (1, 1499));
        clock.advance(1498);
        assert_eq!((db.ttl(b"k").unwrap(), db.pttl(b"k").unwrap()), (0, 1));
        assert_eq!(db.pexpiretime(b"k").unwrap(), 1_002_000);
        clock.advance(1);
        assert_eq!(db.pttl(b"k").unwrap(), -2);
        assert!(!db.persist(b"k").unwrap(), "what has expired cannot be brought back");
        assert!(!db.expire(b"k", 100, ALWAYS).unwrap());
    }

    #[test]
    fn a_time_that_is_not_in_the_future_deletes_the_key() {
        for at in [NOW as i64, NOW as i64 - 1, 0, -1, i64::MIN] {
            let (db, _) = open();
            assert!(db.pexpireat(b"k", at, ALWAYS).unwrap());
            assert_eq!(db.exists(&[b"k"]).unwrap(), 0, "{at}");
        }
        let (db, _) = open();
        assert!(db.expire(b"k", -1, ALWAYS).unwrap());
        assert_eq!(db.exists(&[b"k"]).unwrap(), 0);
        db.set(b"k", b"v").unwrap();
        assert_eq!(db.ttl(b"k").unwrap(), -1, "a new key inherits nothing");
    }

    #[test]
    fn times_that_do_not_fit_are_refused_even_for_a_missing_key() {
        let (db, _) = open();
        for (result, name) in [
            (db.expire(b"none", i64::MAX, ALWAYS), "expire"),
            (db.expire(b"k", i64::MAX / 1000, ALWAYS), "expire"),
            (db.pexpire(b"k", i64::MAX, ALWAYS), "pexpire"),
            (db.expireat(b"k", i64::MAX / 1000 + 1, ALWAYS), "expireat"),
        ] {
            let message = format!("ERR invalid expire time in '{name}' command");
            assert_eq!(result.unwrap_err().message(), message);
        }
        assert!(db.pexpireat(b"k", i64::MAX, ALWAYS).unwrap());
        assert_eq!(db.pexpiretime(b"k").unwrap(), i64::MAX);
        assert_eq!(db.expiretime(b"k").unwrap(), 9_223_372_036_854_776);
    }

    #[test]
    fn no_expiry_counts_as_the_latest() {
        let (db, _) = open();
        let nx = ExpireIf { none: true, ..ALWAYS };
        let xx = ExpireIf { some: true, ..ALWAYS };
        let gt = ExpireIf { later: true, ..ALWAYS };
        let lt = ExpireIf { earlier: true, ..ALWAYS };
        assert!(!db.expire(b"k", 10, xx).unwrap());
        assert!(!db.expire(b"k", 10, gt).unwrap());
        assert!(db.expire(b"k", 10, lt).unwrap());
        assert!(!db.expire(b"k", 20, nx).unwrap());
        assert!(!db.expire(b"k", 10, gt).unwrap() && !db.expire(b"k", 10, lt).unwrap());
        assert!(db.expire(b"k", 20, gt).unwrap() && db.expire(b"k", 5, lt).unwrap());
        assert!(db.expire(b"k", 7, xx).unwrap());
        assert!(db.persist(b"k").unwrap() && !db.persist(b"k").unwrap());
        assert!(db.expire(b"k", 10, nx).unwrap());
        assert!(db.expire(b"k", -1, gt).is_ok_and(|set| !set), "the condition comes first");
        for both in [ExpireIf { some: true, ..nx }, ExpireIf { later: true, ..lt }] {
            assert!(db.expire(b"k", 1, both).is_err());
        }
    }
}
