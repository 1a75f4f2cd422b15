//! Memory that is written once and then read without a lock.

#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Witness(loom::cell::UnsafeCell<()>);

#[cfg(shuttle)]
#[derive(Debug)]
pub(crate) struct Witness();

impl Witness {
    pub(crate) fn new() -> Self {
        Self(
            #[cfg(loom)]
            loom::cell::UnsafeCell::new(()),
        )
    }

    /// The memory was written. loom fails if another thread may read it at the same time.
    pub(crate) fn wrote(&self) {
        #[cfg(loom)]
        self.0.with_mut(|_| ());
    }

    /// The memory is about to be read. loom fails unless the write came before.
    pub(crate) fn reads(&self) {
        #[cfg(loom)]
        self.0.with(|_| ());
    }
}
