//! Gives free memory back to the system, from a thread of its own.
//!
//! The allocator keeps freed memory for a second. Then the thread that happens to free more gives all
//! of it back at once: milliseconds for what a long reply or transaction took, on an event loop. And
//! an idle server would keep it for ever. So this thread does it, and always before that second.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two times that memory is given back.
const INTERVAL: Duration = Duration::from_millis(100);

/// The thread. Dropping this value ends it.
pub(crate) struct MemoryTrim {
    /// Carries no message: dropping it tells the thread to end.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryTrim {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (alive, ended) = channel();
        let thread = std::thread::Builder::new().name("lsmkv-trim".to_owned());
        let thread = thread.spawn(move || trim_until(&ended))?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

fn trim_until(ended: &Receiver<()>) {
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        crate::allocator::give_back();
    }
}

impl Drop for MemoryTrim {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}
