//! A store as a source and as a sink.

use bytes::Bytes;
use lsmkv::types::{KeyIter, KeyRange, Member, MemberIter, MemberRange};
use lsmkv::{CacheFill, Db, ErrorKind, Reply, Type};

use super::{Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, ResumePoint, Sink, Source};
use crate::failure::Failure;
use crate::store::WritableStore;

/// The keys of some databases of a store, in order. Each database is read as of one moment.
pub(crate) struct StoreSource {
    db: Db,
    databases: Vec<u32>,
    /// Restricts the source to keys with this prefix.
    prefix: Option<Vec<u8>>,
    /// The source continues after this key.
    after: Option<Vec<u8>>,
    keys: Option<(Db, KeyIter)>,
    open: Option<OpenCollection>,
    finished: Option<ResumePoint>,
    /// The position at the start. Its run id and connection stay valid.
    begun: ResumePoint,
}

/// A collection that is partly read.
struct OpenCollection {
    key: Bytes,
    kind: Type,
    expire_ms: u64,
    members: MemberIter,
    /// Members that are read but not yet returned.
    ready: Vec<Member>,
}

impl StoreSource {
    /// A source for `databases`, or for all of them if the list is empty. It starts at `state`, or
    /// at the beginning.
    pub(crate) fn new(
        db: &Db,
        databases: &[u32],
        prefix: Option<Vec<u8>>,
        state: Option<&ResumePoint>,
    ) -> Self {
        let begun = state.cloned().unwrap_or_default();
        let from = begun.database;
        let mut databases = if databases.is_empty() { all(db) } else { databases.to_vec() };
        databases.sort_unstable_by(|a, b| b.cmp(a));
        databases.retain(|number| *number >= from);
        // The position belongs to the first remaining database, unless that one has no keys any
        // more.
        let state = state.filter(|state| databases.last() == Some(&state.database));
        let after = state.and_then(|state| state.position.clone());
        let db = db.clone();
        Self { db, databases, prefix, after, keys: None, open: None, finished: None, begun }
    }

    fn next_key(&mut self) -> Result<Option<Chunk>, Failure> {
        loop {
            if self.keys.is_none() && !self.next_database()? {
                return Ok(None);
            }
            let Some((db, keys)) = &mut self.keys else { continue };
            let Some(entry) = keys.next()? else {
                self.keys = None;
                continue;
            };
            let expire_ms = match db.pexpiretime(&entry.key)? {
                -1 => 0,
                // The key has expired since the walk began.
                -2 => continue,
                ms => u64::try_from(ms).unwrap_or(0),
            };
            if let Some(value) = entry.value {
                self.finish(&entry.key);
                return Ok(Some(self.chunk(
                    entry.key,
                    expire_ms,
                    (true, true),
                    Body::whole_string(value),
                )));
            }
            let range = MemberRange { cache_fill: CacheFill::Skip, ..MemberRange::default() };
            let mut members = db.members(&entry.key, range)?;
            let ready = members.next_chunk(CHUNK_MEMBERS, CHUNK_BYTES)?;
            // Without members, the key has expired since.
            if !ready.is_empty() {
                let (key, kind) = (entry.key, entry.kind);
                self.open = Some(OpenCollection { key, kind, expire_ms, members, ready });
                return self.next_part(true);
            }
        }
    }

    fn next_database(&mut self) -> Result<bool, Failure> {
        let Some(number) = self.databases.pop() else { return Ok(false) };
        let db = self.db.select(number)?;
        let lo = self.after.take().map(|key| [&key[..], &[0]].concat());
        let prefix = self.prefix.clone();
        let range = KeyRange {
            lo,
            prefix,
            values: true,
            cache_fill: CacheFill::Skip,
            ..KeyRange::default()
        };
        let keys = db.iter(range)?;
        self.keys = Some((db, keys));
        Ok(true)
    }

    /// The next chunk of the open collection.
    fn next_part(&mut self, first: bool) -> Result<Option<Chunk>, Failure> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        let following = open.members.next_chunk(CHUNK_MEMBERS, CHUNK_BYTES)?;
        let last = following.is_empty();
        let mut body = Body::empty(open.kind);
        std::mem::replace(&mut open.ready, following).into_iter().for_each(|it| body.push(it));
        let chunk = self.chunk(open.key.clone(), open.expire_ms, (first, last), body);
        if last {
            self.finish(&open.key);
        } else {
            self.open = Some(open);
        }
        Ok(Some(chunk))
    }

    fn chunk(&self, key: Bytes, expire_ms: u64, (first, last): (bool, bool), body: Body) -> Chunk {
        Chunk { database: self.database(), key, expire_ms, first, last, body }
    }

    fn database(&self) -> u32 {
        self.keys.as_ref().map_or(0, |(db, _)| db.database())
    }

    fn finish(&mut self, key: &[u8]) {
        let (database, position) = (self.database(), Some(key.to_vec()));
        self.finished = Some(ResumePoint { database, position, ..self.begun.clone() });
    }
}

fn all(db: &Db) -> Vec<u32> {
    (0..u32::MAX).take_while(|number| db.select(*number).is_ok()).collect()
}

impl Source for StoreSource {
    fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        if self.open.is_some() {
            return self.next_part(false);
        }
        self.next_key()
    }

    fn position(&self) -> Option<ResumePoint> {
        self.finished.clone()
    }
}

/// Writes keys to a store; each key replaces its old value.
pub(crate) struct StoreSink {
    store: WritableStore,
    /// The database of the last key, with its number.
    selected: (u32, WritableStore),
}

impl StoreSink {
    /// Writes to a store, whose database 0 is given.
    pub(crate) fn new(store: WritableStore) -> Self {
        Self { selected: (0, store.clone()), store }
    }
}

impl Sink for StoreSink {
    fn put(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        if self.selected.0 != chunk.database {
            let selected = self.store.select(chunk.database).map_err(|error| {
                if error.kind() != ErrorKind::OutOfRange {
                    return error.into();
                }
                let number = chunk.database;
                Failure::new(format!(
                    "the store has no database {number}: open it with --option databases={}",
                    number.saturating_add(1)
                ))
            })?;
            self.selected = (chunk.database, selected);
        }
        for command in chunk.commands(true) {
            let words: Vec<&[u8]> = command.iter().map(AsRef::as_ref).collect();
            if let Reply::Error(text) = self.selected.1.command(&words)? {
                let key = chunk.key.escape_ascii();
                return Err(Failure::new(format!("key \"{key}\": {text}")));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.store.sync()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmkv::Options;

    fn names(source: &mut StoreSource) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(chunk) = source.next().unwrap() {
            names.push(format!("{}:{}", chunk.database, chunk.key.escape_ascii()));
        }
        names
    }

    #[test]
    fn a_source_goes_on_behind_the_key_it_had_come_to_and_takes_later_databases_whole() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let other = db.select(3).unwrap();
        for key in ["a", "b", "c"] {
            db.set(key.as_bytes(), b"v").unwrap();
            other.set(key.as_bytes(), b"v").unwrap();
        }
        let all = names(&mut StoreSource::new(&db, &[], None, None));
        assert_eq!(all, ["0:a", "0:b", "0:c", "3:a", "3:b", "3:c"]);
        let mut source = StoreSource::new(&db, &[], None, None);
        for done in 1..=all.len() {
            source.next().unwrap().unwrap();
            let state = source.position().unwrap();
            let rest = names(&mut StoreSource::new(&db, &[], None, Some(&state)));
            assert_eq!(rest, all[done..], "after {done}");
        }
    }
}
