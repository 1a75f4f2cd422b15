//! The calls of one handle that wait for an element, so that closing the handle ends them.
//!
//! Invariant: a call that enters before the close is interrupted by the close, and one that enters
//! after it is interrupted at once. So no call waits on a handle that is closed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// A call that can be told to wait no longer.
pub(crate) trait Interrupt: Send + Sync {
    /// Ends the wait. It must not block.
    fn interrupt(&self);
}

/// The calls of one handle that wait.
#[derive(Default)]
pub(crate) struct HandleWaits(Mutex<State>);

#[derive(Default)]
struct State {
    closed: bool,
    next: u64,
    calls: HashMap<u64, Arc<dyn Interrupt>>,
}

impl fmt::Debug for HandleWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleWaits").field("calls", &self.0.lock().calls.len()).finish()
    }
}

/// A call that waits on a handle. Dropping it takes the call off the handle's list.
pub(crate) struct Entered<'a> {
    waits: &'a HandleWaits,
    number: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.waits.0.lock().calls.remove(&self.number);
    }
}

impl HandleWaits {
    /// Lists a call until the result is dropped.
    pub(crate) fn enter(&self, call: Arc<dyn Interrupt>) -> Entered<'_> {
        let mut state = self.0.lock();
        state.next += 1;
        let number = state.next;
        if state.closed {
            call.interrupt();
        } else {
            state.calls.insert(number, call);
        }
        Entered { waits: self, number }
    }

    /// Interrupts the calls of now and of later.
    pub(crate) fn close(&self) {
        let calls = {
            let mut state = self.0.lock();
            state.closed = true;
            std::mem::take(&mut state.calls)
        };
        calls.values().for_each(|call| call.interrupt());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Interrupt for Counted {
        fn interrupt(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_close_interrupts_the_calls_inside_and_those_that_come_later() {
        let (waits, gone, inside, later) =
            (HandleWaits::default(), Arc::default(), Arc::default(), Arc::default());
        let count = |call: &Arc<Counted>| call.0.load(Ordering::Relaxed);
        drop(waits.enter(Arc::<Counted>::clone(&gone)));
        let entered = waits.enter(Arc::<Counted>::clone(&inside));
        assert_eq!(count(&inside), 0);
        waits.close();
        drop(entered);
        drop(waits.enter(Arc::<Counted>::clone(&later)));
        assert_eq!([&gone, &inside, &later].map(count), [0, 1, 1]);
    }
}
