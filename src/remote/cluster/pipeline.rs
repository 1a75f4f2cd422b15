//! Several commands at once: those of one node are sent together, the nodes work at the same time,
//! and the replies come in the order of the commands.

use std::sync::Arc;

use super::plan::Plan;
use super::redirect::Redirect;
use super::{Cluster, lost_before};
use crate::commands::ReplySink;
use crate::error::Result;
use crate::remote::WINDOW;
use crate::remote::call::Call;
use crate::remote::connection::{CallFailure, Connection};
use crate::remote::pool::Pool;
use crate::remote::reply_reader::Frame;
use crate::remote::waits::Waits;

/// Commands whose replies are not read yet.
pub(in crate::remote) struct Pipeline<'a> {
    cluster: &'a Cluster,
    waits: &'a Arc<Waits>,
    lanes: Vec<Lane>,
    /// The commands, in their order.
    sent: Vec<Sent>,
}

/// The commands for one node.
struct Lane {
    pool: Arc<Pool>,
    /// `None` once it is lost.
    connection: Option<Connection>,
}

struct Sent {
    lane: usize,
    slot: Option<u16>,
    argv: Vec<Vec<u8>>,
}

impl<'a> Pipeline<'a> {
    pub(in crate::remote) fn new(cluster: &'a Cluster, waits: &'a Arc<Waits>) -> Self {
        Self { cluster, waits, lanes: Vec::new(), sent: Vec::new() }
    }

    /// Adds a command, if one node runs it at once. Otherwise it returns false, and the caller runs
    /// the command after the others.
    pub(in crate::remote) fn push(&mut self, call: &Call<'_>) -> Result<bool> {
        let slot = match Plan::of(call) {
            Ok(Plan::Slot(slot)) if call.wait().is_none() => Some(slot),
            Ok(Plan::Any) if call.entry.is_some() => None,
            _ => return Ok(false),
        };
        let lane = self.lane(slot)?;
        let Some(Lane { connection: Some(connection), .. }) = self.lanes.get_mut(lane) else {
            return Ok(false);
        };
        connection.push(call.argv);
        let argv = call.argv.iter().map(|word| word.to_vec()).collect();
        self.sent.push(Sent { lane, slot, argv });
        Ok(true)
    }

    /// Whether so much waits to be sent that the replies should be read first.
    pub(in crate::remote) fn is_full(&self) -> bool {
        let connections = self.lanes.iter().filter_map(|lane| lane.connection.as_ref());
        connections.map(Connection::pending).sum::<usize>() >= WINDOW
    }

    /// Sends the commands, reads their replies, and calls `each` after each one.
    pub(in crate::remote) fn finish<S: ReplySink>(
        &mut self,
        sink: &mut S,
        each: &mut impl FnMut(&mut S),
    ) -> Result<()> {
        // What happens to a lane tells its first command; the others of it are then sent again or
        // lost likewise.
        for lane in &mut self.lanes {
            if lane.connection.as_mut().is_some_and(|connection| connection.send().is_err()) {
                lane.connection = None;
            }
        }
        for command in std::mem::take(&mut self.sent) {
            let argv: Vec<&[u8]> = command.argv.iter().map(Vec::as_slice).collect();
            let call = Call::of(&argv);
            let frame = match self.receive(command.lane, &call, sink)? {
                Some(frame) => frame,
                None => self.cluster.run_at(command.slot, &call, self.waits, sink)?,
            };
            frame.write_error(sink);
            each(sink);
        }
        for lane in self.lanes.drain(..) {
            if let Some(connection) = lane.connection {
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
        let received = match &mut lane.connection {
            Some(connection) => connection.receive(call.shape(), None, sink),
            None => Err(lost_before()),
        };
        match received {
            Ok(Frame::Error(text)) if Redirect::of(&text, lane.pool.endpoint()).is_some() => {
                Ok(None)
            }
            Ok(frame) => Ok(Some(frame)),
            Err(error) => {
                lane.connection = None;
                self.waits.check_open()?;
                let _ = self.cluster.refresh();
                if call.only_reads() {
                    return Ok(None);
                }
                Err(CallFailure::Lost(error).into_error())
            }
        }
    }

    /// The lane of a slot's node, or of any node.
    fn lane(&mut self, slot: Option<u16>) -> Result<usize> {
        if slot.is_none() && !self.lanes.is_empty() {
            return Ok(0);
        }
        let pool = self.cluster.pool_of(slot)?;
        let known = self.lanes.iter().position(|lane| Arc::ptr_eq(&lane.pool, &pool));
        if let Some(place) = known {
            return Ok(place);
        }
        let connection = pool.take()?;
        self.lanes.push(Lane { pool, connection: Some(connection) });
        Ok(self.lanes.len() - 1)
    }
}
