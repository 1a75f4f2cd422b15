//! Tickets of a shared store: places in its log, wherever it is held.

use std::time::{Duration, Instant};

use super::store::{FIRST_PAUSE, Seat, SharedStore};
use crate::commands::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::remote::{Unanswered, Wait};
use crate::txn::Ticket;

impl SharedStore {
    /// Waits until the writes of a ticket are durable, for at most `limit`. Returns `false` when the
    /// time ran out. A ticket of a former holder is durable: whoever takes over makes all that it
    /// recovers durable first.
    pub fn wait(&self, ticket: Ticket, limit: Option<Duration>) -> Result<bool> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let number = ticket.number().to_string();
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(Duration::MAX);
            let ms = milliseconds(left);
            let is_durable = self.run(|seat| match seat {
                Seat::Here(db) => db.wait(ticket, Some(left)).map_err(Unanswered::Failed),
                Seat::There(remote) => {
                    let argv: [&[u8]; 4] =
                        [b"LSMKV.SHARED", b"WAIT", number.as_bytes(), ms.as_bytes()];
                    let reply = remote.attempt_private(&argv, Some(Wait::For(left)))?;
                    reply.map(|reply| reply == Reply::Int(1)).map_err(Unanswered::Failed)
                }
            })?;
            if is_durable || left.is_zero() {
                return Ok(is_durable);
            }
            // The holder had no thread to wait on, or not quite as long.
            std::thread::sleep(FIRST_PAUSE);
        }
    }
}

/// Milliseconds as a word.
pub(super) fn milliseconds(limit: Duration) -> String {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).to_string()
}

/// The ticket that the holder replied.
pub(super) fn ticket_of(reply: &Reply) -> Result<Ticket> {
    match reply {
        Reply::Int(number) if *number >= 0 => Ok(Ticket::from_number(number.unsigned_abs())),
        other => {
            Err(Error::new(ErrorKind::Io, format!("the holder replied {other:?} for a ticket")))
        }
    }
}
