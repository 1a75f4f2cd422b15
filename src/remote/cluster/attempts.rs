//! A command, or another piece of work, at one node: sent again as long as no node can have run it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Cluster;
use super::redirect::Redirect;
use crate::commands::{ReplyBuilder, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::remote::address::Endpoint;
use crate::remote::call::Call;
use crate::remote::connection::{CallFailure, Connection};
use crate::remote::frame::{Frame, Shape};
use crate::remote::pool::Pool;
use crate::remote::server_error::server_error;
use crate::remote::waits::Waits;

/// The longest time that a command is repeated for, if replies may take any time.
const USUAL_LIMIT: Duration = Duration::from_secs(30);
/// The pauses before a command that nobody could run is repeated: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// The time that is left for what no node has run yet.
#[derive(Debug)]
pub(in crate::remote) struct Attempts<'a> {
    cluster: &'a Cluster,
    waits: &'a Waits,
    deadline: Instant,
    pause: Duration,
}

impl<'a> Attempts<'a> {
    /// Fails if the handle of `waits` was closed.
    pub(in crate::remote) fn begin(cluster: &'a Cluster, waits: &'a Waits) -> Result<Self> {
        waits.check_open()?;
        let limit = cluster.login.reply_limit.unwrap_or(USUAL_LIMIT);
        Ok(Self { cluster, waits, deadline: Instant::now() + limit, pause: PAUSES.0 })
    }

    /// Waits a moment after `error` and asks the nodes which of them serves what. Fails when the time
    /// is over.
    pub(in crate::remote) fn later(&mut self, error: &Error) -> Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        std::thread::sleep(self.pause.min(left));
        let _ = self.cluster.refresh();
        self.at_once(error)
    }

    /// Fails when the time is over.
    fn at_once(&mut self, error: &Error) -> Result<()> {
        self.waits.check_open()?;
        self.pause = (self.pause * 2).min(PAUSES.1);
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let text = "no node of the cluster ran the command in time, and it has not run";
        Err(error.wrap(error.kind(), text))
    }
}

impl Cluster {
    /// A connection of its own, to the node of a slot or to any. It waits for a node that takes over.
    pub(in crate::remote) fn connect(
        &self,
        slot: Option<u16>,
        waits: &Waits,
    ) -> Result<Connection> {
        let mut attempts = Attempts::begin(self, waits)?;
        loop {
            match self.connect_once(slot) {
                Ok(connection) => return Ok(connection),
                Err(error) => attempts.later(&error)?,
            }
        }
    }

    /// A connection of its own, unless the node does not answer.
    pub(in crate::remote) fn connect_once(&self, slot: Option<u16>) -> Result<Connection> {
        Connection::open(self.pool_of(slot)?.endpoint(), &self.login)
    }

    /// Runs a command at the node of a slot, or at any, and repeats it as long as no node ran it.
    pub(super) fn run_at(
        &self,
        slot: Option<u16>,
        call: &Call<'_>,
        waits: &Arc<Waits>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut attempts = Attempts::begin(self, waits)?;
        let mut elsewhere: Option<(Endpoint, bool)> = None;
        loop {
            let (pool, asking) = match elsewhere.take() {
                Some((endpoint, asking)) => (Ok(self.pool(&endpoint)), asking),
                None => (self.pool_of(slot), false),
            };
            let outcome = pool.and_then(|pool| {
                match self.call_once(&pool, asking, call, Some(waits), sink) {
                    Ok(Frame::Error(text)) => match Redirect::of(&text, pool.endpoint()) {
                        None => Ok(Attempt::Done(Frame::Error(text))),
                        Some(Redirect::Moved(to)) => Ok(Attempt::At(to, false)),
                        Some(Redirect::Ask(to)) => Ok(Attempt::At(to, true)),
                        Some(Redirect::Later) => Ok(Attempt::Later(server_error(&text))),
                    },
                    Ok(frame) => Ok(Attempt::Done(frame)),
                    Err(CallFailure::NotSent(error)) => Ok(Attempt::Later(error)),
                    Err(CallFailure::Lost(error)) if call.only_reads() => Ok(Attempt::Later(error)),
                    Err(lost @ CallFailure::Lost(_)) => {
                        waits.check_open()?;
                        // Whoever comes next should know the new node.
                        let _ = self.refresh();
                        Err(lost.into_error())
                    }
                }
            });
            match outcome? {
                Attempt::Done(frame) => return Ok(frame),
                Attempt::At(endpoint, asking) => {
                    if !asking {
                        let _ = self.refresh();
                    }
                    elsewhere = Some((endpoint, asking));
                    let text = "the nodes of the cluster name each other in turn";
                    attempts.at_once(&Error::new(ErrorKind::Busy, text))?;
                }
                Attempt::Later(error) => attempts.later(&error)?,
            }
        }
    }

    /// Runs a command once at a node. `asking` says that the slot is on its way there.
    pub(super) fn call_once(
        &self,
        pool: &Pool,
        asking: bool,
        call: &Call<'_>,
        waits: Option<&Arc<Waits>>,
        sink: &mut dyn ReplySink,
    ) -> std::result::Result<Frame, CallFailure> {
        let mut connection = pool.take().map_err(CallFailure::NotSent)?;
        if asking {
            connection.push(&[b"ASKING"]);
        }
        connection.push(call.argv);
        connection.send().map_err(CallFailure::NotSent)?;
        if asking {
            let mut nothing = ReplyBuilder::default();
            connection.receive(Shape::AsSent, None, &mut nothing).map_err(CallFailure::Lost)?;
        }
        let wait = call.wait();
        let waiting = match waits.filter(|_| wait.is_some()) {
            Some(waits) => Some(waits.enter(connection.socket()).map_err(CallFailure::Lost)?),
            None => None,
        };
        let received = connection.receive(call.shape(), wait, sink);
        drop(waiting);
        pool.give_back(connection);
        received.map_err(CallFailure::Lost)
    }
}

/// What one attempt to run a command came to.
enum Attempt {
    Done(Frame),
    /// It must be sent to another node; with ASKING, if the slot is on its way there.
    At(Endpoint, bool),
    /// Nobody ran it.
    Later(Error),
}
