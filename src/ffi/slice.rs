//! Turns the caller's pointers into Rust slices and outputs. Nothing is read before its length is
//! checked, and every output is emptied before anything can fail.
#![expect(unsafe_code, reason = "turns the caller's pointers into slices and places")]

use std::ffi::{CStr, c_char, c_void};
use std::fmt::Display;

use crate::error::{Error, ErrorKind, Result};

/// The largest number of elements of an array in one call. A larger number must be an error.
const MOST_ITEMS: usize = 1 << 32;

/// Bytes of the caller, for functions that take several byte strings: `len` bytes at `data`. (NULL,
/// 0) is an empty string.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lsmkv_slice {
    /// The bytes.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
}

/// Reads `len` bytes at `data`; (NULL, 0) is an empty slice. `check` sees the length first.
///
/// # Safety
/// Unless `check` refuses `len`, `data` points to `len` readable bytes that nobody writes during
/// the call.
pub(super) unsafe fn input<'a>(
    name: &str,
    data: *const c_void,
    len: usize,
    check: impl FnOnce(usize) -> Result<()>,
) -> Result<&'a [u8]> {
    check(len)?;
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(misuse(format_args!("{name} is NULL but its length is {len}")));
    }
    // SAFETY: not NULL, and `len` readable bytes by the caller's promise; the limits that
    // `check` enforces are far below isize::MAX.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

impl lsmkv_slice {
    /// No bytes.
    pub(super) const EMPTY: Self = Self { data: std::ptr::null(), len: 0 };

    /// Lends bytes to the caller for as long as they live.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }
}

/// Reads `n` elements at `data`, which must not be NULL.
///
/// # Safety
/// `data` is NULL or points to `n` elements that nobody writes during the call.
pub(super) unsafe fn array<'a, T>(name: &str, data: *const T, n: usize) -> Result<&'a [T]> {
    if data.is_null() {
        return Err(misuse(format_args!("{name} is NULL but there should be {n}")));
    }
    if n > MOST_ITEMS {
        let message = format!("{n} {name} are more than one call takes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    // SAFETY: not NULL, and that many elements by the caller's promise; their number is bounded.
    Ok(unsafe { std::slice::from_raw_parts(data, n) })
}

/// Reads a NUL-terminated string, which must not be NULL.
///
/// # Safety
/// `text` is NULL or points to a NUL-terminated string that nobody writes during the call.
pub(super) unsafe fn c_string<'a>(name: &str, text: *const c_char) -> Result<&'a CStr> {
    if text.is_null() {
        return Err(misuse(format_args!("{name} is NULL")));
    }
    // SAFETY: not NULL, and terminated by the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// The caller's place for one result. It is only written, since it may be uninitialised.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Takes the place and empties it, so that a later failure leaves nothing stale.
    ///
    /// # Safety
    /// `place` is NULL or valid for writes of a `T` that no other thread uses during the call.
    pub(super) unsafe fn emptied(place: *mut T, empty: T) -> Self {
        let out = Self(place);
        out.set(empty);
        out
    }

    /// Fails if the caller gave no place.
    pub(super) fn required(self, name: &str) -> Result<Self> {
        if self.0.is_null() {
            return Err(misuse(format_args!("{name} is NULL: there is nowhere to put the answer")));
        }
        Ok(self)
    }

    /// Whether the caller gave a place.
    pub(super) fn is_wanted(&self) -> bool {
        !self.0.is_null()
    }

    /// Fills the place, if the caller gave one.
    pub(super) fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, and valid for writes by the promise of `emptied`.
            unsafe { self.0.write(value) };
        }
    }
}

/// The caller's memory for a copy of a value.
pub(super) struct Room {
    data: *mut u8,
    size: usize,
}

impl Room {
    /// Takes `size` bytes at `data`, which may be NULL if `size` is 0.
    ///
    /// # Safety
    /// `data` is NULL or valid for writes of `size` bytes that no other thread uses during the
    /// call.
    pub(super) unsafe fn new(name: &str, data: *mut c_void, size: usize) -> Result<Self> {
        if data.is_null() && size != 0 {
            return Err(misuse(format_args!("{name} is NULL but cap is {size}")));
        }
        Ok(Self { data: data.cast(), size })
    }

    /// The number of bytes that there is room for.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Copies bytes to the place after the first `at`, if they fit. Returns how many it copied.
    pub(super) fn fill(&self, at: usize, bytes: &[u8]) -> usize {
        if self.size.checked_sub(at).is_none_or(|room| bytes.len() > room) {
            return 0;
        }
        if !bytes.is_empty() {
            // SAFETY: `size` is not 0, so `data` is not NULL and has room for `size` bytes. Those
            // after the first `at` are no fewer than `bytes` has, as checked above. Memory of the
            // caller does not overlap memory of the library.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data.add(at), bytes.len());
            };
        }
        bytes.len()
    }
}

/// The error for a caller that broke a rule of the API.
pub(super) fn misuse(message: impl Display) -> Error {
    Error::new(ErrorKind::Misuse, message.to_string())
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;

    #[test]
    fn an_empty_input_may_be_null_and_a_longer_one_may_not() {
        // SAFETY: no bytes are promised for NULL, and none may be read.
        unsafe {
            assert_eq!(input("key", null(), 0, |_| Ok(())).unwrap(), b"");
            let error = input("key", null(), 3, |_| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains("key is NULL"));
        }
    }

    #[test]
    fn a_length_is_refused_before_a_byte_is_read() {
        let refuse = |_| Err(Error::new(ErrorKind::TooLarge, "too long"));
        // SAFETY: the check refuses the length, so the dangling pointer is never read.
        let refused = unsafe { input("key", std::ptr::dangling(), usize::MAX, refuse) };
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn an_output_is_emptied_at_once_and_filled_if_it_is_wanted() {
        let mut place = 9;
        // SAFETY: a local variable, and NULL.
        let (out, unwanted) =
            unsafe { (Out::emptied(&raw mut place, 0), Out::emptied(null_mut(), 0)) };
        // SAFETY: the variable is live.
        assert_eq!(unsafe { (&raw const place).read() }, 0);
        out.required("out").unwrap().set(5);
        unwanted.set(5);
        assert_eq!(place, 5);
        assert!(unwanted.required("out").is_err());
    }
}
