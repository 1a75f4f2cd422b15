//! A cluster: commands go to the nodes that serve their keys.
//!
//! A command runs at most once, unless it only reads. It is repeated only if no node can have run
//! it: a node said so (MOVED, ASK, TRYAGAIN and their kin), or it was not sent. After a node's
//! death the others are asked which of them serves what.

mod pipeline;
mod plan;
mod redirect;
mod scan;
mod slots;
mod transaction;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::address::Endpoint;
use super::call::Call;
use super::connection::{CallFailure, Connection, Login};
use super::pool::Pool;
use super::reply_reader::{Frame, Shape};
use super::server_error::server_error;
use super::waits::Waits;
use crate::commands::{Head, Reply, ReplyBuilder, ReplySink};
use crate::error::{Error, ErrorKind, Result};
pub(super) use pipeline::Pipeline;
pub(super) use plan::join_slot;
use plan::{Join, Plan, Split, SplitJoin};
use redirect::Redirect;
use slots::SlotMap;
pub(super) use slots::slot_of;
pub(super) use transaction::Transaction;

/// The longest time that a command is repeated for, if replies may take any time.
const USUAL_LIMIT: Duration = Duration::from_secs(30);
/// The pauses before a command that nobody could run is repeated: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// The shortest time between two questions about the slots.
const BETWEEN_REFRESHES: Duration = Duration::from_millis(50);

/// The connections to a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The nodes of the address, which are asked when no other node answers.
    named: Vec<Endpoint>,
    login: Login,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: Arc<SlotMap>,
    pools: HashMap<Endpoint, Arc<Pool>>,
    refreshed: Option<Instant>,
    /// Counts choices of any node, so that all have their turn.
    turn: usize,
}

impl Cluster {
    /// Connects to one of the named nodes and asks it which nodes serve which slots.
    pub(super) fn open(named: Vec<Endpoint>, login: Login) -> Result<Self> {
        let cluster = Self { named, login, state: Mutex::default() };
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

    /// A connection of its own, to the node of a slot or to any.
    pub(super) fn connect(&self, slot: Option<u16>) -> Result<Connection> {
        let pool = self.pool_of(slot)?;
        Connection::open(pool.endpoint(), &self.login)
    }

    /// Runs a command at the node of a slot, or at any, and repeats it as long as no node ran it.
    fn run_at(
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
    fn call_once(
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

    fn run_at_every(&self, call: &Call<'_>, join: Join, sink: &mut dyn ReplySink) -> Result<Frame> {
        let mut replies = Vec::new();
        for pool in self.every_pool() {
            match self.query(&pool, call)? {
                Ok(reply) => replies.push(reply),
                Err(text) => return Ok(Frame::Error(text)),
            }
        }
        match join {
            Join::Sum => sink.integer(sum(&replies)),
            Join::First => replies.first().unwrap_or(&Reply::Nil).write_to(sink),
            Join::Concatenation => {
                let elements = replies.into_iter().flat_map(|reply| match reply {
                    Reply::Array(elements) | Reply::Set(elements) => elements,
                    other => vec![other],
                });
                Reply::Array(elements.collect()).write_to(sink);
            }
        }
        Ok(Frame::Reply)
    }

    fn run_until_found(&self, call: &Call<'_>, sink: &mut dyn ReplySink) -> Result<Frame> {
        let mut pools = self.every_pool();
        let turn = self.next_turn();
        let len = pools.len().max(1);
        pools.rotate_left(turn % len);
        for pool in pools {
            match self.query(&pool, call)? {
                Ok(Reply::Nil) => {}
                Ok(reply) => {
                    reply.write_to(sink);
                    return Ok(Frame::Reply);
                }
                Err(text) => return Ok(Frame::Error(text)),
            }
        }
        sink.nil();
        Ok(Frame::Reply)
    }

    /// Runs a command at one node, and returns its reply or the text of its error.
    fn query(&self, pool: &Pool, call: &Call<'_>) -> Result<std::result::Result<Reply, String>> {
        let mut reply = ReplyBuilder::default();
        match self.call_once(pool, false, call, None, &mut reply) {
            Ok(Frame::Error(text)) => Ok(Err(text)),
            Ok(_) => Ok(Ok(reply.finish())),
            Err(failure) => {
                let _ = self.refresh();
                Err(failure.into_error())
            }
        }
    }

    /// Runs the parts of a command. The parts of one node are sent together, and the nodes work at
    /// the same time.
    fn run_split(
        &self,
        call: &Call<'_>,
        split: &Split,
        waits: &Arc<Waits>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let name = call.argv.first().copied().unwrap_or_default();
        let argvs: Vec<Vec<&[u8]>> = split
            .parts
            .iter()
            .map(|part| {
                let words = part.places.iter().flat_map(|place| {
                    let begin = 1 + place * split.stride;
                    call.argv.get(begin..begin + split.stride).unwrap_or_default()
                });
                std::iter::once(name).chain(words.copied()).collect()
            })
            .collect();
        let mut replies: Vec<Option<Reply>> = vec![None; argvs.len()];
        let mut batches: Vec<(Arc<Pool>, Connection, Vec<usize>)> = Vec::new();
        for (number, part) in split.parts.iter().enumerate() {
            let Ok(pool) = self.pool_of(Some(part.slot)) else { continue };
            let place = batches.iter().position(|(known, ..)| Arc::ptr_eq(known, &pool));
            let place = match place {
                Some(place) => place,
                None => {
                    let Ok(connection) = pool.take() else { continue };
                    batches.push((pool, connection, Vec::new()));
                    batches.len() - 1
                }
            };
            if let (Some((_, connection, numbers)), Some(argv)) =
                (batches.get_mut(place), argvs.get(number))
            {
                connection.push(argv);
                numbers.push(number);
            }
        }
        // A part that was sent may have run: it must not be sent again unless it only reads.
        let mut unknown: Option<Error> = None;
        batches.retain_mut(|(_, connection, numbers)| match connection.send() {
            Ok(()) => true,
            Err(_) if numbers.len() == 1 || call.only_reads() => false,
            Err(error) => {
                unknown.get_or_insert(error);
                false
            }
        });
        for (pool, mut connection, numbers) in batches {
            for number in numbers {
                let mut reply = ReplyBuilder::default();
                match connection.receive(Shape::AsSent, None, &mut reply) {
                    Ok(Frame::Error(text)) if Redirect::of(&text, pool.endpoint()).is_some() => {}
                    Ok(Frame::Error(text)) => {
                        unknown.get_or_insert(server_error(&text));
                    }
                    Ok(_) => {
                        if let Some(place) = replies.get_mut(number) {
                            *place = Some(reply.finish());
                        }
                    }
                    Err(_) if call.only_reads() => break,
                    Err(error) => {
                        unknown.get_or_insert(CallFailure::Lost(error).into_error());
                        break;
                    }
                }
            }
            pool.give_back(connection);
        }
        if let Some(error) = unknown {
            let _ = self.refresh();
            let message = "parts of the command ran on other nodes of the cluster";
            return Err(error.wrap(error.kind(), message));
        }
        // What a node did not run, or only reads, goes its own way.
        for ((reply, part), argv) in replies.iter_mut().zip(&split.parts).zip(&argvs) {
            if reply.is_none() {
                let mut builder = ReplyBuilder::default();
                let part_call = Call { argv, entry: call.entry };
                match self.run_at(Some(part.slot), &part_call, waits, &mut builder)? {
                    Frame::Error(text) => return Ok(Frame::Error(text)),
                    _ => *reply = Some(builder.finish()),
                }
            }
        }
        let replies: Vec<Reply> = replies.into_iter().flatten().collect();
        match split.join {
            SplitJoin::Sum => sink.integer(sum(&replies)),
            SplitJoin::Ok => sink.status("OK"),
            SplitJoin::ByKey => in_order_of_keys(split, replies, sink),
        }
        Ok(Frame::Reply)
    }

    /// The pools of all nodes that serve slots.
    fn every_pool(&self) -> Vec<Arc<Pool>> {
        let slots = Arc::clone(&self.state().slots);
        slots.nodes().into_iter().map(|node| self.pool(node)).collect()
    }

    /// The pool of the node that serves a slot, or of any node.
    fn pool_of(&self, slot: Option<u16>) -> Result<Arc<Pool>> {
        let slots = Arc::clone(&self.state().slots);
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

    fn pool(&self, endpoint: &Endpoint) -> Arc<Pool> {
        let mut state = self.state();
        if let Some(pool) = state.pools.get(endpoint) {
            return Arc::clone(pool);
        }
        let pool = Arc::new(Pool::new(endpoint.clone(), self.login.clone()));
        state.pools.insert(endpoint.clone(), Arc::clone(&pool));
        pool
    }

    fn next_turn(&self) -> usize {
        let mut state = self.state();
        state.turn = state.turn.wrapping_add(1);
        state.turn
    }

    /// Asks the nodes which of them serves what, unless that was done a moment ago.
    fn refresh(&self) -> Result<()> {
        let (slots, pools) = {
            let mut state = self.state();
            if state.refreshed.is_some_and(|at| at.elapsed() < BETWEEN_REFRESHES) {
                return Ok(());
            }
            state.refreshed = Some(Instant::now());
            (Arc::clone(&state.slots), state.turn)
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
                    let mut state = self.state();
                    let serving: Vec<Endpoint> = slots.nodes().into_iter().cloned().collect();
                    state.pools.retain(|endpoint, _| serving.contains(endpoint));
                    state.slots = Arc::new(slots);
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

fn sum(replies: &[Reply]) -> i64 {
    replies.iter().fold(0, |sum: i64, reply| match reply {
        Reply::Int(number) => sum.saturating_add(*number),
        _ => sum,
    })
}

/// Writes the elements of the parts in the order of the keys of the whole command.
fn in_order_of_keys(split: &Split, replies: Vec<Reply>, sink: &mut dyn ReplySink) {
    let len = split.parts.iter().map(|part| part.places.len()).sum();
    let mut elements: Vec<Reply> = vec![Reply::Nil; len];
    for (part, reply) in split.parts.iter().zip(replies) {
        let Reply::Array(found) = reply else { continue };
        for (place, element) in part.places.iter().zip(found) {
            if let Some(slot) = elements.get_mut(*place) {
                *slot = element;
            }
        }
    }
    sink.head(Head::Array, len);
    elements.iter().for_each(|element| match element {
        Reply::Bulk(bytes) => sink.shared_bulk(Bytes::clone(bytes)),
        other => other.write_to(sink),
    });
}

/// The error of a command after one of the same connection was lost.
fn lost_before() -> Error {
    Error::new(ErrorKind::Io, "the connection to a node of the cluster ended")
}

fn no_node() -> Error {
    Error::new(ErrorKind::Io, "no node of the cluster answers")
}
