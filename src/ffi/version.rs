//! Versions of the ABI and of the library.
#![expect(unsafe_code, reason = "exports C symbols")]

use std::ffi::{CStr, c_char};

/// The version of the interface in this header. An addition leaves it unchanged; a break raises it.
pub const LSMKV_ABI_VERSION: u32 = 0;

/// Returns the version of the loaded library as text. The string is static; do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn lsmkv_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Returns the ABI version of the loaded library. If it differs from the LSMKV_ABI_VERSION that a
/// program was compiled with, the program must not call anything else.
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
