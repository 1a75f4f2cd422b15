//! Threads that work in the background give way to those that answer somebody.
//!
//! A flush or a merge computes for as long as the scheduler lets it. On a processor that it shares, a
//! thread that a request wakes up would wait for the end of its time slice: 4 ms where the clock ticks
//! 250 times a second.
#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(unsafe_code, reason = "asks for the scheduling of the calling thread")
)]

/// Time slice of a background thread. Linux, from 6.12 on, lets a thread with a shorter slice run as
/// soon as it wakes up. Everybody gets the same share of the processor as before.
#[cfg(all(target_os = "linux", not(miri)))]
const SLICE_NS: u64 = 20_000_000;

/// Makes the calling thread give way to threads that wake up, and never interrupt them by waking up
/// itself. Does nothing where the system has no such thing, or does not allow it.
pub(crate) fn give_way() {
    give_way_by(0);
}

/// As [`give_way`], and adds so much to the niceness of the calling thread.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn give_way_by(nicer: u32) {
    /// The largest niceness of Linux.
    const NICEST: i32 = 19;
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    // SAFETY: a struct of integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is the calling thread, and the struct is as large as the call is told.
    let read =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) } == 0;
    // Who runs the program under another policy wants that one.
    if !read || attributes.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.sched_policy = libc::SCHED_BATCH.cast_unsigned();
    attributes.sched_runtime = SLICE_NS;
    attributes.sched_nice = attributes.sched_nice.saturating_add_unsigned(nicer).min(NICEST);
    // SAFETY: as above; the kernel only reads the struct.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Does nothing on this system.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn give_way_by(_: u32) {}

#[cfg(all(test, target_os = "linux", not(any(miri, loom, shuttle))))]
mod tests {
    #[test]
    fn a_thread_that_gives_way_is_a_batch_of_its_own() {
        // The policy of the calling thread, as the system shows it.
        let policy = || -> i32 {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let after_the_name = stat.rsplit_once(") ").unwrap().1;
            after_the_name.split(' ').nth(38).unwrap().parse().unwrap()
        };
        let on_thread = |change: fn()| {
            let changed = move || {
                change();
                policy()
            };
            crate::sync::spawn("lsmkv-test", changed).unwrap().join().unwrap()
        };
        // What the system allows: another policy of the process stays, and a sandbox may refuse all.
        let before = policy();
        let allowed = match before {
            libc::SCHED_OTHER => on_thread(|| {
                let priority = libc::sched_param { sched_priority: 0 };
                // SAFETY: 0 is the calling thread, and the kernel only reads the struct.
                unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const priority) };
            }),
            other => other,
        };
        assert_eq!((on_thread(super::give_way), policy()), (allowed, before));
    }
}
