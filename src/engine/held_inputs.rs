//! Tables that merges on a full disk have replaced and readers still hold: their space has not come
//! back (`input_wait.rs`).

use std::sync::Weak;

use crate::engine::version::TableFile;
use crate::sync::Mutex;

/// Replaced inputs of merges that others held for longer than the merge waited.
#[derive(Debug, Default)]
pub(crate) struct HeldInputs(Mutex<Vec<Weak<TableFile>>>);

impl HeldInputs {
    pub(crate) fn note(&self, files: Vec<Weak<TableFile>>) {
        self.0.lock().extend(files);
    }

    /// Whether some of them are still held.
    pub(crate) fn any(&self) -> bool {
        let mut files = self.0.lock();
        files.retain(is_held);
        !files.is_empty()
    }
}

/// Whether anybody holds a table.
pub(crate) fn is_held(file: &Weak<TableFile>) -> bool {
    file.strong_count() > 0
}
