//! Strings: GET and SET.

use bytes::{Buf, Bytes};

use crate::encoding::meta::{HEADER_BYTES, Type, encode_string};
use crate::error::{Error, ErrorKind, Result};
use crate::types::db::{Db, Record};

impl Db {
    /// GET: the value of `key`, or `None` if it does not exist. The bytes stay valid after the
    /// store is closed.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.record(key)?.map(value_of_string).transpose()
    }

    /// SET: gives `key` the value, replacing a value of any type and its expiry.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.limits().check_value(value)?;
        self.overwrite(key, encode_string(value, 0))
    }
}

fn value_of_string(mut record: Record) -> Result<Bytes> {
    if record.header.kind != Type::String {
        return Err(Error::new(
            ErrorKind::WrongType,
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ));
    }
    // Moves the start; cloning a slice would cost a reference count.
    record.bytes.advance(HEADER_BYTES);
    Ok(record.bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::engine::MemFs;
    use crate::io::clock::ManualClock;
    use crate::options::Options;

    fn db_at(now_ms: u64) -> (Db, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(now_ms));
        let fs = Arc::new(MemFs::new());
        let db = Db::open_on(fs, Path::new("/s"), Options::default(), clock.clone()).unwrap();
        (db, clock)
    }

    #[test]
    fn a_value_is_what_was_last_set() {
        let (db, _) = db_at(0);
        assert_eq!(db.get(b"k").unwrap(), None);
        db.set(b"k", b"one").unwrap();
        db.set(b"k", b"two").unwrap();
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"two"[..]));
    }

    #[test]
    fn empty_keys_and_values_and_any_byte_are_legal() {
        let (db, _) = db_at(0);
        let every: Vec<u8> = (0..=255).collect();
        for (key, value) in [(&b""[..], &b""[..]), (&every, &every), (b"\0", b"\0\0")] {
            db.set(key, value).unwrap();
            assert_eq!(db.get(key).unwrap().as_deref(), Some(value));
        }
    }

    #[test]
    fn an_expired_value_does_not_exist() {
        let (db, clock) = db_at(999);
        db.overwrite(b"k", encode_string(b"v", 1000)).unwrap();
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
        clock.set(1000);
        assert_eq!(db.get(b"k").unwrap(), None);
        assert!(!db.exists(b"k").unwrap());
        assert!(!db.del(b"k").unwrap());
        db.set(b"k", b"again").unwrap();
        clock.set(u64::MAX);
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"again"[..]));
    }

    #[test]
    fn an_expired_key_of_another_type_is_missing_rather_than_of_the_wrong_type() {
        // Checking the type first would answer WRONGTYPE for a key that no longer exists.
        let (db, clock) = db_at(999);
        let mut record = encode_string(b"", 1000);
        record[0] = 0x82;
        db.overwrite(b"h", record).unwrap();
        assert_eq!(db.get(b"h").unwrap_err().kind(), ErrorKind::WrongType);
        clock.set(1000);
        assert_eq!(db.get(b"h").unwrap(), None);
    }

    #[test]
    fn a_record_that_is_none_is_reported_as_damage() {
        let (db, _) = db_at(0);
        db.overwrite(b"bad", vec![0x81, 0]).unwrap();
        let error = db.get(b"bad").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("'bad'"), "{error}");
    }

    #[test]
    fn what_is_longer_than_the_limits_is_refused() {
        let fs = Arc::new(MemFs::new());
        let options = Options { max_key_bytes: 3, max_value_bytes: 5, ..Options::default() };
        let db = Db::open_on(fs, Path::new("/s"), options, Arc::new(ManualClock::at(0))).unwrap();
        db.set(b"key", b"value").unwrap();
        for (key, value) in [(&b"keys"[..], &b"v"[..]), (b"key", b"values")] {
            assert_eq!(db.set(key, value).unwrap_err().kind(), ErrorKind::TooLarge);
        }
        assert_eq!(db.get(b"keys").unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
