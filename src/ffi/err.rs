//! `lsmkv_err`: the detail of a failure, in memory that the caller owns.
//!
//! It is not thread-local, since a goroutine changes threads between two calls. It is not on the
//! handle, since calls race. It is not allocated, since callers forget to free.
#![expect(unsafe_code, reason = "writes through the caller's pointer")]

use std::ffi::c_char;
use std::ptr::{addr_of_mut, copy_nonoverlapping};

use crate::error::Error;
use crate::ffi::status::{lsmkv_status, of_kind};

/// The detail of a failure. It belongs to the caller. Every function that takes one fills it on
/// every call, and accepts NULL.
#[repr(C)]
pub struct lsmkv_err {
    /// The status that the call returned.
    pub code: i32,
    /// The operating system's error number, or 0.
    pub os_errno: i32,
    /// What happened and what to do about it; NUL-terminated UTF-8, empty unless code < 0.
    pub msg: [c_char; 248],
}

/// Where a call reports its status. It is only written, since the memory may be uninitialised.
#[derive(Clone, Copy)]
pub(super) struct Report(*mut lsmkv_err);

impl Report {
    /// # Safety
    /// `err` is NULL or points to memory for an `lsmkv_err` that no other thread uses during
    /// the call.
    pub(super) unsafe fn new(err: *mut lsmkv_err) -> Self {
        Self(err)
    }

    /// Reports an outcome that is not a failure.
    #[inline]
    pub(super) fn outcome(self, status: lsmkv_status) -> lsmkv_status {
        self.fill(status, 0, "")
    }

    /// Reports a failure.
    pub(super) fn failure(self, error: &Error) -> lsmkv_status {
        self.fill(of_kind(error.kind()), error.os_errno(), error.message())
    }

    #[inline]
    fn fill(self, status: lsmkv_status, os_errno: i32, message: &str) -> lsmkv_status {
        if self.0.is_null() {
            return status;
        }
        let text = fitting(message).as_bytes();
        // SAFETY: `new`'s caller promised memory for an lsmkv_err; `fitting` leaves room for
        // the NUL. Fields are written through raw pointers since the memory may be
        // uninitialised.
        unsafe {
            addr_of_mut!((*self.0).code).write(status);
            addr_of_mut!((*self.0).os_errno).write(os_errno);
            let start = addr_of_mut!((*self.0).msg).cast::<u8>();
            copy_nonoverlapping(text.as_ptr(), start, text.len());
            start.add(text.len()).write(0);
        }
        status
    }
}

/// The size of the message with its NUL. The struct spells it as a number for the header.
const MESSAGE_BYTES: usize = size_of::<lsmkv_err>() - 8;

/// The longest prefix that leaves room for a NUL, cut between characters and before any NUL inside.
#[inline]
fn fitting(message: &str) -> &str {
    // Nearly every call ends here: what succeeds has no message.
    if message.is_empty() {
        return message;
    }
    let message = message.split('\0').next().unwrap_or_default();
    let end = message.floor_char_boundary(MESSAGE_BYTES - 1);
    message.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::{MaybeUninit, offset_of};
    use std::path::Path;

    use super::*;
    use crate::error::ErrorKind;
    use crate::ffi::status::{LSMKV_IO, LSMKV_MISUSE, LSMKV_NOT_FOUND};

    fn filled(with: impl FnOnce(Report) -> lsmkv_status) -> (i32, i32, String) {
        let mut err = MaybeUninit::<lsmkv_err>::uninit();
        // SAFETY: the memory outlives the report, and `fill` wrote every field read below.
        unsafe {
            with(Report::new(err.as_mut_ptr()));
            let err = err.as_ptr();
            let text = CStr::from_ptr((&raw const (*err).msg).cast()).to_str().unwrap();
            ((*err).code, (*err).os_errno, text.to_owned())
        }
    }

    #[test]
    fn the_layout_is_the_one_the_header_promises() {
        assert_eq!(size_of::<lsmkv_err>(), 256);
        assert_eq!(offset_of!(lsmkv_err, os_errno), 4);
        assert_eq!(offset_of!(lsmkv_err, msg), 8);
    }

    #[test]
    fn a_failure_carries_status_errno_and_message() {
        let source = std::io::Error::from_raw_os_error(libc::EACCES);
        let error = Error::io("open", Path::new("/x"), &source);
        let (code, os_errno, text) = filled(|report| report.failure(&error));
        assert_eq!((code, os_errno), (LSMKV_IO, libc::EACCES));
        assert!(text.starts_with("open /x: "), "{text}");
    }

    #[test]
    fn an_outcome_clears_what_an_earlier_failure_left() {
        assert_eq!(filled(|r| r.outcome(LSMKV_NOT_FOUND)), (LSMKV_NOT_FOUND, 0, String::new()));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let error = Error::new(ErrorKind::Misuse, "é".repeat(200));
        let (code, _, text) = filled(|report| report.failure(&error));
        assert_eq!(code, LSMKV_MISUSE);
        assert_eq!(text, "é".repeat(123));
    }

    #[test]
    fn no_report_is_written_where_none_is_wanted() {
        // SAFETY: NULL is allowed.
        let report = unsafe { Report::new(std::ptr::null_mut()) };
        assert_eq!(report.outcome(7), 7);
    }
}
