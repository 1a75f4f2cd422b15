//! What loom checks of conflicts.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::{Conflicts, KeyId};

/// A commit becomes visible while an observer registers: the observer's sequence includes the
/// commit, or the commit is noted for it.
pub fn a_commit_beside_an_observer() {
    loom::model(|| {
        let conflicts = Arc::new(Conflicts::default());
        // As `Sequences` publishes and reads it.
        let visible = Arc::new(AtomicU64::new(4));
        let writer = {
            let (conflicts, visible) = (Arc::clone(&conflicts), Arc::clone(&visible));
            thread::spawn(move || {
                visible.store(5, Ordering::Release);
                if conflicts.anyone() {
                    conflicts.note(&[KeyId(7)], 5);
                }
            })
        };
        let _observer = conflicts.register(4);
        let since = visible.load(Ordering::Acquire);
        writer.join().unwrap();
        let noted = conflicts.changes().changed_after(KeyId(7), since);
        assert!(since == 5 || noted, "the commit is neither seen nor noted");
    });
}
