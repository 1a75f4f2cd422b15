//! The current manifest of an open store.

use std::sync::Arc;

use super::edit::{LogState, VersionEdit};
use super::manifest_file::ManifestWriter;
use crate::engine::wal::SyncFile;
use crate::error::Result;

/// A manifest is replaced once edits have made it this much larger than its first record.
const ROLL_BYTES: u64 = 4 << 20;

/// The manifest that edits are appended to, and what it says about the log.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) writer: ManifestWriter,
    pub(crate) sync_file: Arc<SyncFile>,
    pub(crate) log: LogState,
    /// Bytes of edits appended after the first record.
    appended: u64,
    /// Size of the first record, which holds a whole version.
    first: u64,
}

impl Manifest {
    /// A manifest to which nothing was appended after its first record of `first` bytes.
    pub(crate) fn new(
        writer: ManifestWriter,
        sync_file: Arc<SyncFile>,
        log: LogState,
        first: u64,
    ) -> Self {
        Self { writer, sync_file, log, appended: 0, first }
    }

    /// Appends an edit and makes it durable.
    pub(crate) fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        let payload = edit.encode();
        self.writer.append(&payload)?;
        self.appended += payload.len() as u64;
        if let Some(log) = &edit.log {
            self.log = log.clone();
        }
        Ok(())
    }

    /// Whether most of the manifest is history, so that it should be replaced.
    pub(crate) fn should_roll(&self) -> bool {
        self.appended >= ROLL_BYTES.max(self.first * 4)
    }
}
