//! Gives back what a flush or a compaction has replaced, in the thread that replaced it.
//!
//! Invariant: a call that is just reading a replaced memtable or table neither unmaps it nor deletes
//! its file, unless the call takes longer than the replacing thread waits. Reads hold what they use by
//! reference counts. Whoever drops the last one pays: milliseconds for the memory of a memtable or the
//! blocks of a large file, and a GET takes microseconds.

use std::sync::Arc;
use std::time::Duration;

/// How often [`release`] checks whether it holds the last reference, and the time between two checks.
/// Iterators and snapshots hold tables for longer, and flushes should not wait for them.
const CHECKS: u32 = 20;
const CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// Drops `replaced`, which new readers cannot reach any more, once the calls that read it have ended.
/// What is held for longer than about three milliseconds is dropped by its other holders.
pub(crate) fn release<T>(mut replaced: Vec<Arc<T>>) {
    for _ in 0..CHECKS {
        replaced.retain(|item| Arc::strong_count(item) > 1);
        if replaced.is_empty() {
            return;
        }
        crate::sync::thread::sleep(CHECK_INTERVAL);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{self, ThreadId};

    use super::*;

    /// Tells which thread dropped it.
    struct Dropped(Sender<ThreadId>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    #[test]
    fn a_short_read_leaves_the_work_to_the_thread_that_replaced() {
        let (dropped, by) = channel();
        let (begin, begun) = channel();
        let item = Arc::new(Dropped(dropped));
        let held = Arc::clone(&item);
        let reader = thread::spawn(move || {
            begun.recv().unwrap();
            thread::sleep(Duration::from_micros(300));
            drop(held);
        });
        begin.send(()).unwrap();
        release(vec![item]);
        reader.join().unwrap();
        assert_eq!(by.recv().unwrap(), thread::current().id());
    }

    #[test]
    fn what_is_held_for_long_delays_nobody() {
        let (dropped, by) = channel();
        let item = Arc::new(Dropped(dropped));
        let held = Arc::clone(&item);
        release(vec![item]);
        assert!(by.try_recv().is_err(), "still held");
        let holder = thread::spawn(move || drop(held));
        let id = holder.thread().id();
        holder.join().unwrap();
        assert_eq!(by.recv().unwrap(), id);
    }
}
