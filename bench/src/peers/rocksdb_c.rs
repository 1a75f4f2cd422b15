//! The few functions of RocksDB's C API that the bench needs, behind safe types.
//!
//! Declared here after `rocksdb/c.h` of version 7.8 rather than through a -sys crate, which would
//! build RocksDB from source. A [`Db`] owns its handles and frees them when dropped; an [`Iter`]
//! and a [`Value`] borrow it. RocksDB's handles may be used from any thread; an iterator only
//! from one at a time, which `&mut` ensures.

#![expect(unsafe_code, reason = "a C library is called; each block says why that is sound")]

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use crate::Result;

/// Gives each handle of the C API a type of its own.
macro_rules! opaque {
    ($($name:ident),+) => { $(#[repr(C)] struct $name { _private: [u8; 0] })+ };
}

pub(crate) mod families;

opaque!(
    RawDb,
    RawOptions,
    RawTableOptions,
    RawFilterPolicy,
    RawCache,
    RawReadOptions,
    RawWriteOptions,
    RawFlushOptions,
    RawIterator,
    RawPinned
);

const NO_COMPRESSION: c_int = 0;
const LZ4_COMPRESSION: c_int = 4;

type ErrorSlot = *mut *mut c_char;

#[rustfmt::skip]
unsafe extern "C" {
    fn rocksdb_open(options: *const RawOptions, name: *const c_char, error: ErrorSlot) -> *mut RawDb;
    fn rocksdb_close(db: *mut RawDb);
    fn rocksdb_put(
        db: *mut RawDb, options: *const RawWriteOptions,
        key: *const c_char, key_len: usize, value: *const c_char, value_len: usize, error: ErrorSlot,
    );
    fn rocksdb_get_pinned(
        db: *mut RawDb, options: *const RawReadOptions,
        key: *const c_char, key_len: usize, error: ErrorSlot,
    ) -> *mut RawPinned;
    fn rocksdb_pinnableslice_value(slice: *const RawPinned, len: *mut usize) -> *const c_char;
    fn rocksdb_pinnableslice_destroy(slice: *mut RawPinned);
    fn rocksdb_flush(db: *mut RawDb, options: *const RawFlushOptions, error: ErrorSlot);
    fn rocksdb_property_int(db: *mut RawDb, name: *const c_char, value: *mut u64) -> c_int;
    fn rocksdb_free(memory: *mut c_void);

    fn rocksdb_create_iterator(db: *mut RawDb, options: *const RawReadOptions) -> *mut RawIterator;
    fn rocksdb_iter_destroy(iter: *mut RawIterator);
    fn rocksdb_iter_seek_to_first(iter: *mut RawIterator);
    fn rocksdb_iter_seek(iter: *mut RawIterator, key: *const c_char, key_len: usize);
    fn rocksdb_iter_next(iter: *mut RawIterator);
    fn rocksdb_iter_valid(iter: *const RawIterator) -> c_uchar;
    fn rocksdb_iter_key(iter: *const RawIterator, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_value(iter: *const RawIterator, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_get_error(iter: *const RawIterator, error: ErrorSlot);

    fn rocksdb_options_create() -> *mut RawOptions;
    fn rocksdb_options_destroy(options: *mut RawOptions);
    fn rocksdb_options_set_create_if_missing(options: *mut RawOptions, on: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: *mut RawOptions, bytes: usize);
    fn rocksdb_options_set_max_background_jobs(options: *mut RawOptions, jobs: c_int);
    fn rocksdb_options_set_compression(options: *mut RawOptions, compression: c_int);
    fn rocksdb_options_set_block_based_table_factory(
        options: *mut RawOptions, table: *mut RawTableOptions,
    );
    fn rocksdb_block_based_options_create() -> *mut RawTableOptions;
    fn rocksdb_block_based_options_destroy(table: *mut RawTableOptions);
    fn rocksdb_block_based_options_set_filter_policy(
        table: *mut RawTableOptions, policy: *mut RawFilterPolicy,
    );
    fn rocksdb_block_based_options_set_block_cache(
        table: *mut RawTableOptions, cache: *mut RawCache,
    );
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: c_double) -> *mut RawFilterPolicy;
    fn rocksdb_cache_create_lru(bytes: usize) -> *mut RawCache;
    fn rocksdb_cache_destroy(cache: *mut RawCache);
    fn rocksdb_readoptions_create() -> *mut RawReadOptions;
    fn rocksdb_readoptions_destroy(options: *mut RawReadOptions);
    fn rocksdb_writeoptions_create() -> *mut RawWriteOptions;
    fn rocksdb_writeoptions_destroy(options: *mut RawWriteOptions);
    fn rocksdb_writeoptions_set_sync(options: *mut RawWriteOptions, on: c_uchar);
    fn rocksdb_flushoptions_create() -> *mut RawFlushOptions;
    fn rocksdb_flushoptions_destroy(options: *mut RawFlushOptions);
    fn rocksdb_flushoptions_set_wait(options: *mut RawFlushOptions, on: c_uchar);
}

/// What is set; everything else is RocksDB's default.
pub(crate) struct Config {
    pub(crate) write_buffer: usize,
    pub(crate) cache: usize,
    pub(crate) bloom_bits: u32,
    pub(crate) background_jobs: i32,
    pub(crate) lz4: bool,
    pub(crate) synced: bool,
}

/// An open database.
pub(crate) struct Db {
    raw: NonNull<RawDb>,
    read: NonNull<RawReadOptions>,
    write: NonNull<RawWriteOptions>,
}

// SAFETY: RocksDB synchronises its database handle itself, and the two option handles are not
// changed after `open`.
unsafe impl Send for Db {}
// SAFETY: as for Send.
unsafe impl Sync for Db {}

impl Db {
    pub(crate) fn open(dir: &Path, config: &Config) -> Result<Self> {
        let name = directory(dir)?;
        let options = Options::new(config)?;
        // SAFETY: the options live until the end of this function and RocksDB copies them; the
        // name ends with NUL.
        let raw =
            checked(|error| unsafe { rocksdb_open(options.0.as_ptr(), name.as_ptr(), error) })?;
        Self::new(created(raw)?, config)
    }

    /// Owns an open database.
    fn new(raw: NonNull<RawDb>, config: &Config) -> Result<Self> {
        // SAFETY: constructors without arguments.
        let (read, write) =
            unsafe { (rocksdb_readoptions_create(), rocksdb_writeoptions_create()) };
        let db = Self { raw, read: created(read)?, write: created(write)? };
        // SAFETY: the handle was just created and is not shared yet.
        unsafe { rocksdb_writeoptions_set_sync(db.write.as_ptr(), c_uchar::from(config.synced)) };
        Ok(db)
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (db, options) = (self.raw.as_ptr(), self.write.as_ptr());
        let (key_ptr, value_ptr) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: both handles live as long as self; RocksDB copies key and value.
        checked(|error| unsafe {
            rocksdb_put(db, options, key_ptr, key.len(), value_ptr, value.len(), error);
        })
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        let (db, options) = (self.raw.as_ptr(), self.read.as_ptr());
        // SAFETY: both handles live as long as self; the key is only read during the call.
        let pinned = checked(|error| unsafe {
            rocksdb_get_pinned(db, options, key.as_ptr().cast(), key.len(), error)
        })?;
        Ok(NonNull::new(pinned).map(|raw| Value { raw, _db: PhantomData }))
    }

    /// An iterator at the first key, or the first from `start` on.
    pub(crate) fn iter(&self, start: Option<&[u8]>) -> Result<Iter<'_>> {
        // SAFETY: both handles live as long as self, which the iterator borrows.
        let raw = unsafe { rocksdb_create_iterator(self.raw.as_ptr(), self.read.as_ptr()) };
        let mut iter = Iter { raw: created(raw)?, valid: false, _db: PhantomData };
        // SAFETY: the iterator was just created; the key is only read during the call.
        unsafe {
            match start {
                Some(key) => {
                    rocksdb_iter_seek(iter.raw.as_ptr(), key.as_ptr().cast(), key.len());
                }
                None => rocksdb_iter_seek_to_first(iter.raw.as_ptr()),
            }
            iter.valid = rocksdb_iter_valid(iter.raw.as_ptr()) != 0;
        }
        Ok(iter)
    }

    /// Writes the memtable to a table and waits for it.
    pub(crate) fn flush(&self) -> Result<()> {
        // SAFETY: a constructor without arguments.
        let options = created(unsafe { rocksdb_flushoptions_create() })?;
        let (db, raw_options) = (self.raw.as_ptr(), options.as_ptr());
        // SAFETY: the database lives as long as self, the options until they are destroyed below.
        unsafe { rocksdb_flushoptions_set_wait(raw_options, 1) };
        // SAFETY: as above.
        let flushed = checked(|error| unsafe { rocksdb_flush(db, raw_options, error) });
        // SAFETY: created above, destroyed once, not used again.
        unsafe { rocksdb_flushoptions_destroy(raw_options) };
        flushed
    }

    /// A numeric property, if RocksDB knows it.
    pub(crate) fn property(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        let mut value = 0;
        // SAFETY: the name ends with NUL, and the value's place outlives the call.
        let code =
            unsafe { rocksdb_property_int(self.raw.as_ptr(), name.as_ptr(), &raw mut value) };
        (code == 0).then_some(value)
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // SAFETY: each handle is owned by self and freed once; iterators and values borrow self,
        // so none is left.
        unsafe {
            rocksdb_close(self.raw.as_ptr());
            rocksdb_readoptions_destroy(self.read.as_ptr());
            rocksdb_writeoptions_destroy(self.write.as_ptr());
        }
    }
}

/// A value in RocksDB's memory.
pub(crate) struct Value<'a> {
    raw: NonNull<RawPinned>,
    _db: PhantomData<&'a Db>,
}

impl Value<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the handle is live; RocksDB keeps the bytes until it is destroyed.
        unsafe { borrowed(rocksdb_pinnableslice_value(self.raw.as_ptr(), &raw mut len), len) }
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by self and freed once.
        unsafe { rocksdb_pinnableslice_destroy(self.raw.as_ptr()) };
    }
}

/// A position in the database.
pub(crate) struct Iter<'a> {
    raw: NonNull<RawIterator>,
    /// Whether it is at an entry, asked once a move.
    valid: bool,
    _db: PhantomData<&'a Db>,
}

impl Iter<'_> {
    /// The entry at the position; nothing beyond the last or after an error.
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        let raw = self.raw.as_ptr();
        let (mut key_len, mut value_len) = (0, 0);
        if !self.valid {
            return None;
        }
        // SAFETY: the handle is live, and key and value are asked for only where it is valid;
        // they stay until the iterator moves, which needs `&mut self`.
        unsafe {
            let key = borrowed(rocksdb_iter_key(raw, &raw mut key_len), key_len);
            let value = borrowed(rocksdb_iter_value(raw, &raw mut value_len), value_len);
            Some((key, value))
        }
    }

    /// Moves on from an entry; does nothing where there is none.
    pub(crate) fn advance(&mut self) {
        if !self.valid {
            return;
        }
        // SAFETY: the handle is live, and RocksDB is only asked to move a valid iterator.
        unsafe {
            rocksdb_iter_next(self.raw.as_ptr());
            self.valid = rocksdb_iter_valid(self.raw.as_ptr()) != 0;
        }
    }

    /// Tells the end of the data from a failure.
    pub(crate) fn finish(self) -> Result<()> {
        let raw = self.raw.as_ptr();
        // SAFETY: the handle is live until self is dropped.
        checked(|error| unsafe { rocksdb_iter_get_error(raw, error) })
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by self and freed once.
        unsafe { rocksdb_iter_destroy(self.raw.as_ptr()) };
    }
}

/// The options of a database, needed while it is opened.
struct Options(NonNull<RawOptions>);

impl Options {
    fn new(config: &Config) -> Result<Self> {
        let table = table_options(config)?;
        let compression = if config.lz4 { LZ4_COMPRESSION } else { NO_COMPRESSION };
        // SAFETY: a constructor without arguments.
        let options = Self(created(unsafe { rocksdb_options_create() })?);
        let raw = options.0.as_ptr();
        // SAFETY: both handles are live; the table factory copies the table options, which are
        // not used after being destroyed here.
        unsafe {
            rocksdb_options_set_create_if_missing(raw, 1);
            rocksdb_options_set_write_buffer_size(raw, config.write_buffer);
            rocksdb_options_set_max_background_jobs(raw, config.background_jobs);
            rocksdb_options_set_compression(raw, compression);
            rocksdb_options_set_block_based_table_factory(raw, table.as_ptr());
            rocksdb_block_based_options_destroy(table.as_ptr());
        }
        Ok(options)
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: owned by self and freed once.
        unsafe { rocksdb_options_destroy(self.0.as_ptr()) };
    }
}

fn table_options(config: &Config) -> Result<NonNull<RawTableOptions>> {
    // SAFETY: constructors that take plain numbers.
    let (table, cache) =
        unsafe { (rocksdb_block_based_options_create(), rocksdb_cache_create_lru(config.cache)) };
    let (table, cache) = (created(table)?, created(cache)?);
    // SAFETY: the handles are live. The table options take the filter policy over, and share
    // the cache by reference count, so that our reference is given up once.
    unsafe {
        rocksdb_block_based_options_set_block_cache(table.as_ptr(), cache.as_ptr());
        rocksdb_cache_destroy(cache.as_ptr());
        if config.bloom_bits > 0 {
            let policy = rocksdb_filterpolicy_create_bloom_full(f64::from(config.bloom_bits));
            rocksdb_block_based_options_set_filter_policy(table.as_ptr(), policy);
        }
    }
    Ok(table)
}

fn directory(dir: &Path) -> Result<CString> {
    Ok(CString::new(dir.as_os_str().as_bytes())?)
}

fn created<T>(raw: *mut T) -> Result<NonNull<T>> {
    NonNull::new(raw).ok_or_else(|| "RocksDB returned no handle".into())
}

/// Runs a call that reports failure through an error slot.
fn checked<T>(call: impl FnOnce(ErrorSlot) -> T) -> Result<T> {
    let mut error: *mut c_char = ptr::null_mut();
    let value = call(&raw mut error);
    if error.is_null() {
        return Ok(value);
    }
    // SAFETY: RocksDB sets the slot to a string of its own that ends with NUL.
    let message = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: the string is RocksDB's and freed once, after the copy.
    unsafe { rocksdb_free(error.cast()) };
    Err(message.into())
}

/// The `len` bytes at `data`, where an empty value may have no address.
///
/// # Safety
/// Unless `len` is 0, `data` must be readable for `len` bytes and unchanged during `'a`.
unsafe fn borrowed<'a>(data: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}
