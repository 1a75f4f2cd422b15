//! Tickets for writes that are visible and not yet durable.

use std::time::Duration;

use crate::engine::Commit;
use crate::error::Result;
use crate::txn::db::Db;

/// A write to wait for with [`Db::wait`]. Waiting for the newest ticket also covers all earlier
/// ones.
///
/// ```
/// use lsmkv::{Db, Options};
///
/// let db = Db::open(":memory:", Options::default())?;
/// let mut last = None;
/// for n in 0..64u8 {
///     let txn = db.begin()?;
///     txn.set(&[n], b"value")?;
///     last = Some(txn.commit_async()?);
/// }
/// assert!(db.wait(last.unwrap(), None)?); // one flush of the device for all
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Ticket {
    /// The ticket of a commit; without one there is nothing to wait for.
    pub(crate) fn of(commit: Option<Commit>) -> Self {
        Self(commit.map_or(0, |commit| commit.place()))
    }

    /// The number of the ticket, for callers that cannot hold a `Ticket`.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Restores a ticket from its number, for the same open store.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl Db {
    /// Waits until a write is durable, in any sync mode, and requests a flush of the device if none
    /// is under way. Returns `false` when the time ran out; with a limit of zero it only asks. A
    /// number that belongs to no ticket is an error. [`Db::close`] in another thread ends the wait
    /// at once with an error if the write is not durable yet; the close makes the write durable if
    /// it succeeds.
    pub fn wait(&self, ticket: Ticket, limit: Option<Duration>) -> Result<bool> {
        self.store().engine().wait_until_closing(Commit::at_place(ticket.0), limit)
    }
}
