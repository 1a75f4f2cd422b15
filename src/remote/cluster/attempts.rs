//! A command at one node: sent again as long as no node can have run it.

use std::sync::Arc;
use std::time::Instant;

use super::redirect::Redirect;
use super::{Cluster, PAUSES, USUAL_LIMIT};
use crate::commands::{ReplyBuilder, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::remote::address::Endpoint;
use crate::remote::call::Call;
use crate::remote::connection::CallFailure;
use crate::remote::frame::{Frame, Shape};
use crate::remote::pool::Pool;
use crate::remote::server_error::server_error;
use crate::remote::waits::Waits;

impl Cluster {
    /// Runs a command at the node of a slot, or at any, and repeats it as long as no node ran it.
    pub(super) fn run_at(
        &self,
        slot: Option<u16>,
        call: &Call<'_>,
        waits: &Arc<Waits>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let deadline = Instant::now() + self.login.reply_limit.unwrap_or(USUAL_LIMIT);
        let (mut pause, most) = PAUSES;
        let mut elsewhere: Option<(Endpoint, bool)> = None;
        loop {
            waits.check_open()?;
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
            let late = match outcome? {
                Attempt::Done(frame) => return Ok(frame),
                Attempt::At(endpoint, asking) => {
                    if !asking {
                        let _ = self.refresh();
                    }
                    elsewhere = Some((endpoint, asking));
                    Error::new(ErrorKind::Busy, "the nodes of the cluster name each other in turn")
                }
                Attempt::Later(error) => {
                    std::thread::sleep(
                        pause.min(deadline.saturating_duration_since(Instant::now())),
                    );
                    let _ = self.refresh();
                    error
                }
            };
            pause = (pause * 2).min(most);
            if Instant::now() >= deadline {
                return Err(late.wrap(
                    late.kind(),
                    "no node of the cluster ran the command in time, and it has not run",
                ));
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
