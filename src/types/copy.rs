//! RENAME, COPY, MOVE: a key's value under another name or in another database.
//!
//! A string without rows, or a packed collection that may stay packed, is copied as one record. Rows
//! contain the key, so they are written again under a new version while they are walked: the time
//! grows with the number of members, the memory is bounded (see `collection_builder`). The old rows
//! are left alone: no record names them any more.

use crate::encoding::chunked::{Chunks, StringBody};
use crate::encoding::keys::{after_prefix, prefix, row_key};
use crate::encoding::meta::{Body, Type, is_packed};
use crate::encoding::packed::Packed;
use crate::engine::TreeId;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::errors::malformed;
use crate::keyspace::trees::{DATA, SCORE};
use crate::messages::events::Classes;
use crate::txn::db::commands;
use crate::txn::{Record, Tx};

commands! {
    /// COPY: gives another key the same value and expiry; whether it did. It does not if the source
    /// is missing, or if the destination exists and `replace` is not set.
    write [key, to] fn copy(key: &[u8], to: &[u8], replace: bool) -> bool;
    /// COPY with DB: copies a key into another database; whether it did. Waits until no other write
    /// is running.
    alone fn copy_to(key: &[u8], to: &[u8], database: u32, replace: bool) -> bool;
    /// MOVE: moves the key to another database; whether it did. It does not if the key is missing
    /// here or exists there. Waits until no other write is running.
    alone fn r#move(key: &[u8], database: u32) -> bool;
}

fn no_such_key() -> Error {
    Error::new(ErrorKind::NoSuchKey, "ERR no such key")
}

fn same_object() -> Error {
    Error::new(ErrorKind::Invalid, "ERR source and destination objects are the same")
}

impl Tx<'_> {
    pub(crate) fn rename(&mut self, key: &[u8], new_key: &[u8]) -> Result<()> {
        let record = self.record(key)?.ok_or_else(no_such_key)?;
        if key != new_key {
            self.duplicate(key, &record, self.database(), new_key)?;
            self.delete_record(key);
            self.notify(Classes::GENERIC, "rename_from", key);
            self.notify(Classes::GENERIC, "rename_to", new_key);
        }
        Ok(())
    }

    pub(crate) fn renamenx(&mut self, key: &[u8], new_key: &[u8]) -> Result<bool> {
        let record = self.record(key)?.ok_or_else(no_such_key)?;
        if self.record(new_key)?.is_some() {
            return Ok(false);
        }
        self.duplicate(key, &record, self.database(), new_key)?;
        self.delete_record(key);
        self.notify(Classes::GENERIC, "rename_from", key);
        self.notify(Classes::GENERIC, "rename_to", new_key);
        Ok(true)
    }

    pub(crate) fn copy(&mut self, key: &[u8], to: &[u8], replace: bool) -> Result<bool> {
        self.copy_to(key, to, self.database(), replace)
    }

    pub(crate) fn copy_to(
        &mut self,
        key: &[u8],
        to: &[u8],
        database: u32,
        replace: bool,
    ) -> Result<bool> {
        self.space_of(database)?;
        if database == self.database() && key == to {
            return Err(same_object());
        }
        let record = self.as_read(|tx| tx.record(key))?;
        let Some(record) = record else { return Ok(false) };
        if !replace && self.on_database(database, |tx| tx.record(to))?.is_some() {
            return Ok(false);
        }
        self.duplicate(key, &record, database, to)?;
        self.on_database(database, |tx| {
            tx.notify(Classes::GENERIC, "copy_to", to);
            Ok(true)
        })
    }

    pub(crate) fn r#move(&mut self, key: &[u8], database: u32) -> Result<bool> {
        self.space_of(database)?;
        if database == self.database() {
            return Err(same_object());
        }
        let Some(record) = self.record(key)? else { return Ok(false) };
        if self.on_database(database, |tx| tx.record(key))?.is_some() {
            return Ok(false);
        }
        self.duplicate(key, &record, database, key)?;
        self.delete_record(key);
        self.notify(Classes::GENERIC, "move_from", key);
        self.on_database(database, |tx| {
            tx.notify(Classes::GENERIC, "move_to", key);
            Ok(true)
        })
    }

    /// Replaces whatever `to` in `database` holds by the value and expiry of `key`.
    fn duplicate(&mut self, key: &[u8], record: &Record, database: u32, to: &[u8]) -> Result<()> {
        self.on_database(database, |tx| tx.announce_replaced(to))?;
        self.write_copy(key, record, database, to)
    }

    /// Writes the value and expiry of `key` to `to` in `database`, which may be the same key: rows
    /// get a new version.
    pub(super) fn write_copy(
        &mut self,
        key: &[u8],
        record: &Record,
        database: u32,
        to: &[u8],
    ) -> Result<()> {
        let header = record.header;
        if is_packed(&record.bytes) {
            let packed = Packed::decode(record.bytes.clone()).map_err(|why| malformed(key, why))?;
            return self.on_database(database, |tx| tx.put_copy(to, header, packed));
        }
        if header.kind == Type::String {
            return self.duplicate_string(key, record, database, to);
        }
        let (body, space) = (record.body(key)?, self.space());
        let source = prefix(space, key, body.version().unwrap_or_default());
        self.on_database(database, |tx| {
            let mut build = tx.build_collection(to)?;
            if let Body::Span { head, tail, .. } = body {
                // Rows outside of the span are dead.
                let first = row_key(&source, &head.to_be_bytes());
                let end = row_key(&source, &tail.to_be_bytes());
                tx.each_row(DATA, &source, (&first, Some(&end)), |index, element| {
                    build.put_plain(index, element)
                })?;
                let copied = Body::Span { version: build.version(), head, tail };
                return build.finish(tx, to, header, &copied);
            }
            let end = after_prefix(&source);
            let trees: &[_] = if header.kind == Type::ZSet { &[DATA, SCORE] } else { &[DATA] };
            for tree in trees {
                tx.each_row(*tree, &source, (&source, end.as_deref()), |sub_key, value| {
                    build.put(*tree, sub_key, value)
                })?;
            }
            build.finish_members(tx, to, header, body.size())
        })
    }

    /// Copies a string, into the form that the store's options ask for.
    fn duplicate_string(
        &mut self,
        key: &[u8],
        record: &Record,
        database: u32,
        to: &[u8],
    ) -> Result<()> {
        let (expire_ms, space) = (record.header.expire_ms, self.space());
        let body = record.clone().into_string(key)?;
        let large = body.bytes() > self.store().strings().inline_bytes;
        match body {
            StringBody::Chunked(chunks) if large => {
                let source = prefix(space, key, chunks.version);
                self.on_database(database, |tx| {
                    let copied = tx.copy_chunks(&source, chunks, to)?;
                    tx.put_record(to, copied.encode(record.header))
                })
            }
            StringBody::Whole(_) if !large => {
                let bytes = record.bytes.to_vec();
                self.on_database(database, |tx| tx.put_record(to, bytes))
            }
            _ => {
                let value = self.value_of(key, record.clone())?;
                self.on_database(database, |tx| tx.put_string(to, &value, expire_ms))
            }
        }
    }

    /// Copies the rows of a string with this prefix to rows of `to`, under a version that a record has
    /// to name.
    pub(super) fn copy_chunks(
        &mut self,
        source: &[u8],
        chunks: Chunks,
        to: &[u8],
    ) -> Result<Chunks> {
        let mut build = self.build_collection(to)?;
        let end = after_prefix(source);
        self.each_row(DATA, source, (source, end.as_deref()), |index, chunk| {
            build.put_plain(index, chunk)
        })?;
        let copied = Chunks { version: build.version(), ..chunks };
        build.finish_rows(self)?;
        Ok(copied)
    }

    /// Visits the sub keys and values of the rows of `[lower, upper)`, which begin with `source`.
    fn each_row(
        &self,
        tree: TreeId,
        source: &[u8],
        (lower, upper): (&[u8], Option<&[u8]>),
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut walk = self.rows(tree, lower, upper, false)?;
        while walk.advance()? {
            visit(walk.key().get(source.len()..).unwrap_or_default(), walk.value())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::keys::score_key;
    use crate::encoding::order::score_bytes;
    use crate::txn::Db;
    use crate::types::ExpireIf;
    use crate::types::testing::unpacked;

    fn db() -> Db {
        Db::open(":memory:", unpacked()).unwrap()
    }

    /// One key of each type, each with two members.
    fn fill(db: &Db) {
        db.set(b"string", b"v").unwrap();
        db.write(&[b"hash", b"set", b"zset", b"list"], |tx| {
            for (key, kind) in
                [(&b"hash"[..], Type::Hash), (b"set", Type::Set), (b"zset", Type::ZSet)]
            {
                let mut collection = tx.new_collection(key, kind)?;
                for (member, score) in [(b"a", 2.0), (b"b", 1.0)] {
                    let value = match kind {
                        Type::Hash => b"value".to_vec(),
                        Type::ZSet => score_bytes(score).to_vec(),
                        _ => Vec::new(),
                    };
                    collection.put(tx, member, value)?;
                    if kind == Type::ZSet {
                        let row = score_key(collection.prefix(), score, member);
                        tx.put_row(SCORE, &row, Vec::new());
                    }
                }
                tx.save(collection)?;
            }
            tx.rpush(b"list", &[b"x", b"y"]).map(|_| ())
        })
        .unwrap();
    }

    /// What can be read of a key: type, expiry, rows without their prefix.
    fn shown(db: &Db, key: &[u8]) -> Option<(Type, u64, Vec<Vec<u8>>)> {
        db.read(|tx| {
            let Some(record) = tx.record(key)? else { return Ok(None) };
            let mut rows = Vec::new();
            if record.header.kind == Type::String {
                rows.push(tx.value_of(key, record.clone())?.to_vec());
            } else {
                let prefix = prefix(tx.space(), key, record.body(key)?.version().unwrap());
                for tree in [DATA, SCORE] {
                    let mut walk =
                        tx.rows(tree, &prefix, after_prefix(&prefix).as_deref(), false)?;
                    while walk.advance()? {
                        rows.push([&walk.key()[prefix.len()..], b"=", walk.value()].concat());
                    }
                }
            }
            Ok(Some((record.header.kind, record.header.expire_ms, rows)))
        })
        .unwrap()
    }

    const KEYS: [&[u8]; 5] = [b"string", b"hash", b"set", b"zset", b"list"];

    #[test]
    fn every_type_keeps_its_rows_and_expiry_when_renamed() {
        let db = db();
        fill(&db);
        for key in KEYS {
            db.expire(key, 1000, ExpireIf::ALWAYS).unwrap();
            let before = shown(&db, key);
            db.set(b"other", b"gone").unwrap();
            db.rename(key, b"other").unwrap();
            assert_eq!(shown(&db, b"other"), before);
            assert_eq!(shown(&db, key), None);
            assert!(db.renamenx(b"other", key).unwrap());
            assert_eq!(shown(&db, key), before);
        }
        assert_eq!(db.rename(b"none", b"none").unwrap_err().message(), "ERR no such key");
        db.rename(b"zset", b"zset").unwrap();
        assert!(!db.renamenx(b"zset", b"zset").unwrap());
        assert!(!db.renamenx(b"zset", b"hash").unwrap());
    }

    #[test]
    fn a_copy_and_its_source_are_independent() {
        let db = db();
        fill(&db);
        for key in KEYS {
            let before = shown(&db, key);
            assert!(db.copy(key, b"copy", true).unwrap());
            assert!(!db.copy(key, b"copy", false).unwrap());
            assert_eq!(shown(&db, b"copy"), before);
            db.del(&[key]).unwrap();
            assert_eq!(shown(&db, b"copy"), before);
            db.rename(b"copy", key).unwrap();
        }
        assert!(!db.copy(b"none", b"copy", true).unwrap());
        let same = "ERR source and destination objects are the same";
        assert_eq!(db.copy(b"none", b"none", true).unwrap_err().message(), same);
    }

    #[test]
    fn a_key_goes_to_another_database_with_all_it_has() {
        let db = db();
        fill(&db);
        let other = db.select(3).unwrap();
        for key in KEYS {
            db.expire(key, 1000, ExpireIf::ALWAYS).unwrap();
            let before = shown(&db, key);
            assert!(db.copy_to(key, b"copy", 3, true).unwrap());
            assert_eq!(shown(&other, b"copy"), before);
            assert!(db.r#move(key, 3).unwrap());
            assert_eq!((shown(&db, key), shown(&other, key)), (None, before.clone()));
            assert!(!db.r#move(key, 3).unwrap(), "it is missing");
            assert!(other.copy_to(key, key, 0, false).unwrap());
            assert!(!db.r#move(key, 3).unwrap(), "it exists there");
            assert_eq!(shown(&db, key), before);
        }
        assert!(db.r#move(b"none", 0).is_err());
        assert_eq!(db.r#move(b"x", 99).unwrap_err().message(), "ERR DB index is out of range");
    }
}
