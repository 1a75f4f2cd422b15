//! What the body of an exported function works on: a database to run a command on, or a batch
//! that notes it; and the caller's pointers as slices, checked against the store's limits.
#![expect(unsafe_code, reason = "turns the caller's pointers into slices")]

use std::ffi::c_void;

use crate::commands::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::slice::{array, input, lsmkv_slice, misuse};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::types::Db;

/// Arguments.
pub(super) type Items<'a> = Vec<&'a [u8]>;
/// Pairs of arguments.
pub(super) type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Takes commands instead of running them.
pub(super) trait Record {
    /// Notes a command; an error if it could never run.
    fn record(&self, argv: &[&[u8]]) -> Result<()>;
}

/// See the module's documentation.
pub(super) struct On<'a> {
    db: &'a Db,
    batch: Option<&'a dyn Record>,
}

impl<'a> On<'a> {
    /// Runs commands here.
    pub(super) fn database(db: &'a Db) -> Self {
        Self { db, batch: None }
    }

    /// Notes commands in `batch`, to be run on `db` later.
    pub(super) fn batch(db: &'a Db, batch: &'a dyn Record) -> Self {
        Self { db, batch: Some(batch) }
    }

    /// Where commands run. Only for those that [`On::records`] denies.
    pub(super) fn db(&self) -> &'a Db {
        self.db
    }

    /// Whether commands are noted instead of run.
    #[inline]
    pub(super) fn records(&self) -> bool {
        self.batch.is_some()
    }

    /// Notes a command of a batch.
    pub(super) fn record(&self, name: &str, args: &[&[u8]]) -> Result<lsmkv_status> {
        self.record_with(name, args, [])
    }

    /// Notes a command of a batch that ends with any number of arguments.
    pub(super) fn record_with<'i>(
        &self,
        name: &'i str,
        args: &[&'i [u8]],
        items: impl IntoIterator<Item = &'i [u8]>,
    ) -> Result<lsmkv_status> {
        let batch = self.batch.ok_or_else(|| misuse("this handle is no batch"))?;
        batch.record(&argv(name, args, items)).map(|()| LSMKV_OK)
    }

    /// Runs a command by name, or notes it: then there is no reply. Errors are errors.
    pub(super) fn run<'i>(
        &self,
        name: &'i str,
        args: &[&'i [u8]],
        items: impl IntoIterator<Item = &'i [u8]>,
    ) -> Result<Option<Reply>> {
        let argv = argv(name, args, items);
        match self.batch {
            Some(batch) => batch.record(&argv).map(|()| None),
            None => self.db.execute(&argv).map(Some),
        }
    }

    /// An error on a batch, which only notes writes.
    #[inline]
    pub(super) fn reads(&self) -> Result<()> {
        if self.records() { Err(no_reads()) } else { Ok(()) }
    }

    /// A key: `len` bytes at `data`.
    ///
    /// # Safety
    /// As for `slice::input`, for as long as `'s`.
    pub(super) unsafe fn key<'s>(
        &self,
        name: &str,
        data: *const c_void,
        len: usize,
    ) -> Result<&'s [u8]> {
        // SAFETY: the caller's promise.
        unsafe { input(name, data, len, |len| self.db.limits().check_key_len(len)) }
    }

    /// A value, field, member or element: `len` bytes at `data`.
    ///
    /// # Safety
    /// As for `slice::input`, for as long as `'s`.
    pub(super) unsafe fn bytes<'s>(
        &self,
        name: &str,
        data: *const c_void,
        len: usize,
    ) -> Result<&'s [u8]> {
        // SAFETY: the caller's promise.
        unsafe { input(name, data, len, |len| self.db.limits().check_value_len(len)) }
    }

    /// Bytes that may be absent: NULL is none.
    ///
    /// # Safety
    /// `slice` is NULL or points to a slice that is as for `slice::input`.
    pub(super) unsafe fn optional<'s>(
        &self,
        name: &str,
        slice: *const lsmkv_slice,
    ) -> Result<Option<&'s [u8]>> {
        // SAFETY: the caller's promise.
        let slice = unsafe { slice.as_ref() };
        // SAFETY: the caller's promise.
        slice.map(|slice| unsafe { self.bytes(name, slice.data.cast(), slice.len) }).transpose()
    }

    /// `n` keys, at least one.
    ///
    /// # Safety
    /// `slices` is NULL or points to `n` slices, each as for `slice::input`.
    pub(super) unsafe fn keys<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Items<'s>> {
        // SAFETY: the caller's promise.
        let slices = unsafe { some_slices(name, slices, n, 1)? };
        // SAFETY: the caller's promise.
        slices.iter().map(|it| unsafe { self.key(name, it.data.cast(), it.len) }).collect()
    }

    /// `n` values, fields, members or elements, at least one.
    ///
    /// # Safety
    /// As for [`On::keys`].
    pub(super) unsafe fn items<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Items<'s>> {
        // SAFETY: the caller's promise.
        let slices = unsafe { some_slices(name, slices, n, 1)? };
        // SAFETY: the caller's promise.
        slices.iter().map(|it| unsafe { self.bytes(name, it.data.cast(), it.len) }).collect()
    }

    /// `n` pairs of fields and values, at least one: twice as many slices.
    ///
    /// # Safety
    /// As for [`On::keys`], with `2 * n` slices.
    pub(super) unsafe fn pairs<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Pairs<'s>> {
        // SAFETY: the caller's promise.
        let slices = unsafe { some_slices(name, slices, n, 2)? };
        let pair = |pair: &[lsmkv_slice]| match pair {
            // SAFETY: the caller's promise.
            [a, b] => unsafe {
                Ok((
                    self.bytes(name, a.data.cast(), a.len)?,
                    self.bytes(name, b.data.cast(), b.len)?,
                ))
            },
            _ => Err(misuse("half a pair")),
        };
        slices.chunks_exact(2).map(pair).collect()
    }

    /// `n` pairs of keys and values, at least one: twice as many slices.
    ///
    /// # Safety
    /// As for [`On::pairs`].
    pub(super) unsafe fn key_pairs<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Pairs<'s>> {
        // SAFETY: the caller's promise.
        let pairs = unsafe { self.pairs(name, slices, n)? };
        pairs.iter().try_for_each(|(key, _)| self.db.limits().check_key(key))?;
        Ok(pairs)
    }
}

fn argv<'i>(
    name: &'i str,
    args: &[&'i [u8]],
    items: impl IntoIterator<Item = &'i [u8]>,
) -> Items<'i> {
    std::iter::once(name.as_bytes()).chain(args.iter().copied()).chain(items).collect()
}

fn no_reads() -> Error {
    let message = "a batch only notes writes and runs them at lsmkv_commit: read on the database";
    Error::new(ErrorKind::Unsupported, message)
}

/// `n` times `each` slices, at least one.
///
/// # Safety
/// `slices` is NULL or points to that many slices that nobody writes during the call.
unsafe fn some_slices<'s>(
    name: &str,
    slices: *const lsmkv_slice,
    n: usize,
    each: usize,
) -> Result<&'s [lsmkv_slice]> {
    if n == 0 {
        let message = format!("there are no {name}: name at least one");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    // SAFETY: the caller's promise.
    unsafe { array(name, slices, n.saturating_mul(each)) }
}
