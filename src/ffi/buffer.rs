//! `lsmkv_buf`: bytes that the library hands out without a copy.
#![expect(unsafe_code, reason = "hands ownership through the caller's struct")]

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use bytes::Bytes;

/// Bytes that the library returns: `len` bytes at `data`. They stay readable until
/// lsmkv_buf_release, even after the database is closed. Do not change `owner`. Do not copy the
/// struct and release both copies. The buffer of an empty value has length 0 and a data pointer
/// that is not NULL. A buffer keeps at most twice its length in memory.
#[repr(C)]
pub struct lsmkv_buf {
    /// The bytes; NULL when there is no value.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
    /// Private: keeps the bytes alive.
    pub owner: *mut c_void,
}

/// Where the data pointer of an empty value points.
static NOTHING: [u8; 1] = [0];

impl lsmkv_buf {
    /// No value.
    pub(super) const EMPTY: Self = Self { data: null(), len: 0, owner: null_mut() };

    /// Keeps `bytes` alive until the buffer is released.
    pub(super) fn pinning(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            // An empty value needs no owner, but must differ from no value.
            return Self { data: NOTHING.as_ptr(), ..Self::EMPTY };
        }
        let (data, len) = (bytes.as_ptr(), bytes.len());
        Self { data, len, owner: Box::into_raw(Box::new(bytes)).cast() }
    }
}

/// Releases a buffer and empties the struct. Releasing it again, or releasing a zeroed struct, does
/// nothing. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_buf_release(buf: *mut lsmkv_buf) {
    if buf.is_null() {
        return;
    }
    // SAFETY: not NULL, and the caller promises a buffer that the library filled or that is
    // zero, used by no other thread; so a non-NULL owner came from `pinning` and was not
    // released before, since releasing stores EMPTY.
    unsafe {
        let released = buf.replace(lsmkv_buf::EMPTY);
        if !released.owner.is_null() {
            drop(Box::from_raw(released.owner.cast::<Bytes>()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_the_one_the_header_promises() {
        assert_eq!(size_of::<lsmkv_buf>(), 3 * size_of::<usize>());
        assert_eq!(offset_of!(lsmkv_buf, len), size_of::<usize>());
        assert_eq!(offset_of!(lsmkv_buf, owner), 2 * size_of::<usize>());
    }

    #[test]
    fn a_buffer_pins_its_bytes_until_it_is_released_any_number_of_times() {
        let bytes = Bytes::from(vec![7; 5000]);
        let mut buf = lsmkv_buf::pinning(bytes.clone());
        assert!(!bytes.is_unique());
        assert_eq!((buf.data, buf.len), (bytes.as_ptr(), 5000));
        for _ in 0..3 {
            // SAFETY: a buffer of this library, then an empty one.
            unsafe { lsmkv_buf_release(&raw mut buf) };
            assert!(buf.data.is_null() && buf.len == 0 && buf.owner.is_null());
        }
        assert!(bytes.is_unique());
    }

    #[test]
    fn an_empty_value_differs_from_no_value() {
        let buf = lsmkv_buf::pinning(Bytes::new());
        assert!(!buf.data.is_null());
        assert_eq!(buf.len, 0);
        assert!(lsmkv_buf::EMPTY.data.is_null());
    }

    #[test]
    fn releasing_null_does_nothing() {
        // SAFETY: NULL is allowed.
        unsafe { lsmkv_buf_release(null_mut()) };
    }
}
