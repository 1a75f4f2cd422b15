//! Threads of this library. They block all signals, so that a handler of the program that uses the
//! library runs on the program's own threads.
#![expect(unsafe_code, reason = "changes the signal mask of the calling thread for a moment")]

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that gets no signals and that no checker of schedules sees.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    without_signals(|| Builder::new().name(name.to_owned()).spawn(body))
}

/// Calls a function that starts a thread: a thread inherits the signal mask of the one that starts
/// it.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let masked = AllBlocked::begin();
    let started = start();
    drop(masked);
    started
}

/// All signals are blocked in this thread until the value is dropped.
struct AllBlocked(Option<libc::sigset_t>);

impl AllBlocked {
    fn begin() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are memory for a set; `all` is filled before it is used, and `before` is
        // read only if the call has filled it.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let code = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self((code == 0).then(|| before.assume_init()))
        }
    }
}

impl Drop for AllBlocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: a set that the same call has filled; NULL where the old set is not wanted.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spawn;

    /// The signals that the calling thread blocks, as the system shows them.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_of_the_library_blocks_all_signals_and_its_starter_blocks_none_more() {
        let before = blocked();
        let inside = spawn("lsmkv-test", blocked).unwrap().join().unwrap();
        assert_eq!(blocked(), before);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGPIPE, libc::SIGALRM, libc::SIGCHLD] {
            assert!(inside & (1 << (signal - 1)) != 0, "signal {signal} is not blocked");
        }
    }
}
