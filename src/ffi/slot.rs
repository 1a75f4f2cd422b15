//! A slot for a value that any thread may use while another one takes it out.
//!
//! Invariants:
//! - `gate` is NULL unless the slot holds a value. A call counts itself into the gate and looks
//!   again. If it finds the same gate, a later `take` waits for the call.
//! - `value` is set before `gate` and taken out after the gate has drained.
//! - Every value has another generation than the one before it. Who asks for an older one is
//!   refused.
#![expect(unsafe_code, reason = "shares a value without a lock; see the invariants above")]

use std::ptr::{NonNull, null_mut};

use crate::ffi::gate::{Gate, Pass};
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The number of generations after which they repeat.
pub(super) const GENERATIONS: usize = 64;

/// A slot, empty or with a value of some generation.
pub(super) struct Slot<T> {
    gate: AtomicPtr<Gate>,
    value: AtomicPtr<T>,
    generation: AtomicUsize,
}

/// A call that uses the value of a slot. The value is not freed before this is dropped.
pub(super) struct Entered<T> {
    value: NonNull<T>,
    _pass: Pass<'static>,
}

impl<T> Entered<T> {
    pub(super) fn value(&self) -> &T {
        // SAFETY: `Slot::enter` found the value there after counting itself in, and `Slot::take`
        // frees it only after the gate has drained, that is after `_pass` is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Slot<T> {
    pub(super) fn empty() -> Self {
        Self {
            gate: AtomicPtr::new(null_mut()),
            value: AtomicPtr::new(null_mut()),
            generation: AtomicUsize::new(0),
        }
    }

    /// Puts a value into an empty slot, behind a gate that no other slot uses, and returns its
    /// generation. One thread at a time does that.
    pub(super) fn put(&self, value: Box<T>, gate: &'static Gate) -> usize {
        let generation = (self.generation.load(Ordering::Relaxed) + 1) % GENERATIONS;
        self.generation.store(generation, Ordering::Relaxed);
        self.value.store(Box::into_raw(value), Ordering::Release);
        self.gate.store(std::ptr::from_ref(gate).cast_mut(), Ordering::SeqCst);
        generation
    }

    /// Enters the value of this generation; `None` if it is not there any more.
    #[inline]
    pub(super) fn enter(&self, generation: usize) -> Option<Entered<T>> {
        let gate = self.gate.load(Ordering::Acquire);
        // SAFETY: gates are never freed.
        let pass = unsafe { gate.as_ref() }?.enter();
        if self.gate.load(Ordering::SeqCst) != gate
            || self.generation.load(Ordering::Relaxed) != generation
        {
            return None;
        }
        let value = NonNull::new(self.value.load(Ordering::Acquire))?;
        Some(Entered { value, _pass: pass })
    }

    /// Takes the value of this generation out, and returns it with its gate, which is free again;
    /// `None` if it is not there any more. New calls are refused at once. `announce` may wake those
    /// that are inside, and all of them have left when this returns.
    pub(super) fn take(
        &self,
        generation: usize,
        announce: impl FnOnce(&T),
    ) -> Option<(Box<T>, &'static Gate)> {
        let gate = self.gate.load(Ordering::Acquire);
        let current = self.generation.load(Ordering::Relaxed) == generation;
        // SAFETY: gates are never freed.
        let drained = unsafe { gate.as_ref() }.filter(|_| current)?;
        // If several threads take one value, only one gets past this.
        self.gate.compare_exchange(gate, null_mut(), Ordering::SeqCst, Ordering::Relaxed).ok()?;
        // SAFETY: this thread alone takes the value out, below.
        if let Some(value) = unsafe { self.peek() } {
            announce(value);
        }
        drained.drain();
        let value = self.value.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: `put` made it from a box; the exchange above makes this the only thread that
        // takes it, and after draining no call uses it.
        let value = unsafe { (!value.is_null()).then(|| Box::from_raw(value)) };
        value.map(|value| (value, drained))
    }

    /// The value, whether or not it is being taken out.
    ///
    /// # Safety
    /// No other thread frees the value meanwhile.
    pub(super) unsafe fn peek(&self) -> Option<&T> {
        // SAFETY: the caller's promise; a value is complete before it is in the slot.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }
}

#[cfg(loom)]
pub mod models;
