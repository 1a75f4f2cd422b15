//! Tickets: a write that is visible and will be durable.

use std::time::Duration;

use crate::engine::Commit;
use crate::error::Result;
use crate::types::Db;

/// A write that can be waited for by [`Db::wait`]; of several the one that was given out last
/// stands for those before it too.
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
    /// `None`: nothing was written, there is nothing to wait for.
    pub(crate) fn of(commit: Option<Commit>) -> Self {
        Self(commit.map_or(0, |commit| commit.place()))
    }

    /// The number, for a caller that can hold nothing else.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The ticket that [`Ticket::number`] is the number of, for use with the same open store.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl Db {
    /// Waits until a write is durable, in any sync mode, asking for a flush of the device if none
    /// is under way. `false` when the time ran out; a limit of zero only asks. A number that is
    /// no ticket's is an error, and so is [`Db::close`] in another thread, called before the write
    /// was durable: it ends the wait at once, and makes the write durable if it succeeds.
    pub fn wait(&self, ticket: Ticket, limit: Option<Duration>) -> Result<bool> {
        self.store().engine().wait_until_closing(Commit::at_place(ticket.0), limit)
    }
}
