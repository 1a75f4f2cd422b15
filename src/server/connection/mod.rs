//! A connection: parses requests, runs commands, sends replies.
//!
//! A turn reads at most one chunk from the socket and runs the commands in it, or adds them to the
//! batch that runs at the end of the round. The connection stops reading and running while its
//! client is blocked or has too many unread replies. Then its requests stay in the socket, and only
//! this client waits. An idle connection owns no buffers.
//!
//! A turn that received or replied many bytes, left some unread for the sake of others, or ran a slow
//! command, was long. The event loop gives fewer turns to the connections with long turns. A turn that
//! only received a part of a request counts as one, until a request is whole.
//!
//! The value of a long SET goes to the store as it arrives (`long_value`), and never into a buffer.
//!
//! Only the thread of its event loop uses a connection.

mod input;
mod long_value;
mod memory;
mod output;

use super::client::{Client, CloseState};
use super::command_batch::{BatchConnection, CommandBatch};
use super::counters::Counters;
use super::input_buffer::{InputBuffer, InputChunk};
use super::shared::Server;
use super::stream::Stream;
use crate::resp::RequestReader;
use long_value::ArrivingValue;

/// Command execution pauses while a client has this many bytes of unread replies.
const OUTPUT_PAUSE_BYTES: usize = 1 << 20;
/// The number of bytes that a blocked client may send ahead.
const BLOCKED_INPUT_BYTES: usize = 64 << 10;

/// A client with its socket and buffers.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Client,
    reader: RequestReader,
    /// Received bytes that are not parsed or not run yet, without the value that arrives.
    query_buffer: Vec<u8>,
    /// The long value of the request that is received.
    arriving: Option<Box<ArrivingValue>>,
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
    /// Whether the current turn came upon a whole request.
    had_request: bool,
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
            arriving: None,
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
            had_request: false,
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
        (self.received, self.had_request) = (0, false);
        (self.ran_slow_command, self.was_cut_short) = (false, false);
        self.receive_messages(turn.server);
        self.append_long_reply(turn.server);
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

    /// Whether another turn would find something to do.
    pub(crate) fn wants_turn(&self) -> bool {
        let has_mail = self.client.listens && self.client.session.has_messages();
        let has_room = self.unsent_bytes() < OUTPUT_PAUSE_BYTES;
        (self.has_unparsed && self.may_run())
            || (self.client.long_reply.is_some() && has_room)
            || (self.readable && self.may_read())
            || (has_mail && has_room)
    }

    /// Whether one of the last turns was long.
    fn had_long_turn(&self) -> bool {
        self.short_turns_due > 0
    }

    /// Whether others go first: it is new, one of its last turns was long, it sends parts of requests,
    /// or its peer is gone.
    pub(crate) fn waits_in_line(&self) -> bool {
        self.had_long_turn() || self.peer_closed
    }

    /// Whether the connection ends, and nothing of it waits in the batch.
    pub(crate) fn is_ending(&self) -> bool {
        self.client.close_state != CloseState::Open && self.batched == 0
    }

    /// Whether the connection is to be closed now.
    pub(crate) fn should_close(&self) -> bool {
        match self.client.close_state {
            CloseState::Open => false,
            CloseState::AfterReplies => !self.has_output() && self.client.long_reply.is_none(),
            CloseState::Now => true,
        }
    }

    fn may_run(&self) -> bool {
        self.client.blocked.is_none()
            && self.client.long_reply.is_none()
            && self.client.close_state == CloseState::Open
            && self.unsent_bytes() < OUTPUT_PAUSE_BYTES
    }

    fn may_read(&self) -> bool {
        let sends_ahead =
            self.client.blocked.is_some() && self.query_buffer.len() < BLOCKED_INPUT_BYTES;
        self.may_run() || (sends_ahead && self.client.close_state == CloseState::Open)
    }

    /// Whether the client has had this long for the handshake of TLS, and has not finished it.
    pub(crate) fn is_handshake_overdue(&self, now_ms: u64, limit_ms: u64) -> bool {
        self.stream.is_handshaking() && now_ms.saturating_sub(self.client.info.since_ms) > limit_ms
    }
}

impl BatchConnection for Connection {
    fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    fn output_room(&self) -> usize {
        if self.client.long_reply.is_some() {
            return 0;
        }
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
