//! The nodes of a cluster: which one serves what, and the connections to each.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Cluster;
use super::slots::SlotMap;
use crate::error::{Error, ErrorKind, Result};
use crate::remote::address::Endpoint;
use crate::remote::pool::Pool;

/// The shortest time between two questions about the slots.
const BETWEEN_REFRESHES: Duration = Duration::from_millis(50);

/// What is known about the nodes.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slots: Arc<SlotMap>,
    pools: HashMap<Endpoint, Arc<Pool>>,
    refreshed: Option<Instant>,
    /// Counts choices of any node, so that all have their turn.
    turn: usize,
}

impl Cluster {
    /// The pools of all nodes that serve slots.
    pub(super) fn every_pool(&self) -> Vec<Arc<Pool>> {
        let slots = Arc::clone(&self.nodes().slots);
        slots.nodes().into_iter().map(|node| self.pool(node)).collect()
    }

    /// The pool of the node that serves a slot, or of any node.
    pub(super) fn pool_of(&self, slot: Option<u16>) -> Result<Arc<Pool>> {
        let slots = Arc::clone(&self.nodes().slots);
        let node = match slot {
            Some(slot) => slots.node(slot),
            None => {
                let nodes = slots.nodes();
                nodes.get(self.next_turn() % nodes.len().max(1)).copied()
            }
        };
        match node {
            Some(node) => Ok(self.pool(node)),
            // Any node knows where the slot is, or says that the cluster is down.
            None => self.named.first().map(|node| self.pool(node)).ok_or_else(no_node),
        }
    }

    pub(super) fn pool(&self, endpoint: &Endpoint) -> Arc<Pool> {
        let mut known = self.nodes();
        if let Some(pool) = known.pools.get(endpoint) {
            return Arc::clone(pool);
        }
        let pool = Arc::new(Pool::new(endpoint.clone(), self.login.clone()));
        known.pools.insert(endpoint.clone(), Arc::clone(&pool));
        pool
    }

    pub(super) fn next_turn(&self) -> usize {
        let mut known = self.nodes();
        known.turn = known.turn.wrapping_add(1);
        known.turn
    }

    /// Asks the nodes which of them serves what, unless that was done a moment ago.
    pub(super) fn refresh(&self) -> Result<()> {
        let (slots, pools) = {
            let mut known = self.nodes();
            if known.refreshed.is_some_and(|at| at.elapsed() < BETWEEN_REFRESHES) {
                return Ok(());
            }
            known.refreshed = Some(Instant::now());
            (Arc::clone(&known.slots), known.turn)
        };
        let mut nodes: Vec<Endpoint> = slots.nodes().into_iter().cloned().collect();
        // Another one first each time: the first may be the one that is gone.
        let len = nodes.len().max(1);
        nodes.rotate_left(pools % len);
        nodes.extend(self.named.iter().cloned());
        let mut failure = no_node();
        for node in nodes {
            match self.ask(&node) {
                Ok(slots) => {
                    let mut known = self.nodes();
                    let serving: Vec<Endpoint> = slots.nodes().into_iter().cloned().collect();
                    known.pools.retain(|endpoint, _| serving.contains(endpoint));
                    known.slots = Arc::new(slots);
                    return Ok(());
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn ask(&self, node: &Endpoint) -> Result<SlotMap> {
        let pool = self.pool(node);
        let mut connection = pool.take()?;
        let reply = connection.query(&[b"CLUSTER", b"SLOTS"]);
        pool.give_back(connection);
        let reply = reply.map_err(|error| {
            let advice = "a cluster was expected; use redis:// for a single server";
            error.wrap(ErrorKind::Invalid, format_args!("{node}: {advice}"))
        })?;
        SlotMap::parse(&reply, node).ok_or_else(|| {
            let message =
                format!("{node} knows no node that serves a slot: is the cluster formed?");
            Error::new(ErrorKind::Busy, message)
        })
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_node() -> Error {
    Error::new(ErrorKind::Io, "no node of the cluster answers")
}
