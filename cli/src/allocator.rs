//! The program's allocator, and how its free memory goes back to the system.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lets the process have small pages only. The allocator gives free memory back in pieces of 64 KiB, and
/// the kernel would fill the holes with huge pages again: a server had 127 MB with 32 MB in use.
pub(crate) fn avoid_huge_pages() {
    // A kernel that cannot do this has no huge pages either; the server then works as before.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

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
