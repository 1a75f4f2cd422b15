//! Gives free memory back to the system, and keeps the process near its budget, from a thread of its
//! own.
//!
//! The allocator keeps freed memory for a second. Then the thread that happens to free more gives all
//! of it back at once: milliseconds for what a long reply or transaction took, on an event loop. And
//! an idle server would keep it for ever. So this thread does it, and always before that second.
//!
//! What the allocator cannot give back, because something in use lies between, is memory beyond the
//! budget that the store knows nothing of. The block cache makes room for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lsmkv::Db;
use lsmkv::server::{RunningServer, process_bytes};

/// The time between two times that memory is given back.
const INTERVAL: Duration = Duration::from_millis(100);

/// The thread. Dropping this value ends it.
pub(crate) struct MemoryTrim {
    /// Carries no message: dropping it tells the thread to end.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryTrim {
    pub(crate) fn start(
        db: &Db,
        server: &Arc<RunningServer>,
        budget: u64,
    ) -> std::io::Result<Self> {
        let (alive, ended) = channel();
        let (db, server) = (db.clone(), Arc::clone(server));
        let thread = std::thread::Builder::new().name("lsmkv-trim".to_owned());
        let thread = thread.spawn(move || trim_until(&ended, &db, &server, budget))?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

fn trim_until(ended: &Receiver<()>, db: &Db, server: &RunningServer, budget: u64) {
    lsmkv::server::give_way();
    let mut lent = 0;
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        crate::allocator::give_back();
        if let Some(resident) = process_bytes("VmRSS:") {
            let clients = server.buffered_bytes() as u64;
            lent = next_lent(lent, resident.saturating_sub(clients), budget);
            db.lend_cache(lent);
        }
    }
}

/// How much smaller the block cache is to be, if it is smaller by `lent` now and the process has
/// `resident` bytes: quickly more while little of the budget is left, because flushes and merges need
/// that from one moment to the next; slowly less afterwards.
fn next_lent(lent: u64, resident: u64, budget: u64) -> u64 {
    let aim = budget / 8 * 7;
    match resident.checked_sub(aim) {
        Some(excess) => lent.saturating_add(excess / 2).min(budget),
        None if aim - resident > budget / 8 => lent.saturating_sub(budget / 256),
        None => lent,
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

#[cfg(test)]
mod tests {
    use super::next_lent;

    #[test]
    fn the_cache_makes_room_quickly_and_comes_back_slowly() {
        let (budget, aim) = (128 << 20, 112 << 20);
        assert_eq!(next_lent(0, aim, budget), 0);
        assert_eq!(next_lent(0, aim + 1000, budget), 500);
        assert_eq!(next_lent(500, budget * 9, budget), budget, "no more than there is");
        assert_eq!(next_lent(1 << 20, aim - 1, budget), 1 << 20, "near the aim it stays");
        assert_eq!(next_lent(1 << 20, budget / 2, budget), 512 << 10);
        assert_eq!(next_lent(1000, 0, budget), 0);
    }
}
