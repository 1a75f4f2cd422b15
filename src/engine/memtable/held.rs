//! The memtables that are in tables already, and that readers still keep in memory.

use std::sync::Weak;

use super::MemtableSet;
use crate::sync::Mutex;

/// The memtables that are in tables and that readers may still hold.
#[derive(Debug, Default)]
pub(crate) struct HeldMemtables(Mutex<Vec<Weak<MemtableSet>>>);

impl HeldMemtables {
    /// Notes memtables that no new reader gets.
    pub(crate) fn note(&self, set: Weak<MemtableSet>) {
        let mut sets = self.0.lock();
        sets.retain(|set| set.strong_count() > 0);
        if set.strong_count() > 0 {
            sets.push(set);
        }
    }

    /// The bytes that readers hold.
    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().iter().filter_map(Weak::upgrade).map(|set| set.bytes()).sum()
    }
}
