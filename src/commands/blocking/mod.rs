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
use pop::PopSyntax;

use super::args::Args;
use super::entry::Entry;
use super::reply::Reply;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::{Attempt, Inbox, Interrupt, Waiter};
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
        self.pop.wanted(&self.db)
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

/// A session that wants to know when one of its keys may hold an element.
struct KeyNotice {
    wanted: (u32, u8),
    inbox: Arc<Inbox>,
}

impl Waiter for KeyNotice {
    fn wanted(&self) -> (u32, u8) {
        self.wanted
    }

    fn serve(&self, _key: &[u8]) -> bool {
        self.inbox.nudge();
        true
    }

    fn close(&self) {
        self.inbox.nudge();
    }
}

fn handle_closed() -> Error {
    Error::new(ErrorKind::Closed, "the handle was closed while the call waited for an element")
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

    /// Pops an element, or makes `inbox` tell when one of the keys may hold one. Nothing is popped
    /// then: the caller tries again.
    pub(super) fn pop_or_notice(
        &self,
        pop: &BlockingPop,
        inbox: &Arc<Inbox>,
    ) -> Result<PopOutcome> {
        let notice = KeyNotice { wanted: pop.wanted(self), inbox: Arc::clone(inbox) };
        let attempt = || self.write(&pop.written(&pop.keys), |tx| pop.try_all(tx));
        Ok(match self.store().hub().wait_for(pop.keys.clone(), Arc::new(notice), attempt)? {
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
        let call = Arc::new(BlockedCall::default());
        let deliver = {
            let call = Arc::clone(&call);
            move |reply: Result<Reply>| call.deliver(reply)
        };
        let reply = match self.pop_or_wait(pop, deliver)? {
            PopOutcome::Ready(reply) => reply,
            PopOutcome::Waiting(mut waiting) => {
                let interruptible: Arc<dyn Interrupt> = Arc::<BlockedCall>::clone(&call);
                let _listed = self.waits().map(|waits| waits.enter(interruptible));
                match call.wait(deadline.flatten()) {
                    Ended::Delivered(reply) => {
                        waiting.delivered();
                        reply?
                    }
                    Ended::TimedOut if waiting.cancel() => return Ok(Reply::NilArray),
                    Ended::Interrupted if waiting.cancel() => return Err(handle_closed()),
                    // Served while the wait ended: the element is the caller's.
                    _ => call.take().unwrap_or_else(|| Err(closed()))?,
                }
            }
        };
        self.settle_pop()?;
        Ok(reply)
    }

    /// Makes a pop as durable as the sync mode of the handle says.
    pub(super) fn settle_pop(&self) -> Result<()> {
        match self.durability() {
            SyncMode::Always => self.sync(),
            SyncMode::Interval | SyncMode::Off => Ok(()),
        }
    }
}

/// A call that waits in its thread.
#[derive(Default)]
struct BlockedCall {
    state: Mutex<CallState>,
    changed: Condvar,
}

#[derive(Default)]
struct CallState {
    reply: Option<Result<Reply>>,
    interrupted: bool,
}

/// How a wait ended.
enum Ended {
    Delivered(Result<Reply>),
    TimedOut,
    Interrupted,
}

impl BlockedCall {
    fn deliver(&self, reply: Result<Reply>) {
        self.state.lock().reply = Some(reply);
        self.changed.notify_one();
    }

    fn take(&self) -> Option<Result<Reply>> {
        self.state.lock().reply.take()
    }

    fn wait(&self, deadline: Option<Instant>) -> Ended {
        let mut state = self.state.lock();
        loop {
            if let Some(reply) = state.reply.take() {
                return Ended::Delivered(reply);
            }
            if state.interrupted {
                return Ended::Interrupted;
            }
            match deadline {
                None => self.changed.wait(&mut state),
                Some(deadline) if self.changed.wait_until(&mut state, deadline).timed_out() => {
                    return state.reply.take().map_or(Ended::TimedOut, Ended::Delivered);
                }
                Some(_) => {}
            }
        }
    }
}

impl Interrupt for BlockedCall {
    fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.changed.notify_one();
    }
}

pub(super) fn parsed(entry: &Entry, args: &[&[u8]]) -> Result<BlockingPop> {
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
