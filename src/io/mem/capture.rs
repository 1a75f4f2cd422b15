//! Captures the file system at a chosen sync, to crash it there.
//!
//! A hook runs before and after every sync, in the thread that syncs and without a lock, so that it
//! may use the file system. [`SyncCapture`] is the hook that most tests need: run the workload once
//! and count the syncs, then run it again for each of them and crash the captured state.

use std::sync::Arc;

use parking_lot::Mutex;

use super::handle::{MemFs, SyncHook, SyncPoint, SyncStage};

/// The states of the file system before and after one sync.
#[derive(Clone, Debug, Default)]
pub struct SyncCapture(Arc<Mutex<[Option<MemFs>; 2]>>);

impl SyncCapture {
    /// The state before the sync took effect; `None` if the sync was not reached.
    pub fn before(&self) -> Option<MemFs> {
        let [before, _] = &*self.0.lock();
        before.clone()
    }

    /// The state after the sync took effect; `None` if the sync was not reached.
    pub fn after(&self) -> Option<MemFs> {
        let [_, after] = &*self.0.lock();
        after.clone()
    }

    fn store(&self, stage: SyncStage, fs: MemFs) {
        let [before, after] = &mut *self.0.lock();
        *(if stage == SyncStage::Before { before } else { after }) = Some(fs);
    }
}

impl MemFs {
    /// Runs `hook` before and after every sync from now on. It replaces an earlier hook.
    pub fn on_sync(&self, hook: impl Fn(&MemFs, SyncPoint<'_>) + Send + Sync + 'static) {
        self.set_hook(Some(SyncHook(Arc::new(hook))));
    }

    /// Captures the file system before and after sync `number`, counted from 1. It replaces an
    /// earlier hook.
    pub fn capture_at_sync(&self, number: u64) -> SyncCapture {
        let capture = SyncCapture::default();
        let slot = capture.clone();
        self.on_sync(move |fs, point| {
            if point.number == number {
                slot.store(point.stage, fs.deep_clone());
            }
        });
        capture
    }
}
