//! The key space: DEL and EXISTS, for keys of any type.

use crate::error::Result;
use crate::types::db::{Change, Db};

impl Db {
    /// DEL: removes `key`; whether it existed.
    pub fn del(&self, key: &[u8]) -> Result<bool> {
        self.update(key, |present| match present {
            Some(_) => Ok((true, Change::Delete)),
            None => Ok((false, Change::Keep)),
        })
    }

    /// EXISTS: whether `key` exists.
    pub fn exists(&self, key: &[u8]) -> Result<bool> {
        Ok(self.record(key)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn a_deletion_says_whether_there_was_something() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        assert!(!db.del(b"k").unwrap());
        db.set(b"k", b"v").unwrap();
        assert!(db.exists(b"k").unwrap());
        assert!(db.del(b"k").unwrap());
        assert!(!db.exists(b"k").unwrap());
        assert!(!db.del(b"k").unwrap());
    }

    #[test]
    fn of_many_threads_that_delete_a_key_exactly_one_is_told_it_did() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        for _ in 0..200 {
            db.set(b"k", b"v").unwrap();
            let deleted = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| db.del(b"k"))).collect();
                threads.into_iter().map(|t| t.join().unwrap().unwrap()).filter(|&d| d).count()
            });
            assert_eq!(deleted, 1);
        }
    }
}
