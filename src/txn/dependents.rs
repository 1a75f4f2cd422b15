//! What uses a store on threads of its own, such as a server: a close of the store ends it first.
//!
//! Invariant: who is listed is ended by the close, and nobody is listed after it began.

use std::sync::Weak;

use parking_lot::Mutex;

/// A user of a store that a close ends.
pub(crate) trait Dependent: Send + Sync {
    /// Ends it, and returns once none of its threads uses the store any more.
    fn end(&self);
}

/// The dependents of a store.
#[derive(Default)]
pub(super) struct Dependents(Mutex<State>);

#[derive(Default)]
struct State {
    closed: bool,
    all: Vec<Weak<dyn Dependent>>,
}

impl Dependents {
    /// Lists one; false if the store is closed or closes.
    pub(super) fn add(&self, dependent: Weak<dyn Dependent>) -> bool {
        let mut state = self.0.lock();
        state.all.retain(|known| known.strong_count() > 0);
        if !state.closed {
            state.all.push(dependent);
        }
        !state.closed
    }

    /// Ends all of them.
    pub(super) fn end(&self) {
        let all = {
            let mut state = self.0.lock();
            state.closed = true;
            std::mem::take(&mut state.all)
        };
        all.iter().filter_map(Weak::upgrade).for_each(|dependent| dependent.end());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Dependent for Counted {
        fn end(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_close_ends_those_that_are_alive_and_nobody_is_added_after_it() {
        let (dependents, alive, late) =
            (Dependents::default(), Arc::<Counted>::default(), Arc::<Counted>::default());
        let weak =
            |counted: &Arc<Counted>| -> Weak<dyn Dependent> { Arc::<Counted>::downgrade(counted) };
        assert!(dependents.add(weak(&Arc::default())), "one that is gone at once");
        assert!(dependents.add(weak(&alive)));
        dependents.end();
        assert!(!dependents.add(weak(&late)));
        dependents.end();
        let ended = [&alive, &late].map(|counted| counted.0.load(Ordering::Relaxed));
        assert_eq!(ended, [1, 0]);
    }
}
