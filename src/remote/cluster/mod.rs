//! A cluster: commands go to the nodes that serve their keys.
//!
//! A command runs at most once, unless it only reads. It is repeated only if no node can have run
//! it: a node said so (MOVED, ASK, TRYAGAIN and their kin), or it was not sent. After a node's
//! death the others are asked which of them serves what.

//!
//! - `slots`, `nodes`: which node serves what, and the connections to each;
//! - `plan`: which nodes run a command, by its keys;
//! - `attempts`, `redirect`: work at one node, which is repeated until one does it;
//! - `every_node`, `split`, `scan`: a command at several nodes;
//! - `pipeline`, `transaction`: several commands.

mod attempts;
mod every_node;
mod nodes;
mod pipeline;
mod plan;
mod redirect;
mod scan;
mod slots;
mod split;
mod transaction;

use std::sync::{Arc, Mutex};

use super::address::Endpoint;
use super::call::Call;
use super::connection::Login;
use super::frame::Frame;
use super::waits::Waits;
use crate::commands::ReplySink;
use crate::error::Result;
pub(super) use attempts::Attempts;
use nodes::Nodes;
pub(super) use pipeline::Pipeline;
use plan::Plan;
pub(super) use plan::join_slot;
pub(super) use redirect::is_redirect;
pub(super) use slots::slot_of;
pub(super) use transaction::Transaction;

/// The connections to a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The nodes of the address, which are asked when no other node answers.
    named: Vec<Endpoint>,
    login: Login,
    nodes: Mutex<Nodes>,
}

impl Cluster {
    /// Connects to one of the named nodes and asks it which nodes serve which slots.
    pub(super) fn open(named: Vec<Endpoint>, login: Login) -> Result<Self> {
        let cluster = Self { named, login, nodes: Mutex::default() };
        cluster.refresh()?;
        Ok(cluster)
    }

    /// Runs a command.
    pub(super) fn run(
        &self,
        call: &Call<'_>,
        waits: &Arc<Waits>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        match Plan::of(call)? {
            Plan::Any => self.run_at(None, call, waits, sink),
            Plan::Slot(slot) => self.run_at(Some(slot), call, waits, sink),
            Plan::Every(join) => self.run_at_every(call, join, sink),
            Plan::UntilFound => self.run_until_found(call, sink),
            Plan::Scan => scan::page(self, call, sink),
            Plan::Split(split) => self.run_split(call, &split, waits, sink),
        }
    }
}
