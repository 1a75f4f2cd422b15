//! Atomics.
//!
//! loom takes a sequentially consistent access for an acquiring or releasing one, and would report
//! orders that no machine shows. It does know fences. So such an access has a fence before it here,
//! which is how compilers translate it for processors without one of their own.
//!
//! shuttle switches threads at every access. The links of memtables, of which a lookup follows
//! many, stay std's there: `AtomicU32`.

#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, fence};
#[cfg(shuttle)]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use of_loom::{AtomicPtr, AtomicUsize};

#[cfg(loom)]
mod of_loom {
    use super::{Ordering, fence};

    fn fence_before(order: Ordering) {
        if order == Ordering::SeqCst {
            fence(order);
        }
    }

    macro_rules! fenced {
        ($name:ident $(<$t:ident>)?, $value:ty) => {
            #[derive(Debug)]
            pub(crate) struct $name $(<$t>)? (loom::sync::atomic::$name $(<$t>)?);

            impl $(<$t>)? $name $(<$t>)? {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    fence_before(order);
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    fence_before(order);
                    self.0.store(value, order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    fence_before(order);
                    self.0.swap(value, order)
                }

                pub(crate) fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    fence_before(success);
                    self.0.compare_exchange(current, new, success, failure)
                }
            }
        };
    }

    fenced!(AtomicUsize, usize);
    fenced!(AtomicPtr<T>, *mut T);

    impl Default for AtomicUsize {
        fn default() -> Self {
            Self::new(0)
        }
    }

    impl AtomicUsize {
        pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
            fence_before(order);
            self.0.fetch_add(value, order)
        }

        pub(crate) fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
            fence_before(order);
            self.0.fetch_sub(value, order)
        }
    }
}
