//! The file system as it was at a chosen sync, to crash it there.
//!
//! A hook runs around every sync, in the thread that syncs and with no lock held, so that it may
//! use the file system. [`SyncCapture`] is the hook most tests need: run the workload once and
//! count the syncs, then run it again for each of them and crash what was captured.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::handle::MemFs;

/// Whether the sync has taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStage {
    /// The sync has been asked for, and nothing has become durable by it.
    Before,
    /// The sync has taken effect and is about to return.
    After,
}

/// A moment at a sync.
#[derive(Clone, Copy, Debug)]
pub struct SyncPoint<'a> {
    /// The how manieth sync of this file system it is, from 1; of files and directories.
    pub number: u64,
    /// Just before or just after.
    pub stage: SyncStage,
    /// The file (by the name it was opened with) or directory.
    pub path: &'a Path,
}

pub(super) type HookFn = dyn Fn(&MemFs, SyncPoint<'_>) + Send + Sync;

/// What runs around every sync.
#[derive(Clone)]
pub(super) struct SyncHook(pub(super) Arc<HookFn>);

impl fmt::Debug for SyncHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SyncHook")
    }
}

/// The file system just before and just after one sync.
#[derive(Clone, Debug, Default)]
pub struct SyncCapture(Arc<Mutex<[Option<MemFs>; 2]>>);

impl SyncCapture {
    /// As it was before the sync took effect; `None` if that sync has not been reached.
    pub fn before(&self) -> Option<MemFs> {
        let [before, _] = &*self.0.lock();
        before.clone()
    }

    /// As it was when the sync had taken effect; `None` if that sync has not been reached.
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
    /// Runs `hook` before and after every sync from now on, in place of an earlier hook.
    pub fn on_sync(&self, hook: impl Fn(&MemFs, SyncPoint<'_>) + Send + Sync + 'static) {
        self.set_hook(Some(SyncHook(Arc::new(hook))));
    }

    /// Keeps the file system as it is around sync `number` (the first is 1). Takes the place of an
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
