//! All members of a hash or set, for commands that return them all.

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::txn::collection::Collection;
use crate::txn::{Tx, Walk};

/// Members in byte order. There are exactly as many as the record counts: fewer or more is damage,
/// never an end.
#[derive(Debug)]
pub(crate) struct AllMembers {
    collection: Collection,
    rows: Walk,
    left: u64,
}

impl Tx<'_> {
    /// The members of a hash or set; `None` if the key does not exist.
    pub(crate) fn all_members(&self, key: &[u8], kind: Type) -> Result<Option<AllMembers>> {
        self.collection(key, kind)?.map(|collection| AllMembers::of(self, collection)).transpose()
    }
}

impl AllMembers {
    /// Iterates over the members of a collection.
    pub(crate) fn of(tx: &Tx<'_>, collection: Collection) -> Result<Self> {
        let (rows, left) = (collection.walk(tx)?, collection.len());
        Ok(Self { collection, rows, left })
    }

    /// The number of members left.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// Moves to the next member, the first at the first call; `false` when there are no more.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let found = self.rows.advance()?;
        if found != (self.left > 0) {
            return Err(self.collection.miscounted());
        }
        self.left = self.left.saturating_sub(1);
        Ok(found)
    }

    /// Collects the members left.
    pub(crate) fn collect(mut self) -> Result<Vec<Bytes>> {
        let mut members = Vec::new();
        while self.advance()? {
            members.push(Bytes::copy_from_slice(self.member()));
        }
        Ok(members)
    }

    /// The current member.
    pub(crate) fn member(&self) -> &[u8] {
        self.collection.sub_key(self.rows.key())
    }

    /// The value of the current member.
    pub(crate) fn value(&self) -> &[u8] {
        self.rows.value()
    }

    /// The value of the current member, for keeping.
    pub(crate) fn value_bytes(&self) -> Bytes {
        self.rows.value_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::keys::row_key;
    use crate::error::ErrorKind;
    use crate::keyspace::trees::DATA;
    use crate::txn::Db;
    use crate::types::testing::unpacked;

    #[test]
    fn rows_that_are_not_as_many_as_counted_are_damage() {
        for (member, value) in [("b", None), ("c", Some(""))] {
            let db = Db::open(":memory:", unpacked()).unwrap();
            db.sadd(b"k", &[b"a", b"b"]).unwrap();
            assert_eq!(db.smembers(b"k").unwrap(), ["a", "b"]);
            let damage = |tx: &mut Tx<'_>| {
                let set = tx.collection(b"k", Type::Set)?.unwrap();
                let row = row_key(set.prefix(), member.as_bytes());
                match value {
                    Some(value) => tx.put_row(DATA, &row, value),
                    None => tx.remove_row(DATA, &row),
                }
                Ok(())
            };
            db.write(&[b"k"], damage).unwrap();
            let error = db.smembers(b"k").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert_eq!(error.message(), "the key \"k\" does not have its 2 members");
        }
    }
}
