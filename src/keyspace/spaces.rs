//! The mapping of database numbers to spaces.
//!
//! Once a database was emptied or swapped, a record in the reserved space of the meta tree holds
//! its space (`db` + number -> space id); before that the number itself decides. Ids come from a
//! durable counter (`next`) and are never reused: emptying a database points its number at a fresh
//! id, and the keys of the old space are unreachable at once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::encoding::keys::{MetaKey, Space, meta_key, split_meta_key};
use crate::engine::Reader;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::trees::META;

/// The mapping at one moment.
#[derive(Debug)]
pub(crate) struct SpaceMapping {
    ids: Vec<u32>,
    next: u32,
}

/// The mapping in force. Only whoever holds every stripe changes it.
#[derive(Debug)]
pub(crate) struct Spaces {
    ids: Vec<AtomicU32>,
    next: AtomicU32,
    /// How often the mapping has changed.
    changes: AtomicU64,
    /// A change holds it from before its records are visible until the mapping is in force. Readers
    /// hold it when they need the two to agree.
    changing: RwLock<()>,
}

fn record_of(number: u32) -> MetaKey {
    meta_key(Space::RESERVED, &[b"db", &number.to_be_bytes()[..]].concat())
}

/// The key of the counter. The record exists once a database was emptied.
pub(crate) fn record_of_next() -> MetaKey {
    meta_key(Space::RESERVED, b"next")
}

fn read_id(reader: &Reader, key: &MetaKey) -> Result<Option<u32>> {
    reader.get(META, key)?.map(|value| id_in(&value)).transpose()
}

/// The space of a database at the reader's sequence.
fn read_space(reader: &Reader, number: u32) -> Result<Space> {
    let default = Space::of_database(u16::try_from(number).unwrap_or(u16::MAX));
    Ok(read_id(reader, &record_of(number))?.map_or(default, Space::from_id))
}

/// The database number and the space in a record of the reserved space; `None` for other records.
pub(crate) fn assignment_in(key: &[u8], value: &[u8]) -> Result<Option<(u32, Space)>> {
    let Some((Space::RESERVED, name)) = split_meta_key(key) else { return Ok(None) };
    let number = name.strip_prefix(b"db").and_then(|number| <[u8; 4]>::try_from(number).ok());
    let Some(number) = number else { return Ok(None) };
    Ok(Some((u32::from_be_bytes(number), Space::from_id(id_in(value)?))))
}

fn id_in(value: &[u8]) -> Result<u32> {
    let id = <[u8; 4]>::try_from(value).map(u32::from_be_bytes);
    id.map_err(|_| Error::new(ErrorKind::Corrupt, "a database's record is malformed"))
}

impl SpaceMapping {
    fn read(reader: &Reader, databases: u32) -> Result<Self> {
        let ids = (0..databases).map(|number| read_space(reader, number).map(Space::id));
        let next = read_id(reader, &record_of_next())?.unwrap_or(Space::FIRST_FRESH.id());
        Ok(Self { ids: ids.collect::<Result<_>>()?, next })
    }
}

impl Spaces {
    /// Reads the mapping of `databases` numbers.
    pub(crate) fn load(reader: &Reader, databases: u32) -> Result<Self> {
        let SpaceMapping { ids, next } = SpaceMapping::read(reader, databases)?;
        Ok(Self {
            ids: ids.into_iter().map(AtomicU32::new).collect(),
            next: AtomicU32::new(next),
            changes: AtomicU64::new(0),
            changing: RwLock::new(()),
        })
    }

    /// The number of databases.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
    }

    /// The space of a database.
    pub(crate) fn of(&self, number: u32) -> Result<Space> {
        match self.ids.get(number as usize) {
            Some(id) => Ok(Space::from_id(id.load(Ordering::Acquire))),
            None => Err(Error::new(ErrorKind::OutOfRange, "ERR DB index is out of range")),
        }
    }

    /// The space that a database had at the reader's sequence.
    pub(crate) fn at(&self, reader: &Reader, number: u32) -> Result<Space> {
        self.of(number)?;
        read_space(reader, number)
    }

    /// The whole mapping at the reader's sequence.
    pub(crate) fn mapping_at(&self, reader: &Reader) -> Result<SpaceMapping> {
        SpaceMapping::read(reader, self.count())
    }

    /// Puts a mapping of another moment into force. The caller holds the guard of
    /// [`Spaces::change`] and has made that moment visible.
    pub(crate) fn adopt(&self, mapping: &SpaceMapping) {
        self.next.store(mapping.next, Ordering::Release);
        let mut changed = false;
        for (id, new) in self.ids.iter().zip(&mapping.ids) {
            changed |= id.swap(*new, Ordering::AcqRel) != *new;
        }
        if changed {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How often the mapping has changed. Equal numbers before and after an operation say that the
    /// mapping did not change meanwhile.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// While the guard lives, the visible records and the mapping in force agree.
    pub(crate) fn steady(&self) -> RwLockReadGuard<'_, ()> {
        self.changing.read()
    }

    /// The guard that a change holds from before its commit until it is assigned.
    pub(crate) fn change(&self) -> RwLockWriteGuard<'_, ()> {
        self.changing.write()
    }

    /// A space that neither the mapping in force nor these pending assignments ever used, and the
    /// write that prevents its reuse.
    pub(crate) fn fresh(&self, pending: &[(u32, Space)]) -> Result<(Space, MetaKey, [u8; 4])> {
        let in_force = self.next.load(Ordering::Acquire);
        let id = pending.iter().map(|(_, space)| space.id().saturating_add(1)).max();
        let id = id.unwrap_or(0).max(in_force);
        match id.checked_add(1) {
            Some(next) => Ok((Space::from_id(id), record_of_next(), next.to_be_bytes())),
            None => Err(Error::new(ErrorKind::Unsupported, "no ids for databases are left")),
        }
    }

    /// The write that maps `number` to `space`.
    pub(crate) fn assignment(number: u32, space: Space) -> (MetaKey, [u8; 4]) {
        (record_of(number), space.to_bytes())
    }

    /// Puts an assignment into force. The caller has made its writes visible.
    pub(crate) fn assign(&self, number: u32, space: Space) {
        if let Some(id) = self.ids.get(number as usize) {
            id.store(space.id(), Ordering::Release);
        }
        self.next
            .fetch_max(space.id().saturating_add(1).max(Space::FIRST_FRESH.id()), Ordering::AcqRel);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}
