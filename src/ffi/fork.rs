//! How handles behave after a `fork`: the child's copies are dead, the parent's are unaffected.
//!
//! The child has none of the parent's threads, and locks that those threads held stay locked in it
//! for ever. So calls in the child must not touch the store. Each handle stores the fork generation
//! in which it was made, and each call compares it with one load. The handler that runs in the
//! child takes no lock and allocates nothing.
//!
//! A child that was forked while a store was open may not open another store either. The threads of
//! the parent's store are still queued in the table of waiting threads that all locks of this
//! library share, and nothing in the child removes them. Opens in such a child failed assertions
//! inside that table.
#![expect(unsafe_code, reason = "registers a pthread_atfork handler")]

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::handle;
use crate::sync::descriptors;
pub(super) use crate::sync::transit::Transit;

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Whether this process was forked from one with a store open.
static FORKED_OPEN: AtomicBool = AtomicBool::new(false);

/// The number of forks between the process that loaded the library and this one.
#[inline]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Registers the fork handler, and fails if a fork has made opening unsafe. Every open of a store of
/// this process calls it first.
pub(super) fn watch() -> Result<()> {
    if inherited_open_store() {
        return Err(Error::new(
            ErrorKind::Forked,
            "this process was forked while a store was open and cannot open one: open after an \
             exec, or fork before the first open or after the last close",
        ));
    }
    register()
}

/// Whether this process was forked from one that had a store open. It may use stores of other
/// processes, but must not open one itself.
pub(super) fn inherited_open_store() -> bool {
    FORKED_OPEN.load(Ordering::Relaxed)
}

/// Registers the fork handler, so that the handles of this process are dead in its children.
pub(super) fn register() -> Result<()> {
    static REGISTERED: OnceLock<i32> = OnceLock::new();
    // SAFETY: the handlers take no lock and allocate nothing, as a forked child requires, and the
    // library is linked with -z nodelete, so its code outlives every fork.
    let code = *REGISTERED.get_or_init(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child))
    });
    if code == 0 {
        return Ok(());
    }
    let source = std::io::Error::from_raw_os_error(code);
    Err(Error::io("pthread_atfork", Path::new("of this process"), &source))
}

extern "C" fn before() {
    descriptors::fork_begins();
}

extern "C" fn in_parent() {
    descriptors::fork_ends();
}

extern "C" fn in_child() {
    descriptors::fork_ends_in_child();
    let parents = GENERATION.fetch_add(1, Ordering::Relaxed);
    let open = handle::abandon_in_child(parents);
    descriptors::for_each_descriptor(|descriptor| {
        // SAFETY: the child's copy of a lock or a socket that is listed as open. Only handles that
        // are dead in the child, and threads that it does not have, would use it.
        unsafe { libc::close(descriptor) };
    });
    if open || Transit::any() {
        FORKED_OPEN.store(true, Ordering::Relaxed);
    }
}

/// The error for a handle of another process.
pub(super) fn forked() -> Error {
    Error::new(
        ErrorKind::Forked,
        "this handle was opened before a fork and belongs to the parent process; open the store \
         in a process of its own, once the parent has closed it",
    )
}
