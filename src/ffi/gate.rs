//! Counts the calls inside a handle, so that closing can wait for them.
//!
//! Entering and leaving are one atomic addition each, on a cache line that few threads share. A
//! single counter would pass from core to core with every call. Gates are never freed, so a thread
//! that holds a stale one can add to it safely. At worst it delays another handle's close until it
//! notices and leaves.

use std::cell::Cell;
use std::time::Duration;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread;

const LANES: usize = if cfg!(loom) { 1 } else { 16 };

#[derive(Default)]
#[repr(align(64))]
struct Lane(AtomicUsize);

/// The calls inside one handle.
#[derive(Default)]
pub(super) struct Gate {
    lanes: [Lane; LANES],
}

/// A call inside a handle. It leaves when dropped.
pub(super) struct Pass<'a>(&'a Lane);

impl Gate {
    /// Counts this thread in. The ordering is sequentially consistent: if a closer misses this
    /// count, the caller's next check sees the closer.
    pub(super) fn enter(&self) -> Pass<'_> {
        let [first, ..] = &self.lanes;
        let lane = self.lanes.get(lane_of_this_thread()).unwrap_or(first);
        lane.0.fetch_add(1, Ordering::SeqCst);
        Pass(lane)
    }

    /// Waits until every call inside has left. The caller makes sure that new calls leave at once.
    pub(super) fn drain(&self) {
        for lane in &self.lanes {
            let mut waits = 0u32;
            while lane.0.load(Ordering::SeqCst) != 0 {
                waits = waits.saturating_add(1);
                if waits < 64 {
                    thread::yield_now();
                } else {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn lane_of_this_thread() -> usize {
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread that is ending uses the first lane.
    LANE.try_with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % LANES);
        }
        mine.get()
    })
    .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn draining_waits_for_every_call_that_is_inside() {
        let gate = Gate::default();
        let left = AtomicBool::new(false);
        let entered = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let pass = gate.enter();
                entered.store(true, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                left.store(true, Ordering::SeqCst);
                drop(pass);
            });
            while !entered.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            gate.drain();
            assert!(left.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn an_empty_gate_drains_at_once() {
        let gate = Gate::default();
        drop(gate.enter());
        gate.drain();
    }
}
