//! Several commands at once: those of one node are sent together, the nodes work at the same time,
//! and the replies come in the order of the commands.

use std::sync::Arc;

use super::Cluster;
use super::plan::Plan;
use super::redirect::Redirect;
use crate::commands::ReplySink;
use crate::commands::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::remote::WINDOW;
use crate::remote::call::Call;
use crate::remote::connection::{CallFailure, Connection};
use crate::remote::frame::Frame;
use crate::remote::pool::Pool;
use crate::remote::waits::Waits;

/// Commands whose replies are not read yet.
pub(in crate::remote) struct Pipeline<'a, 'c> {
    cluster: &'a Cluster,
    waits: &'a Arc<Waits>,
    lanes: Vec<Lane>,
    /// The commands, in their order.
    sent: Vec<Sent<'c>>,
}

/// The commands for one node.
struct Lane {
    pool: Arc<Pool>,
    link: Link,
    /// The number of its commands.
    commands: usize,
}

/// What became of the connection of a lane.
enum Link {
    Open(Connection),
    /// The node has run none of the commands: they can be sent again.
    NothingSent,
    /// The node may have run those whose replies were not read.
    Lost,
}

struct Sent<'c> {
    lane: usize,
    slot: Option<u16>,
    argv: Vec<&'c [u8]>,
    entry: Option<&'static Entry>,
}

impl<'a, 'c> Pipeline<'a, 'c> {
    pub(in crate::remote) fn new(cluster: &'a Cluster, waits: &'a Arc<Waits>) -> Self {
        Self { cluster, waits, lanes: Vec::new(), sent: Vec::new() }
    }

    /// Adds a command, if one node runs it at once. Otherwise it returns false, and the caller runs
    /// the command after the others.
    pub(in crate::remote) fn push(&mut self, argv: &[&'c [u8]]) -> Result<bool> {
        let call = Call::of(argv);
        let slot = match Plan::of(&call) {
            Ok(Plan::Slot(slot)) if call.wait().is_none() => Some(slot),
            Ok(Plan::Any) if call.entry.is_some() => None,
            _ => return Ok(false),
        };
        self.add(slot, argv, call.entry)?;
        Ok(true)
    }

    /// Adds a command for the node of a slot, or for any.
    pub(super) fn add(
        &mut self,
        slot: Option<u16>,
        argv: &[&'c [u8]],
        entry: Option<&'static Entry>,
    ) -> Result<()> {
        let number = self.lane(slot)?;
        if let Some(lane) = self.lanes.get_mut(number) {
            lane.commands += 1;
            if let Link::Open(connection) = &mut lane.link {
                connection.push(argv);
            }
        }
        self.sent.push(Sent { lane: number, slot, argv: argv.to_vec(), entry });
        Ok(())
    }

    /// Whether so much waits to be sent that the replies should be read first.
    pub(in crate::remote) fn is_full(&self) -> bool {
        let pending = |lane: &Lane| match &lane.link {
            Link::Open(connection) => connection.pending(),
            Link::NothingSent | Link::Lost => 0,
        };
        self.lanes.iter().map(pending).sum::<usize>() >= WINDOW
    }

    /// Sends the commands, reads their replies, and calls `each` after each one.
    pub(in crate::remote) fn finish<S: ReplySink>(
        &mut self,
        sink: &mut S,
        each: &mut impl FnMut(&mut S),
    ) -> Result<()> {
        for lane in &mut self.lanes {
            if let Link::Open(connection) = &mut lane.link
                && connection.send().is_err()
            {
                // Of several commands the node may have got the first ones.
                lane.link = if lane.commands > 1 { Link::Lost } else { Link::NothingSent };
            }
        }
        for command in std::mem::take(&mut self.sent) {
            let call = Call { argv: &command.argv, entry: command.entry };
            let frame = match self.receive(command.lane, &call, sink)? {
                Some(frame) => frame,
                None => self.cluster.run_at(command.slot, &call, self.waits, sink)?,
            };
            frame.write_error(sink);
            each(sink);
        }
        for lane in self.lanes.drain(..) {
            if let Link::Open(connection) = lane.link {
                lane.pool.give_back(connection);
            }
        }
        Ok(())
    }

    /// Reads the reply to the oldest command of a lane; `None` if it has not run, or only reads, and
    /// is to be sent again.
    fn receive(
        &mut self,
        lane: usize,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Option<Frame>> {
        let Some(lane) = self.lanes.get_mut(lane) else { return Ok(None) };
        let received = match &mut lane.link {
            Link::Open(connection) => connection.receive(call.shape(), None, sink),
            Link::NothingSent => return Ok(None),
            Link::Lost => Err(lost_before()),
        };
        match received {
            Ok(Frame::Error(text)) if Redirect::of(&text, lane.pool.endpoint()).is_some() => {
                Ok(None)
            }
            Ok(frame) => Ok(Some(frame)),
            Err(error) => {
                lane.link = Link::Lost;
                self.waits.check_open()?;
                let _ = self.cluster.refresh();
                if call.only_reads() {
                    return Ok(None);
                }
                Err(CallFailure::Lost(error).into_error())
            }
        }
    }

    /// The lane of a slot's node, or of any node. A node that cannot be reached has a lane too: its
    /// commands wait for the one that takes over.
    fn lane(&mut self, slot: Option<u16>) -> Result<usize> {
        if slot.is_none() && !self.lanes.is_empty() {
            return Ok(0);
        }
        let pool = self.cluster.pool_of(slot)?;
        let known = self.lanes.iter().position(|lane| Arc::ptr_eq(&lane.pool, &pool));
        if let Some(place) = known {
            return Ok(place);
        }
        let link = pool.take().map_or(Link::NothingSent, Link::Open);
        self.lanes.push(Lane { pool, link, commands: 0 });
        Ok(self.lanes.len() - 1)
    }
}

/// The error of a command after one of the same connection was lost.
fn lost_before() -> Error {
    Error::new(ErrorKind::Io, "the connection to a node of the cluster ended")
}
