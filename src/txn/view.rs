//! What the commands of a handle read.

use std::sync::Arc;

use crate::txn::running::RunningTransaction;
use crate::txn::snapshot::SnapshotView;

/// What the commands of a handle read.
#[derive(Clone)]
pub(crate) enum View {
    /// The store as it is when the command runs.
    Live,
    /// The store at a snapshot.
    Snapshot(SnapshotView),
    /// The store at a transaction's read point, with the transaction's writes.
    Transaction(Arc<RunningTransaction>),
}
