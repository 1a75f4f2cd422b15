//! A connection: parses requests, runs commands, sends replies.
//!
//! A turn reads at most one chunk from the socket and runs the commands in it, or adds them to the
//! batch that runs at the end of the round. The connection stops reading and running while its
//! client is blocked or has too many unread replies. Then its requests stay in the socket, and only
//! this client waits. An idle connection owns no buffers.
//!
//! A turn that received or replied many bytes, left some unread for the sake of others, or ran a slow
//! command, was long. The event loop gives fewer turns to the connections with long turns.
//!
//! Only the thread of its event loop uses a connection.

use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use super::client::{Client, CloseState};
use super::command_batch::{Admission, BatchCandidate, BatchConnection, CommandBatch};
use super::command_table::CommandEntry;
use super::counters::Counters;
use super::dispatch::dispatch;
use super::input_buffer::{InputBuffer, InputChunk, SHARED_CHUNK_BYTES};
use super::shared::Server;
use super::stream::Stream;
use super::subscribing::write_messages;
use crate::resp::{Limits, Parsed, RequestReader, Writer};

/// The bytes received and replied that make a turn long.
const LONG_TURN_BYTES: usize = 8 << 10;
/// The time of one command that makes a turn long.
const LONG_COMMAND_NANOS: u64 = 100_000;
/// The number of short turns after which a long one is forgotten. If one were enough, a client could
/// send a PING before each request for a large value.
const LONG_TURN_MEMORY: u8 = 16;
/// Command execution pauses while a client has this many bytes of unread replies.
const OUTPUT_PAUSE_BYTES: usize = 1 << 20;
/// The number of bytes that a blocked client may send ahead.
const BLOCKED_INPUT_BYTES: usize = 64 << 10;
/// An empty buffer with more capacity is freed.
const RETAINED_BUFFER_BYTES: usize = 64 << 10;
/// The maximum number of arguments in a request.
const MAX_ARGUMENTS: usize = 1 << 20;

/// A client with its socket and buffers.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Client,
    reader: RequestReader,
    /// Received bytes that are not parsed or not run yet.
    query_buffer: Vec<u8>,
    /// Replies; the first `sent` bytes are already sent.
    output_buffer: Vec<u8>,
    sent: usize,
    /// Whether the socket may have more bytes.
    pub(crate) readable: bool,
    /// Whether the peer has shut down its side; the end of the stream is still to be read.
    pub(crate) peer_closed: bool,
    /// Whether the socket may accept more bytes.
    pub(crate) writable: bool,
    /// Whether `query_buffer` may start with a whole request.
    has_unparsed: bool,
    /// The chunk that the current turn parses, and the offset reached.
    parsing: Option<(InputChunk, usize)>,
    /// The number of this connection's commands in the batch.
    batched: usize,
    /// The bytes that the current turn has received.
    received: usize,
    /// The number of short turns until the last long one is forgotten.
    short_turns_due: u8,
    /// Whether the current turn ran a slow command.
    ran_slow_command: bool,
    /// Whether the current turn left bytes in the socket for the sake of others.
    was_cut_short: bool,
    /// The bytes by which the published memory use grew since the event loop last asked.
    memory_growth: usize,
    /// Whether the connection is in the event loop's ready list.
    pub(crate) is_ready: bool,
    /// Whether the connection is in the event loop's list of pending replies.
    pub(crate) has_pending_reply: bool,
}

/// What a turn needs beside the connection.
pub(crate) struct Turn<'a> {
    pub(crate) server: &'a Server,
    pub(crate) counters: &'a Counters,
    pub(crate) input: &'a mut InputBuffer,
    pub(crate) batch: &'a mut CommandBatch,
    /// The connection's slot in its event loop.
    pub(crate) slot: usize,
    /// Whether other connections with short turns are active.
    pub(crate) is_shared: bool,
    /// Whether many connections have a turn in this round.
    pub(crate) is_crowded: bool,
    pub(crate) now_ms: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    /// The turn is over; `wants_turn` tells whether there is more to do.
    Done,
    /// The turn resumes after the batch has run.
    NeedsBatch,
}

impl Connection {
    pub(crate) fn new(stream: Stream, client: Client) -> Self {
        Self {
            stream,
            client,
            reader: RequestReader::default(),
            query_buffer: Vec::new(),
            output_buffer: Vec::new(),
            sent: 0,
            readable: true,
            peer_closed: false,
            writable: true,
            has_unparsed: false,
            parsing: None,
            batched: 0,
            received: 0,
            // Nobody knows yet what it will send: many new ones at once must not delay the others.
            short_turns_due: 1,
            ran_slow_command: false,
            was_cut_short: false,
            memory_growth: 0,
            is_ready: false,
            has_pending_reply: false,
        }
    }

    /// Reads once and runs the requests. After `NeedsBatch` the caller runs the batch and calls
    /// `resume`.
    pub(crate) fn turn(&mut self, turn: &mut Turn<'_>) -> TurnOutcome {
        (self.received, self.ran_slow_command, self.was_cut_short) = (0, false, false);
        self.receive_messages(turn.server);
        let outcome = self.run_received(turn);
        if outcome == TurnOutcome::NeedsBatch || !self.readable || !self.may_read() {
            return self.end_turn(outcome, turn.server);
        }
        self.receive(turn);
        self.resume(turn)
    }

    /// Runs the rest of the received requests. It reads nothing: other connections get their turn
    /// first, and the replies so far are sent, because the peer may have shut down and wait for
    /// them.
    pub(crate) fn resume(&mut self, turn: &mut Turn<'_>) -> TurnOutcome {
        let outcome = self.run_received(turn);
        self.end_turn(outcome, turn.server)
    }

    fn end_turn(&mut self, outcome: TurnOutcome, server: &Server) -> TurnOutcome {
        if outcome == TurnOutcome::Done {
            self.check_limits(server);
        }
        outcome
    }

    /// Runs the rest of the current chunk, or else the query buffer.
    fn run_received(&mut self, turn: &mut Turn<'_>) -> TurnOutcome {
        if self.parsing.is_none() && self.has_unparsed && self.may_run() {
            let bytes = std::mem::take(&mut self.query_buffer);
            self.parsing = Some((turn.input.push_owned(bytes), 0));
        }
        match self.parsing {
            Some((chunk, at)) => self.run(chunk, at, turn),
            None => TurnOutcome::Done,
        }
    }

    /// Whether another turn would find something to do.
    pub(crate) fn wants_turn(&self) -> bool {
        let has_mail = self.client.listens && self.client.session.has_messages();
        (self.has_unparsed && self.may_run())
            || (self.readable && self.may_read())
            || (has_mail && self.unsent_bytes() < OUTPUT_PAUSE_BYTES)
    }

    /// Whether one of the last turns was long.
    pub(crate) fn had_long_turn(&self) -> bool {
        self.short_turns_due > 0
    }

    /// Whether there are replies to send, or what TLS has to say.
    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output_buffer.len() || self.stream.has_unsent()
    }

    fn unsent_bytes(&self) -> usize {
        self.output_buffer.len() - self.sent
    }

    /// Whether the connection is to be closed now.
    pub(crate) fn should_close(&self) -> bool {
        match self.client.close_state {
            CloseState::Open => false,
            CloseState::AfterReplies => !self.has_output(),
            CloseState::Now => true,
        }
    }

    /// Writes a reply that does not come from a command of this turn.
    pub(crate) fn reply(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let before = self.output_buffer.len();
        write(&mut Writer::new(&mut self.output_buffer, self.client.protocol));
        if self.client.suppresses_reply() {
            self.output_buffer.truncate(before);
        }
    }

    /// Appends a line for a client that monitors. One that reads too slowly is closed.
    pub(crate) fn append_line(&mut self, line: &[u8], server: &Server) {
        if !self.client.monitors {
            return;
        }
        self.output_buffer.extend_from_slice(line);
        if self.unsent_bytes() > server.settings.monitor_limit() {
            let (id, address) = (self.client.id(), &self.client.info.address);
            server
                .log
                .line(&format!("client {id} from {address} monitors too slowly and is closed"));
            (self.output_buffer, self.sent) = (Vec::new(), 0);
            self.client.close_state = CloseState::Now;
        }
    }

    /// Moves messages of channels to the output buffer, as far as there is room.
    pub(crate) fn receive_messages(&mut self, server: &Server) {
        if self.client.listens && self.batched == 0 {
            let most = self.sent.saturating_add(OUTPUT_PAUSE_BYTES);
            write_messages(server, &mut self.client, &mut self.output_buffer, most);
        }
    }

    fn may_run(&self) -> bool {
        self.client.blocked.is_none()
            && self.client.close_state == CloseState::Open
            && self.unsent_bytes() < OUTPUT_PAUSE_BYTES
    }

    fn may_read(&self) -> bool {
        let sends_ahead =
            self.client.blocked.is_some() && self.query_buffer.len() < BLOCKED_INPUT_BYTES;
        self.may_run() || (sends_ahead && self.client.close_state == CloseState::Open)
    }

    fn receive(&mut self, turn: &mut Turn<'_>) {
        // What is left of a small request may stand before more of them; of a large one, more is read.
        let is_small = self.query_buffer.len() < SHARED_CHUNK_BYTES;
        let is_shared = is_small && (turn.is_crowded || (turn.is_shared && self.had_long_turn()));
        match turn.input.read(&mut self.stream, is_shared) {
            Ok((chunk, full)) => {
                let len = turn.input.bytes(chunk).len();
                if len == 0 {
                    return self.handle_eof();
                }
                // A short read has emptied the socket: its next bytes raise an event.
                self.readable = self.peer_closed || full || self.stream.may_have_more();
                turn.counters.input_bytes.add(len as u64);
                self.received = len;
                self.was_cut_short = is_shared && full;
                self.client.info.active_ms.store(turn.now_ms, Relaxed);
                self.take_chunk(chunk, turn.input);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => {
                if let Some((fault, why)) = self.stream.tls_fault() {
                    turn.server.note_tls_fault(&self.client.info.address, fault, &why);
                }
                self.client.close_state = CloseState::Now;
            }
        }
    }

    /// Whether the client has had this long for the handshake of TLS, and has not finished it.
    pub(crate) fn is_handshake_overdue(&self, now_ms: u64, limit_ms: u64) -> bool {
        self.stream.is_handshaking() && now_ms.saturating_sub(self.client.info.since_ms) > limit_ms
    }

    /// Handles the end of the stream. The peer may have shut down only its sending side and still
    /// read its replies.
    fn handle_eof(&mut self) {
        if self.batched > 0 {
            // The end is read again once the batch has run.
            (self.readable, self.peer_closed) = (true, true);
        } else if self.has_output() && self.client.blocked.is_none() {
            self.client.close_state = CloseState::AfterReplies;
        } else {
            self.client.close_state = CloseState::Now;
        }
    }

    /// Parses a chunk in place if nothing precedes it, else appends it to the query buffer.
    fn take_chunk(&mut self, chunk: InputChunk, input: &InputBuffer) {
        if self.query_buffer.is_empty() && self.may_run() {
            self.parsing = Some((chunk, 0));
        } else {
            self.query_buffer.extend_from_slice(input.bytes(chunk));
            self.has_unparsed = true;
        }
    }

    /// Runs the requests in a chunk from `at` on, or adds them to the batch.
    fn run(&mut self, chunk: InputChunk, at: usize, turn: &mut Turn<'_>) -> TurnOutcome {
        let mut at = at;
        while self.may_run() {
            // For each request: the last command may have been AUTH.
            let limits = self.limits(turn.server);
            let rest = turn.input.bytes(chunk).get(at..).unwrap_or_default();
            match self.reader.read(rest, &limits) {
                Ok(Parsed::Incomplete) => {
                    self.keep_rest(chunk, at, turn.input);
                    self.has_unparsed = false;
                    return TurnOutcome::Done;
                }
                Ok(Parsed::Request(len)) => {
                    let request = at..at + len;
                    if !self.run_or_batch(chunk, request, turn) {
                        self.parsing = Some((chunk, at));
                        return TurnOutcome::NeedsBatch;
                    }
                    at += len;
                }
                Err(_) if self.batched > 0 => {
                    self.parsing = Some((chunk, at));
                    return TurnOutcome::NeedsBatch;
                }
                Err(error) => {
                    turn.counters.protocol_errors.add(1);
                    self.reply(|out| out.error(&format!("ERR {error}")));
                    self.client.close_state = CloseState::AfterReplies;
                    at += rest.len();
                }
            }
        }
        self.keep_rest(chunk, at, turn.input);
        TurnOutcome::Done
    }

    /// Runs a request or adds it to the batch; `false` if the batch must run first.
    fn run_or_batch(
        &mut self,
        chunk: InputChunk,
        request: Range<usize>,
        turn: &mut Turn<'_>,
    ) -> bool {
        let bytes = turn.input.bytes(chunk).get(request.clone()).unwrap_or_default();
        let admission = match self.reader.argument_ranges() {
            Some(arguments) => {
                let slot = turn.slot;
                let candidate = BatchCandidate { slot, chunk, request, bytes, arguments };
                turn.batch.add(turn.server, &self.client, candidate)
            }
            None => Admission::Alone,
        };
        match admission {
            Admission::Added => self.batched += 1,
            Admission::NextBatch => return false,
            Admission::Alone if self.batched > 0 => return false,
            Admission::Alone => {
                let argv: SmallVec<[&[u8]; 16]> = self.reader.arguments(bytes).collect();
                if !argv.is_empty() {
                    let (server, counters) = (turn.server, turn.counters);
                    let out = &mut self.output_buffer;
                    let nanos = dispatch(server, counters, &mut self.client, &argv, out);
                    // A subscriber that counts as slow is served after those who publish, and misses
                    // what was sent after its SUBSCRIBE.
                    self.ran_slow_command |= nanos > LONG_COMMAND_NANOS
                        && argv
                            .first()
                            .and_then(|name| server.commands.find(name))
                            .is_some_and(CommandEntry::can_take_long);
                }
            }
        }
        true
    }

    /// Moves the rest of a chunk to the query buffer.
    fn keep_rest(&mut self, chunk: InputChunk, at: usize, input: &mut InputBuffer) {
        let rest = input.bytes(chunk).len().saturating_sub(at);
        self.parsing = None;
        self.has_unparsed = rest > 0;
        if rest > 0 {
            self.query_buffer = input.take_rest(chunk, at, self.batched > 0);
        }
    }

    fn limits(&self, server: &Server) -> Limits {
        Limits {
            bulk: server.settings.bulk_limit(),
            arguments: MAX_ARGUMENTS,
            unauthenticated: !self.client.authenticated,
        }
    }

    /// Publishes the connection's memory use to the client list.
    fn publish_memory(&mut self) {
        let input = self.query_buffer.capacity()
            + self.reader.memory()
            + self.client.memory_bytes()
            + self.stream.memory_bytes();
        let grown = input + self.output_buffer.capacity();
        self.memory_growth += grown.saturating_sub(self.client.info.buffered());
        self.client.info.input_bytes.store(input, Relaxed);
        self.client.info.output_bytes.store(self.output_buffer.capacity(), Relaxed);
    }

    fn check_limits(&mut self, server: &Server) {
        // The requests that a large buffer was kept for may have had no reply.
        self.release_sent();
        self.publish_memory();
        let waiting = self.unsent_bytes();
        if self.query_buffer.len() > server.settings.input_limit()
            || waiting > server.settings.output_limit()
        {
            let (id, address) = (self.client.id(), &self.client.info.address);
            server.log.line(&format!(
                "client {id} from {address} exceeds its buffers ({} bytes in, {waiting} bytes out)",
                self.query_buffer.len()
            ));
            self.client.close_state = CloseState::Now;
        }
    }

    /// Sends as many reply bytes as the socket accepts.
    pub(crate) fn send(&mut self, counters: &Counters, now_ms: u64) {
        if self.client.close_state == CloseState::Now {
            return;
        }
        let bytes = self.received + self.unsent_bytes();
        let was_long = bytes > LONG_TURN_BYTES || self.ran_slow_command || self.was_cut_short;
        self.short_turns_due = match was_long {
            true => LONG_TURN_MEMORY,
            // Handshakes are costly, and clients that are there go first.
            false if self.stream.is_handshaking() => self.short_turns_due.max(1),
            false => self.short_turns_due.saturating_sub(1),
        };
        if self.send_some(counters) {
            self.client.info.active_ms.store(now_ms, Relaxed);
        }
        // Replies of batched commands were written after the turn.
        self.publish_memory();
    }

    /// Writes to the socket until it is full; returns whether it accepted anything.
    fn send_some(&mut self, counters: &Counters) -> bool {
        let mut progress = false;
        while self.writable && self.has_output() {
            let rest = self.output_buffer.get(self.sent..).unwrap_or_default();
            let outcome = match rest {
                [] => self.stream.flush().map(|()| 0),
                rest => self.stream.write(rest),
            };
            match outcome {
                Ok(0) if !rest.is_empty() => self.client.close_state = CloseState::Now,
                Ok(len) => {
                    (self.sent, progress) = (self.sent + len, true);
                    counters.output_bytes.add(len as u64);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.client.close_state = CloseState::Now,
            }
            self.drop_sent();
            return progress;
        }
        self.release_sent();
        progress
    }

    /// Removes the sent part of a long reply once commands may run again: the next reply would be
    /// appended behind it. The buffer is kept for the requests that wait: the allocator returns
    /// memory later, so a new buffer would stand beside the old one.
    fn drop_sent(&mut self) {
        if self.sent >= OUTPUT_PAUSE_BYTES && self.unsent_bytes() < OUTPUT_PAUSE_BYTES {
            self.output_buffer.drain(..self.sent);
            self.sent = 0;
            if !self.has_requests() {
                self.output_buffer.shrink_to(2 * OUTPUT_PAUSE_BYTES);
            }
        }
    }

    /// The bytes by which the connection's memory use grew since the last call.
    pub(crate) fn take_memory_growth(&mut self) -> usize {
        std::mem::take(&mut self.memory_growth)
    }

    /// Empties the buffer once everything is sent. A large one is freed, unless requests wait.
    fn release_sent(&mut self) {
        if self.unsent_bytes() > 0 {
            return;
        }
        self.sent = 0;
        self.output_buffer.clear();
        if self.output_buffer.capacity() > RETAINED_BUFFER_BYTES && !self.has_requests() {
            self.output_buffer = Vec::new();
        }
    }

    /// Whether received requests may still have to run.
    fn has_requests(&self) -> bool {
        self.has_unparsed || self.parsing.is_some()
    }

    /// Frees the buffers of an idle connection.
    pub(crate) fn release_buffers(&mut self) {
        if self.query_buffer.is_empty() && !self.has_output() {
            (self.query_buffer, self.output_buffer, self.sent) = (Vec::new(), Vec::new(), 0);
            self.reader = RequestReader::default();
            self.publish_memory();
        }
    }
}

impl BatchConnection for Connection {
    fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    fn output_room(&self) -> usize {
        OUTPUT_PAUSE_BYTES.saturating_sub(self.unsent_bytes())
    }

    fn finish_batched(&mut self) -> (&mut Client, &mut Vec<u8>) {
        self.batched = self.batched.saturating_sub(1);
        (&mut self.client, &mut self.output_buffer)
    }

    fn requeue(&mut self, requests: Vec<u8>, input: &mut InputBuffer) {
        if let Some((chunk, at)) = self.parsing {
            self.keep_rest(chunk, at, input);
        }
        let mut requests = requests;
        requests.append(&mut self.query_buffer);
        (self.query_buffer, self.batched) = (requests, 0);
        self.reader = RequestReader::default();
        self.has_unparsed = true;
    }
}
