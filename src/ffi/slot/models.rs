//! What loom checks of a slot.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::Witness;

/// A value whose end loom compares with its use.
struct Value(u32, Witness);

impl Drop for Value {
    fn drop(&mut self) {
        self.1.wrote();
    }
}

fn value(number: u32) -> Box<Value> {
    Box::new(Value(number, Witness::new()))
}

fn gate() -> &'static Gate {
    Box::leak(Box::default())
}

fn enters(slot: &Slot<Value>, generation: usize) -> Option<u32> {
    let entered = slot.enter(generation)?;
    entered.value().1.reads();
    Some(entered.value().0)
}

/// A value is used by calls while it is taken out.
pub fn a_value_is_not_freed_under_a_call() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        let generation = slot.put(value(1), gate());
        let callers = [(); 2].map(|()| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || enters(&slot, generation))
        });
        drop(slot.take(generation, |_| ()).unwrap());
        for caller in callers {
            assert!(matches!(caller.join().unwrap(), None | Some(1)));
        }
        assert_eq!(enters(&slot, generation), None);
    });
}

/// Two threads take one value out.
pub fn one_of_two_threads_takes_the_value() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        let generation = slot.put(value(1), gate());
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.take(generation, |_| ()).is_some())
        };
        let mine = slot.take(generation, |_| ()).is_some();
        assert!(mine ^ other.join().unwrap());
    });
}

/// The slot and the gate are used again at once, as never happens to a slot. A call with the
/// old generation gets the old value or none.
pub fn a_call_never_gets_the_value_of_the_next_life() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        let generation = slot.put(value(1), gate());
        let caller = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || enters(&slot, generation))
        };
        let (old, gate) = slot.take(generation, |_| ()).unwrap();
        drop(old);
        let next = slot.put(value(2), gate);
        assert!(matches!(caller.join().unwrap(), None | Some(1)));
        assert_eq!(enters(&slot, next), Some(2));
    });
}
