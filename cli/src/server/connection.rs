//! A connection: bytes in, commands run, bytes out.
//!
//! A turn reads what has arrived, at most one buffer full, and runs the commands in it, or lets
//! them join those of other connections that run at the end of the round. While a client waits
//! for something, or does not take the replies it has, nothing more of it runs: what it has sent
//! stays in the socket, and it alone waits. An idle connection owns no buffers.
//!
//! Used by the thread of its event loop only.

use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use super::arrivals::{Arrivals, Chunk};
use super::client::{Client, Fate};
use super::counters::Counters;
use super::execute::execute;
use super::shared::Server;
use super::stream::Stream;
use super::together::{Candidate, Group, Joining};
use crate::resp::{Limits, Parsed, RequestReader, Writer};

/// Replies that may wait to be taken before no more commands run.
const ENOUGH_OUTPUT: usize = 1 << 20;
/// Bytes that a client may send ahead while it waits for something.
const ENOUGH_AHEAD: usize = 64 << 10;
/// Larger buffers are given back when they are empty.
const KEPT_BUFFER: usize = 64 << 10;
/// Most arguments of a request.
const MOST_ARGUMENTS: usize = 1 << 20;

/// See the module's documentation.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Client,
    reader: RequestReader,
    /// What has arrived and is not understood or not run yet.
    input: Vec<u8>,
    /// Replies, of which `sent` bytes are gone.
    output: Vec<u8>,
    sent: usize,
    /// Whether the socket may have more.
    pub(crate) readable: bool,
    /// Whether the other side has sent its last: the end is still to be read.
    pub(crate) hung_up: bool,
    /// Whether the socket may take more.
    pub(crate) writable: bool,
    /// Whether `input` may begin with a whole request.
    stalled: bool,
    /// What it is reading requests from, and how far it has come.
    place: Option<(Chunk, usize)>,
    /// How many of its commands wait in the group.
    joined: usize,
    /// Whether it is among those that get a turn next.
    pub(crate) is_ready: bool,
    /// Whether it is among those whose replies wait for the device.
    pub(crate) is_unsent: bool,
}

/// What a turn needs beside the connection.
pub(crate) struct Turn<'a> {
    pub(crate) server: &'a Server,
    pub(crate) counters: &'a Counters,
    pub(crate) arrivals: &'a mut Arrivals,
    pub(crate) group: &'a mut Group,
    /// The place of the connection.
    pub(crate) slot: usize,
    pub(crate) now_ms: u64,
}

/// How a turn has come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// `wants_turn` says whether there may be more.
    Over,
    /// It goes on once the group has run.
    NeedsGroup,
}

impl Connection {
    pub(crate) fn new(stream: Stream, client: Client) -> Self {
        Self {
            stream,
            client,
            reader: RequestReader::default(),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            readable: true,
            hung_up: false,
            writable: true,
            stalled: false,
            place: None,
            joined: 0,
            is_ready: false,
            is_unsent: false,
        }
    }

    /// Reads once and runs what there is. If that needs the group to have run, `go_on` follows.
    pub(crate) fn turn(&mut self, turn: &mut Turn<'_>) -> Turned {
        let turned = self.run_rest(turn);
        if turned == Turned::NeedsGroup || !self.readable || !self.may_read() {
            return self.end_turn(turned, turn.server);
        }
        self.receive(turn);
        self.go_on(turn)
    }

    /// Runs what is left of what was read. More is not read before others had their turns, and
    /// before the replies so far were sent: the other side may have gone, and wait for them.
    pub(crate) fn go_on(&mut self, turn: &mut Turn<'_>) -> Turned {
        let turned = self.run_rest(turn);
        self.end_turn(turned, turn.server)
    }

    fn end_turn(&mut self, turned: Turned, server: &Server) -> Turned {
        if turned == Turned::Over {
            self.check_limits(server);
        }
        turned
    }

    /// Runs what is there of a chunk, or else what was kept.
    fn run_rest(&mut self, turn: &mut Turn<'_>) -> Turned {
        if self.place.is_none() && self.stalled && self.may_run() {
            self.place = Some((turn.arrivals.keep(std::mem::take(&mut self.input)), 0));
        }
        match self.place {
            Some((chunk, at)) => self.run(chunk, at, turn),
            None => Turned::Over,
        }
    }

    /// Whether another turn would find something to do.
    pub(crate) fn wants_turn(&self) -> bool {
        (self.stalled && self.may_run()) || (self.readable && self.may_read())
    }

    /// Whether there are replies to send.
    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether it is to be closed now.
    pub(crate) fn is_over(&self) -> bool {
        match self.client.fate {
            Fate::Lives => false,
            Fate::Closes => !self.has_output(),
            Fate::Dies => true,
        }
    }

    /// Writes a reply that no command of this turn gave.
    pub(crate) fn reply(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let before = self.output.len();
        write(&mut Writer::new(&mut self.output, self.client.protocol));
        if self.client.swallows_reply() {
            self.output.truncate(before);
        }
    }

    fn may_run(&self) -> bool {
        self.client.blocked.is_none()
            && self.client.fate == Fate::Lives
            && self.output.len() - self.sent < ENOUGH_OUTPUT
    }

    fn may_read(&self) -> bool {
        let waits = self.client.blocked.is_some() && self.input.len() < ENOUGH_AHEAD;
        self.may_run() || (waits && self.client.fate == Fate::Lives)
    }

    fn receive(&mut self, turn: &mut Turn<'_>) {
        match turn.arrivals.read(&mut self.stream) {
            Ok((chunk, full)) => {
                let len = turn.arrivals.bytes(chunk).len();
                if len == 0 {
                    return self.meet_end();
                }
                // A socket that gives less than it could is empty: its next bytes are an event.
                self.readable = self.hung_up || full;
                turn.counters.input_bytes.add(len as u64);
                self.client.info.active_ms.store(turn.now_ms, Relaxed);
                self.accept(chunk, turn.arrivals);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.client.fate = Fate::Dies,
        }
    }

    /// The other side has sent its last. It may have closed its side only, and still take what it
    /// has asked for.
    fn meet_end(&mut self) {
        if self.joined > 0 {
            // The end is read again, once all that came before it has run.
            (self.readable, self.hung_up) = (true, true);
        } else if self.has_output() && self.client.blocked.is_none() {
            self.client.fate = Fate::Closes;
        } else {
            self.client.fate = Fate::Dies;
        }
    }

    /// Takes what was read.
    fn accept(&mut self, chunk: Chunk, arrivals: &Arrivals) {
        if self.input.is_empty() && self.may_run() {
            self.place = Some((chunk, 0));
        } else {
            self.input.extend_from_slice(arrivals.bytes(chunk));
            self.stalled = true;
        }
    }

    /// Runs the requests in a chunk from `at` on, or lets them join the group.
    fn run(&mut self, chunk: Chunk, at: usize, turn: &mut Turn<'_>) -> Turned {
        let mut at = at;
        while self.may_run() {
            // Anew each time: the last command may have been AUTH.
            let limits = self.limits(turn.server);
            let rest = turn.arrivals.bytes(chunk).get(at..).unwrap_or_default();
            match self.reader.read(rest, &limits) {
                Ok(Parsed::Incomplete) => {
                    self.stop_reading(chunk, at, turn.arrivals);
                    self.stalled = false;
                    return Turned::Over;
                }
                Ok(Parsed::Request(len)) => {
                    let request = at..at + len;
                    if !self.run_or_join(chunk, request, turn) {
                        self.place = Some((chunk, at));
                        return Turned::NeedsGroup;
                    }
                    at += len;
                }
                Err(_) if self.joined > 0 => {
                    self.place = Some((chunk, at));
                    return Turned::NeedsGroup;
                }
                Err(error) => {
                    turn.counters.protocol_errors.add(1);
                    self.reply(|out| out.error(&format!("ERR {error}")));
                    self.client.fate = Fate::Closes;
                    at += rest.len();
                }
            }
        }
        self.stop_reading(chunk, at, turn.arrivals);
        Turned::Over
    }

    /// `false` if those of its commands that have joined must run first.
    fn run_or_join(&mut self, chunk: Chunk, request: Range<usize>, turn: &mut Turn<'_>) -> bool {
        let bytes = turn.arrivals.bytes(chunk).get(request.clone()).unwrap_or_default();
        let joining = match self.reader.places() {
            Some(arguments) => {
                let slot = turn.slot;
                let candidate = Candidate { slot, chunk, request, bytes, arguments };
                turn.group.join(turn.server, &self.client, candidate)
            }
            None => Joining::Alone,
        };
        match joining {
            Joining::Joined => self.joined += 1,
            Joining::NotNow => return false,
            Joining::Alone if self.joined > 0 => return false,
            Joining::Alone => {
                let argv: SmallVec<[&[u8]; 16]> = self.reader.arguments(bytes).collect();
                if !argv.is_empty() {
                    let (server, counters) = (turn.server, turn.counters);
                    execute(server, counters, &mut self.client, &argv, &mut self.output);
                }
            }
        }
        true
    }

    /// Keeps the rest of a chunk for later.
    fn stop_reading(&mut self, chunk: Chunk, at: usize, arrivals: &mut Arrivals) {
        let rest = arrivals.bytes(chunk).len().saturating_sub(at);
        self.place = None;
        self.stalled = rest > 0;
        if rest > 0 {
            self.input = arrivals.give_back(chunk, at, self.joined > 0);
        }
    }

    /// A command of its that had joined has run: where its reply goes.
    pub(crate) fn joined_ran(&mut self) -> (&mut Client, &mut Vec<u8>) {
        self.joined = self.joined.saturating_sub(1);
        (&mut self.client, &mut self.output)
    }

    /// Bytes of replies it may be given before it has to take some.
    pub(crate) fn room(&self) -> usize {
        ENOUGH_OUTPUT.saturating_sub(self.output.len() - self.sent)
    }

    /// These requests had joined and have not run, for want of room: they are read again.
    pub(crate) fn take_back(&mut self, requests: Vec<u8>, arrivals: &mut Arrivals) {
        if let Some((chunk, at)) = self.place {
            self.stop_reading(chunk, at, arrivals);
        }
        let mut requests = requests;
        requests.append(&mut self.input);
        (self.input, self.joined) = (requests, 0);
        self.reader = RequestReader::default();
        self.stalled = true;
    }

    fn limits(&self, server: &Server) -> Limits {
        Limits {
            bulk: server.settings.bulk_limit(),
            arguments: MOST_ARGUMENTS,
            stranger: !self.client.authenticated,
        }
    }

    /// Tells others how much memory it takes.
    fn note_memory(&self) {
        let input = self.input.capacity() + self.reader.memory() + self.client.held_bytes();
        self.client.info.input_bytes.store(input, Relaxed);
        self.client.info.output_bytes.store(self.output.capacity(), Relaxed);
    }

    fn check_limits(&mut self, server: &Server) {
        self.note_memory();
        let waiting = self.output.len() - self.sent;
        if self.input.len() > server.settings.input_limit()
            || waiting > server.settings.output_limit()
        {
            let (id, address) = (self.client.id(), &self.client.info.address);
            super::log::line(&format!(
                "client {id} from {address} exceeds its buffers ({} bytes in, {waiting} bytes out)",
                self.input.len()
            ));
            self.client.fate = Fate::Dies;
        }
    }

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self, counters: &Counters, now_ms: u64) {
        if self.client.fate == Fate::Dies {
            return;
        }
        if self.send_some(counters) {
            self.client.info.active_ms.store(now_ms, Relaxed);
        }
        // Replies of commands that had joined others have come after the turn.
        self.note_memory();
    }

    /// Whether the other side took anything.
    fn send_some(&mut self, counters: &Counters) -> bool {
        let mut took = false;
        while self.writable && self.has_output() {
            match self.stream.write(self.output.get(self.sent..).unwrap_or_default()) {
                Ok(0) => self.client.fate = Fate::Dies,
                Ok(len) => {
                    (self.sent, took) = (self.sent + len, true);
                    counters.output_bytes.add(len as u64);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.client.fate = Fate::Dies,
            }
            self.forget_sent();
            return took;
        }
        if !self.has_output() {
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > KEPT_BUFFER {
                self.output = Vec::new();
            }
        }
        took
    }

    /// Gives back what is sent of a long reply once commands may run again: the next one would
    /// stand behind it.
    fn forget_sent(&mut self) {
        if self.sent >= ENOUGH_OUTPUT && self.output.len() - self.sent < ENOUGH_OUTPUT {
            self.output.drain(..self.sent);
            self.output.shrink_to(2 * ENOUGH_OUTPUT);
            self.sent = 0;
        }
    }

    /// Gives back the buffers of a connection that has been idle for a while.
    pub(crate) fn rest(&mut self) {
        if self.input.is_empty() && !self.has_output() {
            (self.input, self.output, self.sent) = (Vec::new(), Vec::new(), 0);
            self.reader = RequestReader::default();
            self.note_memory();
        }
    }
}
