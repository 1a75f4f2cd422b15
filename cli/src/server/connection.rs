//! A connection: bytes in, commands run, bytes out.
//!
//! A turn reads what has arrived, at most one buffer full, and runs the commands in it. While a
//! client waits for something, or does not take the replies it has, nothing more of it runs: what
//! it has sent stays in the socket, and it alone waits. An idle connection owns no buffers.
//!
//! Used by the thread of its event loop only.

use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use super::client::{Client, Fate};
use super::counters::Counters;
use super::execute::execute;
use super::shared::Server;
use super::stream::Stream;
use super::together::{Group, Ran};
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
    /// Whether it is among those that get a turn next.
    pub(crate) is_ready: bool,
    /// Whether it is among those whose replies wait for the device.
    pub(crate) is_unsent: bool,
}

/// What a turn needs beside the connection.
pub(crate) struct Turn<'a> {
    pub(crate) server: &'a Server,
    pub(crate) counters: &'a Counters,
    /// For what arrives; of no meaning between turns.
    pub(crate) buffer: &'a mut [u8],
    pub(crate) now_ms: u64,
}

/// How far the requests in what was received have been run.
#[derive(Default)]
struct Progress {
    /// Bytes of them.
    taken: usize,
    commands: u64,
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
            is_ready: false,
            is_unsent: false,
        }
    }

    /// Reads and runs what there is. Afterwards `wants_turn` says whether there may be more.
    pub(crate) fn turn(&mut self, turn: &mut Turn<'_>) {
        if self.stalled && self.may_run() {
            self.run_buffered(turn);
        }
        if self.readable && self.may_read() {
            self.receive(turn);
        }
        self.check_limits(turn.server);
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
        match self.stream.read(turn.buffer) {
            Ok(0) => self.client.fate = Fate::Dies,
            Ok(len) => {
                // A socket that gives less than it could is empty: its next bytes are an event.
                self.readable = self.hung_up || len == turn.buffer.len();
                turn.counters.input_bytes.add(len as u64);
                self.client.info.active_ms.store(turn.now_ms, Relaxed);
                self.accept(len, turn);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.client.fate = Fate::Dies,
        }
    }

    /// Takes the first `len` bytes of the buffer.
    fn accept(&mut self, len: usize, turn: &mut Turn<'_>) {
        let (server, counters) = (turn.server, turn.counters);
        let received = turn.buffer.get(..len).unwrap_or_default();
        if !self.input.is_empty() || !self.may_run() {
            self.input.extend_from_slice(received);
            self.stalled = true;
            if self.may_run() {
                self.run_buffered(turn);
            }
            return;
        }
        let taken = self.run(received, server, counters);
        self.input.extend_from_slice(received.get(taken..).unwrap_or_default());
    }

    fn run_buffered(&mut self, turn: &Turn<'_>) {
        let mut input = std::mem::take(&mut self.input);
        let taken = self.run(&input, turn.server, turn.counters);
        if taken == input.len() {
            input.clear();
            if input.capacity() > KEPT_BUFFER {
                return;
            }
        } else {
            input.drain(..taken);
        }
        self.input = input;
    }

    /// Runs the requests that these bytes begin with; how many bytes they were.
    fn run(&mut self, bytes: &[u8], server: &Server, counters: &Counters) -> usize {
        let mut done = Progress::default();
        let mut group = Group::default();
        loop {
            self.stalled = done.taken < bytes.len();
            if !self.may_run() {
                break;
            }
            let rest = bytes.get(done.taken..).unwrap_or_default();
            let limits = self.limits(server);
            match self.reader.read(rest, &limits) {
                Ok(Parsed::Incomplete) => {
                    self.stalled = false;
                    break;
                }
                Ok(Parsed::Request(len)) => {
                    let end = done.taken + len;
                    let argv = self.reader.slices(rest);
                    if !argv.is_some_and(|argv| group.join(server, &self.client, argv, end)) {
                        if !self.run_group(&mut group, server, counters, &mut done) {
                            break;
                        }
                        self.run_request(rest, server, counters);
                    }
                    done = Progress { taken: end, commands: done.commands + 1 };
                }
                Err(error) => {
                    if !self.run_group(&mut group, server, counters, &mut done) {
                        break;
                    }
                    counters.protocol_errors.add(1);
                    self.reply(|out| out.error(&format!("ERR {error}")));
                    self.client.fate = Fate::Closes;
                    done.taken = bytes.len();
                }
            }
        }
        self.run_group(&mut group, server, counters, &mut done);
        counters.commands.add(done.commands);
        done.taken
    }

    /// Runs what has joined. `false` if some are left, for when the client has taken its replies:
    /// `done` is then what has been done without them, and their bytes will be read again.
    fn run_group(
        &mut self,
        group: &mut Group<'_>,
        server: &Server,
        counters: &Counters,
        done: &mut Progress,
    ) -> bool {
        let room = ENOUGH_OUTPUT.saturating_sub(self.output.len() - self.sent);
        match group.run(server, counters, &mut self.client, &mut self.output, room) {
            Ran::All => true,
            Ran::Some { end, left } => {
                *done = Progress { taken: end, commands: done.commands.saturating_sub(left) };
                self.reader = RequestReader::default();
                self.stalled = true;
                false
            }
        }
    }

    /// Runs the request that was read from these bytes.
    fn run_request(&mut self, bytes: &[u8], server: &Server, counters: &Counters) {
        let argv: SmallVec<[&[u8]; 16]> = self.reader.arguments(bytes).collect();
        if !argv.is_empty() {
            execute(server, counters, &mut self.client, &argv, &mut self.output);
        }
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
        let queued = self.client.queue.as_ref().map_or(0, |queue| queue.bytes);
        let input = self.input.capacity() + self.reader.memory() + queued;
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
    pub(crate) fn send(&mut self, counters: &Counters) {
        if self.client.fate == Fate::Dies {
            return;
        }
        while self.writable && self.has_output() {
            match self.stream.write(self.output.get(self.sent..).unwrap_or_default()) {
                Ok(0) => self.client.fate = Fate::Dies,
                Ok(len) => {
                    self.sent += len;
                    counters.output_bytes.add(len as u64);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.client.fate = Fate::Dies,
            }
            return;
        }
        if !self.has_output() {
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > KEPT_BUFFER {
                self.output = Vec::new();
            }
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
