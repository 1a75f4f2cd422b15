//! The program's allocator, and how its free memory goes back to the system.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gives all free memory back to the system, that of this thread and what others have given up.
#[expect(unsafe_code, reason = "mimalloc has no safe function for it")]
pub(crate) fn give_back() {
    unsafe extern "C" {
        // Linked by the crate mimalloc.
        fn mi_collect(force: bool);
    }
    // SAFETY: the function has this signature, may be called by any thread at any time, and leaves
    // memory in use alone.
    unsafe { mi_collect(true) };
}
