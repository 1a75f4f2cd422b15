//! Column families: point reads, atomic batches across them, walks within bounds.
//!
//! [`Families`] owns the database and the handles of its families, and destroys the handles first.
//! A [`Batch`] is of no database until it is written; a [`Walk`] borrows the families.

use std::ffi::{CString, c_char, c_int, c_uchar};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};

use super::{
    Config, Db, ErrorSlot, Iter, Options, RawDb, RawIterator, RawOptions, RawPinned,
    RawReadOptions, RawWriteOptions, Value, checked, created, directory, rocksdb_iter_seek,
    rocksdb_iter_valid, rocksdb_readoptions_create, rocksdb_readoptions_destroy,
};
use crate::Result;

opaque!(RawFamily, RawBatch);

#[rustfmt::skip]
unsafe extern "C" {
    fn rocksdb_open_column_families(
        options: *const RawOptions, name: *const c_char, count: c_int,
        names: *const *const c_char, family_options: *const *const RawOptions,
        families: *mut *mut RawFamily, error: ErrorSlot,
    ) -> *mut RawDb;
    fn rocksdb_column_family_handle_destroy(family: *mut RawFamily);
    fn rocksdb_options_set_create_missing_column_families(options: *mut RawOptions, on: c_uchar);
    fn rocksdb_get_pinned_cf(
        db: *mut RawDb, options: *const RawReadOptions, family: *mut RawFamily,
        key: *const c_char, key_len: usize, error: ErrorSlot,
    ) -> *mut RawPinned;
    fn rocksdb_create_iterator_cf(
        db: *mut RawDb, options: *const RawReadOptions, family: *mut RawFamily,
    ) -> *mut RawIterator;
    fn rocksdb_readoptions_set_iterate_upper_bound(
        options: *mut RawReadOptions, key: *const c_char, key_len: usize,
    );
    fn rocksdb_compact_range_cf(
        db: *mut RawDb, family: *mut RawFamily,
        start: *const c_char, start_len: usize, limit: *const c_char, limit_len: usize,
    );
    fn rocksdb_writebatch_create() -> *mut RawBatch;
    fn rocksdb_writebatch_destroy(batch: *mut RawBatch);
    fn rocksdb_writebatch_clear(batch: *mut RawBatch);
    fn rocksdb_writebatch_put_cf(
        batch: *mut RawBatch, family: *mut RawFamily,
        key: *const c_char, key_len: usize, value: *const c_char, value_len: usize,
    );
    fn rocksdb_writebatch_delete_cf(
        batch: *mut RawBatch, family: *mut RawFamily, key: *const c_char, key_len: usize,
    );
    fn rocksdb_write(
        db: *mut RawDb, options: *const RawWriteOptions, batch: *mut RawBatch, error: ErrorSlot,
    );
}

/// One of the families a database was opened with.
#[derive(Clone, Copy)]
pub(crate) struct Family(NonNull<RawFamily>);

/// An open database of several families, all with the same options.
pub(crate) struct Families<const N: usize> {
    families: [Family; N],
    db: Db,
}

impl<const N: usize> Families<N> {
    /// Opens them, creating what is missing; one must be called `default`.
    pub(crate) fn open(dir: &Path, config: &Config, names: [&str; N]) -> Result<Self> {
        let directory = directory(dir)?;
        let options = Options::new(config)?;
        let names =
            names.map(CString::new).into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
        let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let each: [*const RawOptions; N] = [options.0.as_ptr().cast_const(); N];
        let mut handles: [*mut RawFamily; N] = [ptr::null_mut(); N];
        let count = c_int::try_from(N)?;
        // SAFETY: the options, names and arrays live until the end of this function and have
        // `count` entries each; RocksDB copies what it keeps and fills the handles.
        let raw = checked(|error| unsafe {
            rocksdb_options_set_create_missing_column_families(options.0.as_ptr(), 1);
            rocksdb_open_column_families(
                options.0.as_ptr(),
                directory.as_ptr(),
                count,
                names.as_ptr(),
                each.as_ptr(),
                handles.as_mut_ptr(),
                error,
            )
        })?;
        let db = Db::new(created(raw)?, config)?;
        let families = handles.map(|handle| created(handle).map(Family));
        let families = families.into_iter().collect::<Result<Vec<_>>>()?;
        let families = families.try_into().map_err(|_| "RocksDB returned too few families")?;
        Ok(Self { families, db })
    }

    /// In the order of the names.
    pub(crate) fn all(&self) -> [Family; N] {
        self.families
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Value<'_>>> {
        let (db, options) = (self.db.raw.as_ptr(), self.db.read.as_ptr());
        let (family, start) = (family.0.as_ptr(), key.as_ptr().cast());
        // SAFETY: all handles live as long as self; the key is only read during the call.
        let pinned = checked(|error| unsafe {
            rocksdb_get_pinned_cf(db, options, family, start, key.len(), error)
        })?;
        Ok(NonNull::new(pinned).map(|raw| Value { raw, _db: PhantomData }))
    }

    /// The entries from `start` on and before `end`.
    pub(crate) fn walk(&self, family: Family, start: &[u8], end: Vec<u8>) -> Result<Walk<'_>> {
        // SAFETY: a constructor without arguments.
        let options = ReadOptions(created(unsafe { rocksdb_readoptions_create() })?);
        let (db, raw_options) = (self.db.raw.as_ptr(), options.0.as_ptr());
        // SAFETY: the handles are live; the walk keeps options and bound until its iterator is
        // destroyed, and a Vec's bytes stay where they are when it moves.
        let raw = unsafe {
            rocksdb_readoptions_set_iterate_upper_bound(
                raw_options,
                end.as_ptr().cast(),
                end.len(),
            );
            rocksdb_create_iterator_cf(db, raw_options, family.0.as_ptr())
        };
        let mut iter = Iter { raw: created(raw)?, valid: false, _db: PhantomData };
        // SAFETY: the iterator was just created; the key is only read during the call.
        unsafe {
            rocksdb_iter_seek(iter.raw.as_ptr(), start.as_ptr().cast(), start.len());
            iter.valid = rocksdb_iter_valid(iter.raw.as_ptr()) != 0;
        }
        Ok(Walk { iter, _options: options, _end: end })
    }

    /// Applies a batch at once and empties it.
    pub(crate) fn write(&self, batch: &mut Batch) -> Result<()> {
        let (db, options, raw) = (self.db.raw.as_ptr(), self.db.write.as_ptr(), batch.0.as_ptr());
        // SAFETY: all handles are live, and the batch is not used by anyone else meanwhile.
        let written = checked(|error| unsafe { rocksdb_write(db, options, raw, error) });
        // SAFETY: as above.
        unsafe { rocksdb_writebatch_clear(raw) };
        written
    }

    /// Flushes and merges everything, and returns when that is done.
    pub(crate) fn compact(&self) {
        let db = self.db.raw.as_ptr();
        for family in self.families {
            // SAFETY: both handles live as long as self; no bounds are given.
            unsafe {
                rocksdb_compact_range_cf(db, family.0.as_ptr(), ptr::null(), 0, ptr::null(), 0);
            }
        }
    }
}

impl<const N: usize> Drop for Families<N> {
    fn drop(&mut self) {
        for family in self.families {
            // SAFETY: owned by self and freed once, before the database is closed.
            unsafe { rocksdb_column_family_handle_destroy(family.0.as_ptr()) };
        }
    }
}

struct ReadOptions(NonNull<RawReadOptions>);

impl Drop for ReadOptions {
    fn drop(&mut self) {
        // SAFETY: owned by self and freed once.
        unsafe { rocksdb_readoptions_destroy(self.0.as_ptr()) };
    }
}

/// A walk within bounds. The iterator comes first, so that it is dropped before what it refers to.
pub(crate) struct Walk<'a> {
    pub(crate) iter: Iter<'a>,
    _options: ReadOptions,
    _end: Vec<u8>,
}

impl Walk<'_> {
    /// Tells the end of the rows from a failure.
    pub(crate) fn finish(self) -> Result<()> {
        self.iter.finish()
    }
}

/// Puts and deletes that are written together.
pub(crate) struct Batch(NonNull<RawBatch>);

impl Batch {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: a constructor without arguments.
        Ok(Self(created(unsafe { rocksdb_writebatch_create() })?))
    }

    pub(crate) fn put(&mut self, family: Family, key: &[u8], value: &[u8]) {
        let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        let (batch, family) = (self.0.as_ptr(), family.0.as_ptr());
        // SAFETY: both handles are live; RocksDB copies key and value.
        unsafe {
            rocksdb_writebatch_put_cf(
                batch,
                family,
                key_start,
                key.len(),
                value_start,
                value.len(),
            );
        }
    }

    pub(crate) fn delete(&mut self, family: Family, key: &[u8]) {
        let (batch, family) = (self.0.as_ptr(), family.0.as_ptr());
        // SAFETY: both handles are live; RocksDB copies the key.
        unsafe { rocksdb_writebatch_delete_cf(batch, family, key.as_ptr().cast(), key.len()) };
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: owned by self and freed once.
        unsafe { rocksdb_writebatch_destroy(self.0.as_ptr()) };
    }
}
