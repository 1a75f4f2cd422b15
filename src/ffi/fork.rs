//! What a `fork` means for handles: the child's copies are dead, the parent's are unaffected.
//!
//! The child has none of the parent's threads, and locks that those held stay locked in it for
//! ever. So its calls must not touch the store: each handle notes the fork generation it was
//! made in, one load a call compares it. What runs in the child's handler takes no lock and
//! allocates nothing.
#![expect(unsafe_code, reason = "registers a pthread_atfork handler")]

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::handle;

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the process that loaded the library and this one.
#[inline]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Makes sure that a later fork is noticed. Called before the first handle exists.
pub(super) fn watch() -> Result<()> {
    static REGISTERED: OnceLock<i32> = OnceLock::new();
    // SAFETY: `in_child` does only what may be done in a forked child, and the library is
    // linked with -z nodelete, so its code outlives every fork.
    let code =
        *REGISTERED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    if code == 0 {
        return Ok(());
    }
    let source = std::io::Error::from_raw_os_error(code);
    Err(Error::io("pthread_atfork", Path::new("of this process"), &source))
}

extern "C" fn in_child() {
    let parents = GENERATION.fetch_add(1, Ordering::Relaxed);
    handle::abandon_in_child(parents);
}

/// The error for a handle of another process.
pub(super) fn forked() -> Error {
    Error::new(
        ErrorKind::Forked,
        "this handle was opened before a fork and belongs to the parent process; open the store \
         anew in the child, once the parent has closed it",
    )
}
