//! An event loop: one thread that serves many connections. Only calls of the store block it.
//!
//! The first loop also accepts connections and hands them out to all loops in turn. Events are
//! edge-triggered: a connection remembers that its socket may have more bytes or room, and stays
//! ready until it has not.
//!
//! A round gives one turn to each ready connection whose last turns were short, and sends the replies.
//! New connections, those with a long turn among their last, those that send parts of requests and
//! those whose peer is gone wait in line: a round begins turns of theirs for a moment, at least one. A
//! connection that ends has been closed when its turn is over. Connections are accepted in that moment
//! too. So clients that send or fetch without end, or come and go, share the time that the others
//! leave, and delay them by little, however many they are.
//!
//! Small commands of all connections run as one batch, at the end of the round or when the batch is
//! full. Then the loop sends all replies: fewer commits and fewer wake-ups of clients give more
//! throughput. When replies must be durable, the loop sends them at the end of the round, after one
//! flush of the device for all writes.

mod accept;
mod blocking;
mod maintenance;
mod pace;
mod round;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::commands::AbandonedCommands;
use crate::error::{Error, ErrorKind};
use mio::{Events, Poll, Token};
use pace::Pace;

use super::client::CloseState;
use super::command_batch::{BatchRunner, CommandBatch};
use super::connection::Connection;
use super::input_buffer::InputBuffer;
use super::shared::Server;
use super::stream::Listener;

/// The poll token of the mailbox.
pub(crate) const MAILBOX: Token = Token(usize::MAX);
/// Smaller poll tokens are listeners; this and larger ones are connections.
const FIRST_CONNECTION: usize = 1 << 10;
/// The loop sends replies during a round once this many connections have some.
const SEND_THRESHOLD: usize = 16;
/// The interval between two checks of idle clients and memory.
const TICK: Duration = Duration::from_millis(500);

/// The state of one event loop.
pub(crate) struct EventLoop {
    index: usize,
    server: Arc<Server>,
    poll: Poll,
    listeners: Vec<Listener>,
    connections: Vec<Option<Box<Connection>>>,
    free_slots: Vec<usize>,
    /// Slots of connections that get a turn in the next round.
    ready: Vec<usize>,
    /// Slots of ready connections that wait in line: some get a turn in each round.
    line: VecDeque<usize>,
    /// When a connection with short turns last had one, in the server's milliseconds.
    last_short_turn_ms: u64,
    /// The bytes by which the buffers of connections grew since memory was last checked.
    memory_growth: usize,
    /// Slots of connections that are to be checked for idleness since the last tick.
    unchecked: Range<usize>,
    /// Listeners that may have more connections to accept.
    unaccepted: Vec<usize>,
    pace: Pace,
    /// Slots of connections that get a turn in this round.
    current: Vec<usize>,
    /// Whether these are many.
    is_crowded: bool,
    /// Slots of connections with pending replies.
    pending_replies: Vec<usize>,
    /// Deadlines of blocked clients, with slot and client id.
    deadlines: BTreeSet<(Instant, usize, u64)>,
    /// Transactions of clients that are gone; each round frees a part of them.
    abandoned: Vec<AbandonedCommands>,
    /// Bytes received in this round.
    input: InputBuffer,
    batch: CommandBatch,
    next_tick: Instant,
    /// The loop that got the last accepted connection.
    last_assigned: usize,
}

impl EventLoop {
    pub(crate) fn new(
        index: usize,
        server: Arc<Server>,
        poll: Poll,
        mut listeners: Vec<Listener>,
    ) -> std::io::Result<Self> {
        for (token, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Token(token))?;
        }
        let pace = Pace::new(Instant::now(), server.counters.len());
        Ok(Self {
            index,
            server,
            poll,
            listeners,
            connections: Vec::new(),
            free_slots: Vec::new(),
            ready: Vec::new(),
            line: VecDeque::new(),
            last_short_turn_ms: 0,
            memory_growth: 0,
            unchecked: 0..0,
            unaccepted: Vec::new(),
            pace,
            current: Vec::new(),
            is_crowded: false,
            pending_replies: Vec::new(),
            deadlines: BTreeSet::new(),
            abandoned: Vec::new(),
            input: InputBuffer::new(),
            batch: CommandBatch::default(),
            next_tick: Instant::now() + TICK,
            last_assigned: 0,
        })
    }

    /// Serves connections until the server stops.
    pub(crate) fn run(&mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.server.is_stopping() {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.server.log.line(&format!("cannot wait for events: {error}"));
                    return self.server.stop();
                }
            }
            events.iter().for_each(|event| self.handle_event(event));
            self.expire_deadlines();
            if Instant::now() >= self.next_tick {
                self.tick();
            }
            self.run_round();
        }
        self.shut_down();
    }

    fn timeout(&self) -> Duration {
        let is_busy = !self.ready.is_empty() || self.others_wait();
        if is_busy || !self.abandoned.is_empty() || !self.unchecked.is_empty() {
            return Duration::ZERO;
        }
        let soonest = self.deadlines.first().map_or(self.next_tick, |(at, ..)| *at);
        let timeout = soonest.min(self.next_tick).saturating_duration_since(Instant::now());
        self.accept_wait().map_or(timeout, |wait| wait.min(timeout))
    }

    fn handle_event(&mut self, event: &mio::event::Event) {
        match event.token() {
            MAILBOX => self.process_messages(),
            Token(listener) if listener < FIRST_CONNECTION => self.note_waiting(listener),
            Token(token) => {
                let slot = token - FIRST_CONNECTION;
                let Some(connection) = self.connection_at(slot) else { return };
                connection.peer_closed |= event.is_read_closed();
                connection.readable |= event.is_readable() || event.is_read_closed();
                connection.writable |= event.is_writable();
                self.make_ready(slot);
            }
        }
    }

    fn connection_at(&mut self, slot: usize) -> Option<&mut Connection> {
        self.connections.get_mut(slot)?.as_deref_mut()
    }

    fn make_ready(&mut self, slot: usize) {
        if let Some(connection) = self.connection_at(slot)
            && !connection.is_ready
        {
            connection.is_ready = true;
            match connection.waits_in_line() {
                true => self.line.push_back(slot),
                false => self.ready.push(slot),
            }
        }
    }

    /// Runs the batched commands of all connections.
    fn run_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let server = Arc::clone(&self.server);
        let Some(counters) = server.counters.get(self.index) else { return };
        let connections = self.connections.as_mut_slice();
        let mut runner = BatchRunner { server: &server, counters, connections };
        if runner.run(&mut self.batch, &mut self.input).is_err() {
            self.degrade_store();
        }
    }

    /// Refuses all writes until a restart: nobody knows what a command had done that panicked.
    fn degrade_store(&self) {
        self.server.db.degrade(&Error::new(ErrorKind::Panic, "a command panicked"));
    }

    /// Records the deadline and the replies that a turn has left.
    fn finish_turn(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_deref_mut) else {
            return;
        };
        if let Some(at) = connection.client.blocked.as_ref().and_then(|blocked| blocked.deadline) {
            self.deadlines.insert((at, slot, connection.client.id()));
        }
        if !connection.has_pending_reply {
            connection.has_pending_reply = true;
            self.pending_replies.push(slot);
        }
    }

    /// Gives a ready or idle connection a turn in the next round, even if its turns are long.
    fn make_ready_now(&mut self, slot: usize) {
        let Some(connection) = self.connection_at(slot) else { return };
        if std::mem::replace(&mut connection.is_ready, true) {
            let waits = self.line.iter().position(|waiting| *waiting == slot);
            let Some(place) = waits else { return };
            self.line.remove(place);
        }
        self.ready.push(slot);
    }

    /// Puts a connection back into its slot, or closes it if it is over.
    fn put_back(&mut self, slot: usize, mut connection: Box<Connection>) {
        self.memory_growth += connection.take_memory_growth();
        if connection.should_close() {
            return self.close(slot, connection);
        }
        let wants_turn = connection.wants_turn();
        if let Some(place) = self.connections.get_mut(slot) {
            *place = Some(connection);
        }
        if wants_turn {
            self.make_ready(slot);
        }
    }

    /// Sends all pending replies. If `durable`, it first flushes all writes, including those of
    /// other threads, because a reader may have seen them. If the flush fails, every client that
    /// has written is closed without a reply; clients that only read are still served.
    fn send_replies(&mut self, durable: bool) {
        let server = Arc::clone(&self.server);
        let mut pending = std::mem::take(&mut self.pending_replies);
        let has_written = |slot: &usize| {
            let connection = self.connections.get(*slot).and_then(Option::as_ref);
            connection.is_some_and(|connection| connection.client.has_written)
        };
        let other_threads = server.counters.len() > 1 && !pending.is_empty();
        let flushes = durable && (other_threads || pending.iter().any(has_written));
        let flushed = if flushes { server.db.sync() } else { Ok(()) };
        if let Err(error) = &flushed {
            server.note_failure(error);
        }
        let now_ms = server.now_ms();
        for slot in pending.drain(..) {
            self.send_replies_of(slot, now_ms, flushed.is_ok());
        }
        self.pending_replies = pending;
    }

    /// Sends the replies of a connection, and closes it if it ends. If its writes are not `flushed`, it
    /// gets none.
    fn send_replies_of(&mut self, slot: usize, now_ms: u64, flushed: bool) {
        let Some(counters) = self.server.counters.get(self.index) else { return };
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
            return;
        };
        connection.has_pending_reply = false;
        let has_written = std::mem::take(&mut connection.client.has_written);
        if has_written && !flushed {
            connection.client.close_state = CloseState::Now;
        } else {
            connection.send(counters, now_ms);
        }
        self.put_back(slot, connection);
    }
}
