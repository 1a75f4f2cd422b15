//! Versions of the ABI and of the library.
#![expect(unsafe_code, reason = "exports C symbols")]

use std::ffi::{CStr, c_char};

/// Version of the interface in this header. Additions leave it; a break raises it.
pub const LSMKV_ABI_VERSION: u32 = 0;

/// The version of the library that is loaded, as text. Static; do not free.
#[unsafe(no_mangle)]
pub extern "C" fn lsmkv_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// The ABI version of the library that is loaded. A program that finds another number than the
/// LSMKV_ABI_VERSION it was compiled with must not call anything else.
#[unsafe(no_mangle)]
pub extern "C" fn lsmkv_abi_version() -> u32 {
    LSMKV_ABI_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_package() {
        // SAFETY: a static, terminated string.
        let version = unsafe { CStr::from_ptr(lsmkv_version()) };
        assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
        assert_eq!(lsmkv_abi_version(), 0);
    }
}
