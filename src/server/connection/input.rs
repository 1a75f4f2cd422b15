//! What a connection receives: the requests in it run, or join the batch of the round.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use super::{Connection, Turn, TurnOutcome};
use crate::resp::{Limits, Parsed};
use crate::server::client::CloseState;
use crate::server::command_batch::{Admission, BatchCandidate};
use crate::server::command_table::CommandEntry;
use crate::server::dispatch::dispatch;
use crate::server::input_buffer::{InputBuffer, InputChunk, SHARED_CHUNK_BYTES};
use crate::server::shared::Server;

/// The time of one command that makes a turn long.
const LONG_COMMAND_NANOS: u64 = 100_000;
/// The maximum number of arguments in a request.
const MAX_ARGUMENTS: usize = 1 << 20;

impl Connection {
    /// Runs the rest of the current chunk, or else the query buffer.
    pub(super) fn run_received(&mut self, turn: &mut Turn<'_>) -> TurnOutcome {
        if self.parsing.is_none() && self.has_unparsed && self.may_run() {
            let bytes = std::mem::take(&mut self.query_buffer);
            self.parsing = Some((turn.input.push_owned(bytes), 0));
        }
        match self.parsing {
            Some((chunk, at)) => self.run(chunk, at, turn),
            None => TurnOutcome::Done,
        }
    }

    pub(super) fn receive(&mut self, turn: &mut Turn<'_>) {
        // What is left of a small request may stand before more of them; of a large one, more is read.
        let is_small = self.query_buffer.len() < SHARED_CHUNK_BYTES && self.arriving.is_none();
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

    /// Handles the end of the stream. The peer may have shut down only its sending side and still
    /// read its replies.
    fn handle_eof(&mut self) {
        if self.batched > 0 {
            // The end is read again once the batch has run.
            (self.readable, self.peer_closed) = (true, true);
        } else if (self.has_output() || self.client.long_reply.is_some())
            && self.client.blocked.is_none()
        {
            self.client.close_state = CloseState::AfterReplies;
        } else {
            self.client.close_state = CloseState::Now;
        }
    }

    /// Parses a chunk in place if nothing precedes it, else appends it to the query buffer. What belongs
    /// to a long value goes there.
    fn take_chunk(&mut self, chunk: InputChunk, input: &InputBuffer) {
        if self.arriving.is_some() {
            self.take_part(input.bytes(chunk));
        } else if self.query_buffer.is_empty() && self.may_run() {
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
                Ok(Parsed::Incomplete) => return self.await_rest(chunk, at, turn),
                Ok(Parsed::Request(len)) => {
                    self.had_request = true;
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
                    self.arriving = None;
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
            Some(arguments) if self.arriving.is_none() => {
                let slot = turn.slot;
                let request = request.clone();
                let candidate = BatchCandidate { slot, chunk, request, bytes, arguments };
                turn.batch.add(turn.server, &self.client, candidate)
            }
            _ => Admission::Alone,
        };
        match admission {
            Admission::Added => self.batched += 1,
            Admission::NextBatch => return false,
            Admission::Alone if self.batched > 0 => return false,
            Admission::Alone => self.run_alone(chunk, request, turn),
        }
        true
    }

    /// Runs a request at once.
    fn run_alone(&mut self, chunk: InputChunk, request: Range<usize>, turn: &Turn<'_>) {
        let bytes = turn.input.bytes(chunk).get(request).unwrap_or_default();
        let whole = match self.arriving.take() {
            Some(arriving) => arriving.hand_over(turn.server, &mut self.client),
            None => None,
        };
        let mut argv: SmallVec<[&[u8]; 16]> = self.reader.arguments(bytes).collect();
        if argv.is_empty() {
            return;
        }
        if let Some((place, value)) = &whole
            && let Some(word) = argv.get_mut(*place)
        {
            *word = value.as_ref();
        }
        let out = &mut self.output_buffer;
        let nanos = dispatch(turn.server, turn.counters, &mut self.client, &argv, out);
        self.client.long_value = None;
        // A subscriber that counts as slow is served after those who publish, and misses what was
        // sent after its SUBSCRIBE.
        self.ran_slow_command |= nanos > LONG_COMMAND_NANOS
            && argv
                .first()
                .and_then(|name| turn.server.commands.find(name))
                .is_some_and(CommandEntry::can_take_long);
    }

    /// Keeps the beginning of a request until more of it arrives.
    fn await_rest(&mut self, chunk: InputChunk, at: usize, turn: &mut Turn<'_>) -> TurnOutcome {
        if self.is_long_value_next() {
            // Requests that go back to the query buffer stand before this one.
            if self.batched > 0 {
                self.parsing = Some((chunk, at));
                return TurnOutcome::NeedsBatch;
            }
            if self.begin_long_value(chunk, at, turn) {
                return TurnOutcome::Done;
            }
        }
        self.keep_rest(chunk, at, turn.input);
        self.has_unparsed = false;
        TurnOutcome::Done
    }

    /// Moves the rest of a chunk to the query buffer.
    pub(super) fn keep_rest(&mut self, chunk: InputChunk, at: usize, input: &mut InputBuffer) {
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
}
