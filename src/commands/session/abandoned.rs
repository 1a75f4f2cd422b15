//! The commands of a transaction that never runs, freed piece by piece.

use super::Session;
use super::queue::Queue;

/// The queued commands of a transaction that was given up ([`Session::abandon_queue`]). Dropping them
/// frees them all; a thread that must not pause frees some at a time.
#[derive(Debug)]
pub struct AbandonedCommands(Box<Queue>);

impl AbandonedCommands {
    /// Frees at least `bytes` bytes, or all. Returns whether some are left.
    pub fn free_some(&mut self, bytes: usize) -> bool {
        let mut freed = 0;
        while freed < bytes {
            let Some(chunk) = self.0.pop_chunk() else { return false };
            freed += chunk.memory_bytes();
        }
        true
    }
}

impl Session {
    /// Ends MULTI as DISCARD does, but leaves it to the caller when to free the queued commands.
    /// `None` outside MULTI.
    ///
    /// ```
    /// # let db = lsmkv::Db::open(":memory:", lsmkv::Options::default())?;
    /// # let mut session = db.session();
    /// session.command(&[b"MULTI"])?;
    /// session.command(&[b"SET", b"key", b"value"])?;
    /// let mut abandoned = session.abandon_queue().expect("a queue");
    /// assert!(!session.in_multi());
    /// while abandoned.free_some(1 << 20) {}
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn abandon_queue(&mut self) -> Option<AbandonedCommands> {
        let queue = self.queue.take()?;
        self.end_multi();
        Some(AbandonedCommands(queue))
    }
}
