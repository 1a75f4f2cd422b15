//! `lsmkv_options`: options by name, with values as text.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::{CString, c_char};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::{caught, free_call};
use crate::ffi::err::lsmkv_err;
use crate::ffi::slice::{Out, c_string, misuse};
use crate::ffi::status::{LSMKV_DONE, LSMKV_OK, lsmkv_status};
use crate::options::Options;

/// Options for lsmkv_open. lsmkv_options_new makes them and lsmkv_options_free frees them. One
/// thread at a time may use them.
pub struct lsmkv_options {
    pub(super) options: Options,
}

/// Creates options with all defaults. NULL only when memory is exhausted.
#[unsafe(no_mangle)]
pub extern "C" fn lsmkv_options_new() -> *mut lsmkv_options {
    let made = || Ok(Box::into_raw(Box::new(lsmkv_options { options: Options::default() })));
    caught(made).unwrap_or(null_mut())
}

/// Frees options, at most once. NULL is allowed. Stores opened with them are unaffected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_options_free(options: *mut lsmkv_options) {
    if !options.is_null() {
        // SAFETY: not NULL, and the caller promises options of lsmkv_options_new that were not
        // freed before.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// Sets an option by name. Sizes are bytes or like 64MiB; switches are on or off. The strings are
/// copied. lsmkv_options_info lists the names.
///
/// OK; INVALID: no such name, or a value that is not allowed (the message names the nearest name
/// or the allowed values, and nothing was changed); MISUSE: a pointer is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_options_set(
    options: *mut lsmkv_options,
    name: *const c_char,
    value: *const c_char,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let body = || {
        // SAFETY: the caller promises live options that no other thread uses, or NULL, and
        // terminated strings or NULL.
        let (options, name, value) =
            unsafe { (options.as_mut(), text("name", name)?, text("value", value)?) };
        let options = options.ok_or_else(|| misuse("options is NULL"))?;
        options.options.set(name, value)?;
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promise about err.
    unsafe { free_call(err, body) }
}

/// Describes option `index`, from 0: its name, its default and what it does, as static strings.
/// Each output may be NULL.
///
/// OK; DONE: there is no such option, the outputs are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_options_info(
    index: usize,
    name: *mut *const c_char,
    dflt: *mut *const c_char,
    doc: *mut *const c_char,
) -> lsmkv_status {
    // SAFETY: the caller promises that each is NULL or a place for a pointer.
    let outputs = unsafe {
        [Out::emptied(name, null()), Out::emptied(dflt, null()), Out::emptied(doc, null())]
    };
    let body = || {
        let Some(texts) = descriptions().get(index) else {
            return Ok(LSMKV_DONE);
        };
        for (output, text) in outputs.into_iter().zip(texts) {
            output.set(text.as_ptr());
        }
        Ok(LSMKV_OK)
    };
    // SAFETY: NULL is allowed.
    unsafe { free_call(null_mut(), body) }
}

/// Name, default and documentation of every option, for as long as the process lives.
fn descriptions() -> &'static [[CString; 3]] {
    static DESCRIPTIONS: OnceLock<Vec<[CString; 3]>> = OnceLock::new();
    DESCRIPTIONS.get_or_init(|| {
        // The table holds no NUL.
        let c = |text: &str| CString::new(text).unwrap_or_default();
        Options::describe().map(|row| [c(row.name), c(&row.default), c(row.doc)]).collect()
    })
}

/// A NUL-terminated string as UTF-8 text.
///
/// # Safety
/// `pointer` is as `c_string` requires.
pub(super) unsafe fn text<'a>(name: &str, pointer: *const c_char) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let text = unsafe { c_string(name, pointer)? };
    text.to_str().map_err(|_| Error::new(ErrorKind::Invalid, format!("{name} is not UTF-8")))
}
