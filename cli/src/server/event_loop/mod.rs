//! An event loop: one thread, many connections, nothing that blocks but the store itself.
//!
//! The first loop also accepts, and hands new connections out in turn. Events are edges: a
//! connection remembers that its socket has more to give or to take, and is ready until it has
//! not. Each ready connection gets a turn, then all the others, so that a client that sends
//! without end delays nobody for longer than a turn.
//!
//! Small commands of all connections run together at the end of the round, or when there are
//! enough of them, and then all replies are sent: the fewer commits, and the fewer times a client
//! is woken, the more is done. When replies must be durable they are sent at the end of the round,
//! after one flush of the device for all that it wrote.

mod accept;
mod group;
mod upkeep;
mod waits;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lsmkv::{Error, ErrorKind};
use mio::{Events, Poll, Token};

use super::arrivals::Arrivals;
use super::client::Fate;
use super::connection::{Connection, Turn, Turned};
use super::shared::Server;
use super::stream::Listener;
use super::together::Group;

/// The token of the mailbox.
pub(crate) const MAILBOX: Token = Token(usize::MAX);
/// Tokens below are listeners, those from here on connections.
const FIRST_CONNECTION: usize = 1 << 10;
/// Once so many connections have replies, they are sent before the others get their turns.
const ENOUGH_UNSENT: usize = 16;
/// How often idle clients and memory are looked at.
const TICK: Duration = Duration::from_millis(500);

/// See the module's documentation.
pub(crate) struct EventLoop {
    index: usize,
    server: Arc<Server>,
    poll: Poll,
    listeners: Vec<Listener>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Those that get a turn in the next round.
    ready: Vec<usize>,
    /// Those that get one in this.
    current: Vec<usize>,
    /// Those whose replies wait to be sent.
    unsent: Vec<usize>,
    /// When clients that wait have waited long enough.
    deadlines: BTreeSet<(Instant, usize, u64)>,
    /// What the connections of this round have sent.
    arrivals: Arrivals,
    /// Those commands in it that run together.
    group: Group,
    next_tick: Instant,
    next_home: usize,
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
        Ok(Self {
            index,
            server,
            poll,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            current: Vec::new(),
            unsent: Vec::new(),
            deadlines: BTreeSet::new(),
            arrivals: Arrivals::new(),
            group: Group::default(),
            next_tick: Instant::now() + TICK,
            next_home: 0,
        })
    }

    /// Serves until the server stops.
    pub(crate) fn run(&mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.server.is_stopping() {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    crate::server::log::line(&format!("cannot wait for events: {error}"));
                    return self.server.stop();
                }
            }
            events.iter().for_each(|event| self.take_event(event));
            self.end_waits();
            if Instant::now() >= self.next_tick {
                self.tick();
            }
            self.round();
        }
        self.farewell();
    }

    fn timeout(&self) -> Duration {
        if !self.ready.is_empty() {
            return Duration::ZERO;
        }
        let soonest = self.deadlines.first().map_or(self.next_tick, |(at, ..)| *at);
        soonest.min(self.next_tick).saturating_duration_since(Instant::now())
    }

    fn take_event(&mut self, event: &mio::event::Event) {
        match event.token() {
            MAILBOX => self.read_mail(),
            Token(listener) if listener < FIRST_CONNECTION => self.accept(listener),
            Token(token) => {
                let slot = token - FIRST_CONNECTION;
                let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut)
                else {
                    return;
                };
                connection.hung_up |= event.is_read_closed();
                connection.readable |= event.is_readable() || event.is_read_closed();
                connection.writable |= event.is_writable();
                self.make_ready(slot);
            }
        }
    }

    fn make_ready(&mut self, slot: usize) {
        if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut)
            && !connection.is_ready
        {
            connection.is_ready = true;
            self.ready.push(slot);
        }
    }

    /// Gives each ready connection a turn, and sends the replies.
    fn round(&mut self) {
        let now_ms = self.server.now_ms();
        let mut current = std::mem::take(&mut self.current);
        std::mem::swap(&mut current, &mut self.ready);
        for slot in current.drain(..) {
            if !self.arrivals.has_room() {
                self.run_group();
                self.arrivals.clear();
            }
            self.turn(slot, now_ms);
            let enough = self.group.is_empty() && self.unsent.len() >= ENOUGH_UNSENT;
            if enough && !self.server.settings.durable() {
                self.send_all(false);
            }
        }
        self.current = current;
        self.run_group();
        self.arrivals.clear();
        self.send_all(self.server.settings.durable());
    }

    fn turn(&mut self, slot: usize, now_ms: u64) {
        let server = Arc::clone(&self.server);
        let Some(counters) = server.counters.get(self.index) else { return };
        let mut goes_on = false;
        loop {
            let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_deref_mut)
            else {
                return;
            };
            connection.is_ready = false;
            let (arrivals, group) = (&mut self.arrivals, &mut self.group);
            let mut turn = Turn { server: &server, counters, arrivals, group, slot, now_ms };
            let run = || match goes_on {
                false => connection.turn(&mut turn),
                true => connection.go_on(&mut turn),
            };
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Turned::Over) => break,
                Ok(Turned::NeedsGroup) => {
                    goes_on = true;
                    self.run_group();
                }
                Err(_) => {
                    connection.client.fate = Fate::Dies;
                    self.panicked();
                    break;
                }
            }
        }
        self.note_turn(slot);
    }

    /// What a command had done that panicked is unknown: nothing more is written until a restart.
    fn panicked(&self) {
        self.server.db.degrade(&Error::new(ErrorKind::Panic, "a command panicked"));
    }

    /// Remembers what the turn left behind.
    fn note_turn(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_deref_mut) else {
            return;
        };
        if let Some(at) = connection.client.blocked.as_ref().and_then(|blocked| blocked.deadline) {
            self.deadlines.insert((at, slot, connection.client.id()));
        }
        if !connection.is_unsent {
            connection.is_unsent = true;
            self.unsent.push(slot);
        }
    }

    fn keep(&mut self, slot: usize, connection: Box<Connection>) {
        if let Some(place) = self.connections.get_mut(slot) {
            *place = Some(connection);
        }
    }

    /// Back to its place, or closed if it is over.
    fn put_back(&mut self, slot: usize, connection: Box<Connection>) {
        if connection.is_over() {
            return self.close(slot, connection);
        }
        let again = connection.wants_turn();
        self.keep(slot, connection);
        if again {
            self.make_ready(slot);
        }
    }

    /// Sends the replies there are, if they are to be durable once all that was written is: also by
    /// other threads, as who reads may have seen it. If that cannot be had, whoever wrote is told
    /// nothing: its connection is closed. Who only reads is served as long as the store is.
    fn send_all(&mut self, durable: bool) {
        let server = Arc::clone(&self.server);
        let Some(counters) = server.counters.get(self.index) else { return };
        let mut unsent = std::mem::take(&mut self.unsent);
        let wrote = |slot: &usize| {
            let connection = self.connections.get(*slot).and_then(Option::as_ref);
            connection.is_some_and(|connection| connection.client.wrote)
        };
        let others = server.counters.len() > 1 && !unsent.is_empty();
        let flushes = durable && (others || unsent.iter().any(wrote));
        let flushed = if flushes { server.db.sync() } else { Ok(()) };
        if let Err(error) = &flushed {
            server.note_failure(error);
        }
        let now_ms = server.now_ms();
        for slot in unsent.drain(..) {
            let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
                continue;
            };
            connection.is_unsent = false;
            let wrote = std::mem::take(&mut connection.client.wrote);
            if wrote && flushed.is_err() {
                connection.client.fate = Fate::Dies;
            } else {
                connection.send(counters, now_ms);
            }
            self.put_back(slot, connection);
        }
        self.unsent = unsent;
    }
}
