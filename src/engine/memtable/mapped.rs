//! Memory that comes from the system and goes back to it at once: the allocator keeps what is freed, and
//! fills holes between what is in use.

#![expect(unsafe_code, reason = "calls mmap and munmap")]

/// Pieces of at least this size are mapped; smaller ones would waste the rest of their last page.
pub(super) const MAPPED_FROM: usize = 128 << 10;

/// New zeroed memory, at a page boundary. Pages that are never written take no memory.
pub(super) fn map(bytes: usize) -> Option<*mut u8> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address of the system's choice touches no other memory.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then(|| mapped.cast())
}

/// Gives memory back.
///
/// # Safety
/// `memory` is a result of [`map`] with the same `bytes`, and nobody uses it any more.
pub(super) unsafe fn unmap(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller promises that this is a whole mapping and unused.
    unsafe { libc::munmap(memory.cast(), bytes) };
}
