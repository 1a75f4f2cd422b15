//! Records: what a [`Tx`] knows of a user key, and how it changes that.

use std::cell::RefCell;

use crate::encoding::keys::{MetaKey, meta_key};
use crate::encoding::meta::{Header, Type};
use crate::engine::Sequence;
use crate::error::Result;
use crate::keyspace::errors::{malformed, wrong_type};
use crate::keyspace::trees::META;
use crate::messages::events::{Classes, Event};
use crate::txn::outgoing::Outgoing;
use crate::txn::record::Record;
use crate::txn::touched::Touched;
use crate::txn::tx::Tx;
use crate::txn::writes::Writes;

impl Tx<'_> {
    /// The record of a key that exists and has not expired.
    #[inline]
    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Record>> {
        self.store.limits().check_key(key)?;
        self.record_at(key, &meta_key(self.space, key))
    }

    #[inline]
    fn record_at(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
        let found = self.live_record(key, meta)?;
        if found.is_none() && self.reads {
            self.miss(key);
        }
        if let Some(touched) = self.tracker() {
            let expire_ms = found.as_ref().map(|record| record.header.expire_ms);
            touched.borrow_mut().read(self.database, self.space, key, expire_ms);
        }
        Ok(found)
    }

    fn live_record(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
        let Some(bytes) = self.row(META, meta)? else { return Ok(None) };
        let header = self.header_of(key, &bytes)?;
        // Expiry before type: an expired key of another type is missing, not of the wrong type.
        if header.expired(self.now) {
            self.meet_expired(key);
            return Ok(None);
        }
        Ok(Some(Record { header, bytes }))
    }

    /// Announces an expired key that a command has met, once.
    #[cold]
    fn meet_expired(&self, key: &[u8]) {
        if !self.store.hub().wants_expired() || self.as_of_reader {
            return;
        }
        // What a read has met is deleted afterwards, which announces it.
        if self.overlay.meet_expired(self.space, key) && self.commits {
            self.say_from(Classes::EXPIRED, "expired", key);
        }
    }

    /// Announces a read of a key that does not exist.
    #[cold]
    fn miss(&self, key: &[u8]) {
        if self.store.hub().classes().has(Classes::KEY_MISS) && !self.as_of_reader {
            self.say_from(Classes::KEY_MISS, "keymiss", key);
        }
    }

    fn say_from(&self, class: Classes, name: &'static str, key: &[u8]) {
        let event = Event { class, name, database: self.database, key: key.into() };
        self.overlay.say_found(Outgoing::Event(event));
    }

    /// Announces a key that is about to be made.
    #[cold]
    fn announce_new(&self, key: &[u8]) -> Result<()> {
        if self.store.hub().classes().has(Classes::NEW)
            && self.live_record(key, &meta_key(self.space, key))?.is_none()
        {
            self.say_from(Classes::NEW, "new", key);
        }
        Ok(())
    }

    /// Announces a key that is about to be deleted and made again.
    pub(crate) fn announce_replaced(&self, key: &[u8]) -> Result<()> {
        if self.store.hub().classes().has(Classes::NEW)
            && self.live_record(key, &meta_key(self.space, key))?.is_some()
        {
            self.say_from(Classes::NEW, "new", key);
        }
        Ok(())
    }

    /// Decodes the header of a record of `key`.
    #[inline]
    pub(crate) fn header_of(&self, key: &[u8], record: &[u8]) -> Result<Header> {
        Header::decode(record).map_err(|why| malformed(key, why))
    }

    /// The record of a key, which must be of this type if it exists.
    #[inline]
    pub(crate) fn typed(&self, key: &[u8], kind: Type) -> Result<Option<Record>> {
        match self.record(key)? {
            Some(record) if record.header.kind != kind => Err(wrong_type()),
            other => Ok(other),
        }
    }

    /// Sets the record of a key.
    pub(crate) fn put_record(&mut self, key: &[u8], record: Vec<u8>) -> Result<()> {
        self.store.limits().check_key(key)?;
        if self.store.hub().wants_any() {
            self.announce_new(key)?;
        }
        self.touch_record(key);
        let meta = meta_key(self.space, key);
        self.put_row(META, &meta, record);
        Ok(())
    }

    /// Sets the record of a key; `exists` says that the key has a record with the same expiry. Then
    /// the set of keys does not change.
    pub(crate) fn put_record_over(
        &mut self,
        key: &[u8],
        record: Vec<u8>,
        exists: bool,
    ) -> Result<()> {
        if !exists {
            return self.put_record(key, record);
        }
        self.store.limits().check_key(key)?;
        self.touch_record(key);
        self.forget_recent(META);
        self.overlay.replace_record(&meta_key(self.space, key), record.into());
        Ok(())
    }

    /// Deletes a key in constant time: its rows become unreachable.
    pub(crate) fn delete_record(&mut self, key: &[u8]) {
        self.touch_record(key);
        let meta = meta_key(self.space, key);
        self.remove_row(META, &meta);
    }

    /// Tracks a write of a key's record.
    fn touch_record(&self, key: &[u8]) {
        if let Some(touched) = self.tracker() {
            touched.borrow_mut().write(self.database, self.space, key);
        }
    }

    /// Where to track keys of the selected database, if they need tracking.
    #[inline]
    fn tracker(&self) -> Option<&RefCell<Touched>> {
        let wanted = self.space.id() < self.overlay.own_spaces_from;
        self.overlay.touched.as_deref().filter(|_| wanted)
    }

    /// Lets this command use the space reserved for a full disk, because it frees some.
    pub(crate) fn frees_space(&mut self) {
        self.overlay.frees_space = true;
    }

    /// Reserves a version for a new collection: never used before, and smaller than every later
    /// commit.
    pub(crate) fn new_version(&mut self) -> u64 {
        let reserved = self.store.engine().reserve_number();
        let number = reserved.number();
        self.overlay.building.push(reserved);
        number
    }

    /// The sequence of the reader, unless writes of records are pending.
    pub(crate) fn sequence_if_unwritten(&self) -> Option<Sequence> {
        let unwritten = self.overlay.of(META).is_none_or(Writes::is_empty);
        unwritten.then(|| self.reader.sequence())
    }
}
