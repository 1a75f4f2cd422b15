//! A build that several calls feed, without a transaction in between.

use super::CollectionBuilder;
use crate::encoding::keys::Prefix;
use crate::engine::Batch;
use crate::error::Result;
use crate::txn::store::Store;

/// A builder of rows that are not counted between two calls that feed it. Who has it keeps its version
/// reserved.
pub(crate) struct RestingBuild {
    version: u64,
    prefix: Prefix,
    rows: Batch,
    spilled: bool,
}

impl RestingBuild {
    /// A build without rows. Its version is reserved.
    pub(crate) fn new(version: u64, prefix: Prefix) -> Self {
        Self { version, prefix, rows: Batch::new(), spilled: false }
    }

    /// What the keys of the rows begin with.
    pub(crate) fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The memory of the rows that are not spilled.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// Goes on with the build.
    pub(crate) fn resume(self, store: &Store) -> CollectionBuilder<'_> {
        let Self { version, prefix, rows, spilled } = self;
        CollectionBuilder {
            store,
            version,
            prefix,
            is_counted: false,
            rows,
            may_spill: true,
            spilled,
        }
    }
}

impl CollectionBuilder<'_> {
    /// Commits the rows so far if they have at least this many bytes.
    pub(crate) fn spill_from(&mut self, bytes: usize) -> Result<()> {
        if self.rows.is_empty() || self.rows.bytes() < bytes { Ok(()) } else { self.spill() }
    }

    /// Lets the build rest. A batch that was spilled has kept its memory, which goes.
    pub(crate) fn rest(self) -> RestingBuild {
        let rows = if self.rows.is_empty() { Batch::new() } else { self.rows };
        RestingBuild { version: self.version, prefix: self.prefix, rows, spilled: self.spilled }
    }
}
