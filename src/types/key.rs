//! Commands on keys of any type.

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;

commands! {
    /// TYPE: the type of a key that exists.
    read fn kind(key: &[u8]) -> Option<Type>;
}

impl Tx<'_> {
    pub(crate) fn del(&mut self, keys: &[&[u8]]) -> Result<i64> {
        self.frees_space();
        let mut deleted = 0;
        for key in keys {
            if self.record(key)?.is_some() {
                self.delete_record(key);
                self.notify(Classes::GENERIC, "del", key);
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    pub(crate) fn unlink(&mut self, keys: &[&[u8]]) -> Result<i64> {
        self.del(keys)
    }

    pub(crate) fn touch(&self, keys: &[&[u8]]) -> Result<i64> {
        self.exists(keys)
    }

    pub(crate) fn exists(&self, keys: &[&[u8]]) -> Result<i64> {
        let mut found = 0;
        for key in keys {
            found += i64::from(self.record(key)?.is_some());
        }
        Ok(found)
    }

    pub(crate) fn kind(&self, key: &[u8]) -> Result<Option<Type>> {
        Ok(self.record(key)?.map(|record| record.header.kind))
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Options;
    use crate::txn::Db;

    #[test]
    fn a_deletion_says_how_many_there_were() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        assert_eq!(db.del(&[b"k"]).unwrap(), 0);
        db.set(b"k", b"v").unwrap();
        assert_eq!(db.exists(&[b"k", b"k", b"l"]).unwrap(), 2);
        assert_eq!(db.del(&[b"k", b"k", b"l"]).unwrap(), 1);
        assert_eq!(db.exists(&[b"k"]).unwrap(), 0);
    }

    #[test]
    fn of_many_threads_that_delete_a_key_exactly_one_is_told_it_did() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        for _ in 0..200 {
            db.set(b"k", b"v").unwrap();
            let deleted: i64 = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| db.del(&[b"k"]))).collect();
                threads.into_iter().map(|t| t.join().unwrap().unwrap()).sum()
            });
            assert_eq!(deleted, 1);
        }
    }
}
