//! Commands that wait until a key holds an element: BLPOP, BLMOVE, BZPOPMIN and others.
//!
//! A call first tries to pop. If all keys are empty it waits in `messages::waiters`, and the writer
//! that fills one of them pops on its behalf. So calls are served in the order in which they came,
//! each element goes to one call, and a call that has given up takes nothing. In a transaction, a
//! batch or EXEC nothing waits: the command acts as if its time had passed.
//!
//! - `pop`: the commands, and their non-blocking counterparts.

mod pop;

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

pub use pop::BlockingPop;
use pop::{PopSource, PopSyntax};

use super::args::Args;
use super::entry::Entry;
use super::reply::Reply;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::{Attempt, Waiter};
use crate::options::SyncMode;
use crate::txn::{Db, Origin, Tx};

/// What [`Db::pop_or_wait`] found.
#[derive(Debug)]
pub enum PopOutcome {
    /// The reply: there was an element.
    Ready(Reply),
    /// All keys are empty; the reply is delivered later.
    Waiting(WaitingPop),
}

/// A pop that waits for an element. Dropping it ends the wait.
#[derive(Debug)]
pub struct WaitingPop {
    db: Db,
    /// `None` once the wait is over.
    ticket: Option<u64>,
}

impl WaitingPop {
    /// Ends the wait. Returns false if an element was popped for it: then the reply was delivered.
    pub fn cancel(&mut self) -> bool {
        self.ticket.take().is_some_and(|ticket| self.db.store().hub().stop_waiting(ticket))
    }

    /// Notes that the reply was delivered, which saves the drop a search.
    pub fn delivered(mut self) {
        self.ticket = None;
    }
}

impl Drop for WaitingPop {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Receives the reply of a pop that waited, in the thread that pushed the element.
type Deliver = Box<dyn Fn(Result<Reply>) + Send + Sync>;

/// A pop in the queue of its keys.
struct PopWaiter {
    db: Db,
    pop: BlockingPop,
    deliver: Deliver,
}

impl Waiter for PopWaiter {
    fn wanted(&self) -> (u32, u8) {
        (self.db.database(), u8::from(self.pop.source == PopSource::List))
    }

    fn serve(&self, key: &[u8]) -> bool {
        match self.pop.try_key(&self.db, key).transpose() {
            None => false,
            Some(result) => {
                (self.deliver)(result);
                true
            }
        }
    }

    fn close(&self) {
        (self.deliver)(Err(closed()));
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed while the call waited for an element")
}

impl Session {
    /// Pops an element, or waits for one without blocking the caller, as [`Db::pop_or_wait`]. If the
    /// session tracks keys, it counts as the one that pops.
    pub fn pop_or_wait(
        &self,
        pop: BlockingPop,
        deliver: impl Fn(Result<Reply>) + Send + Sync + 'static,
    ) -> Result<PopOutcome> {
        let origin = self.tracks().then(|| Origin { client: self.id(), keys: None });
        self.db().pop_or_wait(pop.from(origin), deliver)
    }
}

impl Db {
    /// Pops an element, or waits for one without blocking the caller: `deliver` receives the reply
    /// in the thread that pushes the element. It must not block or call the store. The pop is then
    /// visible but perhaps not durable. Fails on a snapshot or transaction.
    pub fn pop_or_wait(
        &self,
        pop: BlockingPop,
        deliver: impl Fn(Result<Reply>) + Send + Sync + 'static,
    ) -> Result<PopOutcome> {
        if !self.is_live() {
            let text = "only a handle on the store itself waits for elements";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        // A writer that serves this call must not wait for the device.
        let db = self.with_sync(SyncMode::Off);
        let waiter = Arc::new(PopWaiter { db, pop, deliver: Box::new(deliver) });
        let PopWaiter { db, pop, .. } = &*waiter;
        let attempt = || db.write(&pop.written(&pop.keys), |tx| pop.try_all(tx));
        let keys = pop.keys.clone();
        let shared: Arc<dyn Waiter> = Arc::<PopWaiter>::clone(&waiter);
        Ok(match self.store().hub().wait_for(keys, shared, attempt)? {
            Attempt::Done(reply) => PopOutcome::Ready(reply),
            Attempt::Waits(ticket) => {
                PopOutcome::Waiting(WaitingPop { db: self.clone(), ticket: Some(ticket) })
            }
        })
    }

    /// Runs a blocking command and waits in the calling thread.
    pub(super) fn run_blocking(
        &self,
        entry: &Entry,
        argv: &[&[u8]],
        origin: Option<Origin>,
    ) -> Result<Reply> {
        let pop = parsed(entry, argv.get(1..).unwrap_or_default())?.from(origin);
        let deadline = pop.timeout().map(|limit| Instant::now().checked_add(limit));
        let slot = Arc::new((Mutex::new(None), Condvar::new()));
        let deliver = {
            let slot = Arc::clone(&slot);
            move |reply: Result<Reply>| {
                *slot.0.lock() = Some(reply);
                slot.1.notify_one();
            }
        };
        let reply = match self.pop_or_wait(pop, deliver)? {
            PopOutcome::Ready(reply) => reply,
            PopOutcome::Waiting(mut waiting) => match waited(&slot, deadline.flatten()) {
                Some(reply) => {
                    waiting.delivered();
                    reply?
                }
                None if waiting.cancel() => return Ok(Reply::NilArray),
                // Served while the wait ended.
                None => slot.0.lock().take().unwrap_or_else(|| Err(closed()))?,
            },
        };
        self.settle_pop()?;
        Ok(reply)
    }

    /// Makes a pop as durable as the sync mode of the handle says.
    fn settle_pop(&self) -> Result<()> {
        match self.durability() {
            SyncMode::Always => self.sync(),
            SyncMode::Interval | SyncMode::Off => Ok(()),
        }
    }
}

/// Waits until a reply is delivered; `None` if the deadline passed first.
fn waited(
    slot: &(Mutex<Option<Result<Reply>>>, Condvar),
    deadline: Option<Instant>,
) -> Option<Result<Reply>> {
    let mut reply = slot.0.lock();
    while reply.is_none() {
        match deadline {
            None => slot.1.wait(&mut reply),
            Some(deadline) if slot.1.wait_until(&mut reply, deadline).timed_out() => break,
            Some(_) => {}
        }
    }
    reply.take()
}

fn parsed(entry: &Entry, args: &[&[u8]]) -> Result<BlockingPop> {
    let argv: Vec<&[u8]> =
        std::iter::once(entry.command.name.as_bytes()).chain(args.iter().copied()).collect();
    BlockingPop::parse(&argv)
}

/// Runs a blocking command without waiting, as in a transaction.
pub(super) fn run_now(name: &'static str, tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let argv: Vec<&[u8]> =
        std::iter::once(name.as_bytes()).chain(args.all().iter().copied()).collect();
    let syntax = PopSyntax::of(name);
    let syntax = syntax.ok_or_else(|| Error::new(ErrorKind::Invalid, "not a blocking command"))?;
    let pop = BlockingPop::parse_as(syntax, &argv)?;
    Ok(pop.try_all(tx)?.unwrap_or_else(|| pop.empty_reply()))
}

#[cfg(test)]
mod tests;
