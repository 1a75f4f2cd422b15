//! The buckets of a memtable: the addresses of the first entries of their chains, at first zero.
//!
//! Many are mapped. The allocator would write zeros to memory that it has used before: a millisecond for
//! the writer that needs a new memtable, and resident memory for trees that are hardly written.

#[cfg(loom)]
pub(super) use in_a_box::Buckets;
#[cfg(not(loom))]
pub(super) use mapped_or_allocated::Buckets;

#[cfg(not(loom))]
mod mapped_or_allocated {
    #![expect(unsafe_code, reason = "zeroed memory of the system becomes atomics")]

    use std::ops::Deref;
    use std::ptr::NonNull;

    use crate::engine::memtable::mapped::{MAPPED_FROM, map, unmap};
    use crate::sync::atomic::AtomicU32;

    /// A fixed number of addresses.
    pub(in crate::engine::memtable) struct Buckets {
        slots: NonNull<AtomicU32>,
        count: usize,
        is_mapped: bool,
    }

    // SAFETY: the slots are owned by this value and only used as atomics.
    unsafe impl Send for Buckets {}
    // SAFETY: as above.
    unsafe impl Sync for Buckets {}

    impl Buckets {
        /// So many buckets, all zero.
        pub(in crate::engine::memtable) fn zeroed(count: usize) -> Self {
            let bytes = count.saturating_mul(size_of::<AtomicU32>());
            let mapped = if bytes >= MAPPED_FROM { map(bytes) } else { None };
            if let Some(memory) = mapped.and_then(NonNull::new) {
                // A mapping begins at a page boundary, so it is aligned.
                return Self { slots: memory.cast(), count, is_mapped: true };
            }
            let zeros = Box::leak(vec![0u32; count].into_boxed_slice());
            // `AtomicU32` has the size, alignment and bit validity of `u32`.
            Self { slots: NonNull::from(zeros).cast(), count, is_mapped: false }
        }
    }

    impl Deref for Buckets {
        type Target = [AtomicU32];

        #[inline]
        fn deref(&self) -> &[AtomicU32] {
            // SAFETY: `zeroed` made `count` valid atomics there, which live as long as this value.
            unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.count) }
        }
    }

    impl Drop for Buckets {
        fn drop(&mut self) {
            let memory = self.slots.as_ptr();
            // SAFETY: mapped or leaked in `zeroed` with this very count, and freed only here.
            unsafe {
                if self.is_mapped {
                    unmap(memory.cast(), self.count * size_of::<AtomicU32>());
                } else {
                    let slots =
                        std::ptr::slice_from_raw_parts_mut(memory.cast::<u32>(), self.count);
                    drop(Box::from_raw(slots));
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::sync::atomic::Ordering;

        #[test]
        fn few_and_many_buckets_are_zero_and_hold_what_is_stored() {
            for (count, mapped) in [(256, false), (MAPPED_FROM / 4, true)] {
                let buckets = Buckets::zeroed(count);
                assert_eq!((buckets.len(), buckets.is_mapped), (count, mapped));
                assert!(buckets.iter().all(|bucket| bucket.load(Ordering::Relaxed) == 0));
                buckets[count - 1].store(7, Ordering::Relaxed);
                assert_eq!(buckets[count - 1].load(Ordering::Relaxed), 7);
            }
        }
    }
}

#[cfg(loom)]
mod in_a_box {
    use std::ops::Deref;

    use crate::sync::atomic::AtomicU32;

    /// A fixed number of addresses. The atomics of loom are more than their numbers.
    pub(in crate::engine::memtable) struct Buckets(Box<[AtomicU32]>);

    impl Buckets {
        /// So many buckets, all zero.
        pub(in crate::engine::memtable) fn zeroed(count: usize) -> Self {
            Self((0..count).map(|_| AtomicU32::new(0)).collect())
        }
    }

    impl Deref for Buckets {
        type Target = [AtomicU32];

        fn deref(&self) -> &[AtomicU32] {
            &self.0
        }
    }
}
