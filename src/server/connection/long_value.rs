//! The value of a long SET, and of its older forms, on its way from the socket to the store.
//!
//! Once such a value is announced, the query buffer holds the request up to the value, and the bytes of
//! the value go to the store as they come. Then the request goes on as if its value were empty, and the
//! command runs when it is complete, in its place among the others of the client. A client that leaves
//! before that leaves no trace.

use bytes::Bytes;
use smallvec::SmallVec;

use super::{Connection, Turn};
use crate::commands::LongValue;
use crate::server::client::Client;
use crate::server::input_buffer::InputChunk;
use crate::server::shared::Server;

/// A longer value goes to the store as it arrives. A shorter one takes no more memory than a reply may
/// take before its client reads.
const LONG_VALUE_BYTES: usize = 1 << 20;
/// If more of the value is there already, the request comes as a whole: a turn does not write much.
const MOST_RECEIVED: usize = 128 << 10;

/// A value of which a part has arrived.
pub(super) struct ArrivingValue {
    value: LongValue,
    /// The number of bytes to come.
    missing: usize,
}

impl ArrivingValue {
    /// The memory that it holds.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.value.memory()
    }

    /// Hands the value to the client, whose command runs next. Those who monitor see a whole value: then
    /// it comes back with its place among the words.
    pub(super) fn hand_over(self, server: &Server, client: &mut Client) -> Option<(usize, Bytes)> {
        let Self { mut value, .. } = self;
        if server.monitors.any()
            && let Some(whole) = value.take_whole(&client.session)
        {
            return Some((value.place(), whole));
        }
        client.long_value = Some(value);
        None
    }
}

impl Connection {
    /// Whether the request that is received goes on with a long argument.
    pub(super) fn is_long_value_next(&self) -> bool {
        let announced = self.reader.announced();
        announced.is_some_and(|next| next.len > LONG_VALUE_BYTES) && self.arriving.is_none()
    }

    /// Begins to write the argument that comes next, if the command allows that. The request begins at
    /// `at`.
    pub(super) fn begin_long_value(
        &mut self,
        chunk: InputChunk,
        at: usize,
        turn: &Turn<'_>,
    ) -> bool {
        let client = &self.client;
        let Some(next) = self.reader.announced() else { return false };
        let is_ordinary = client.authenticated && !client.listens && !client.monitors;
        let limit = turn.server.settings.input_limit();
        if !is_ordinary || turn.server.monitors.any() || next.start + next.len > limit {
            return false;
        }
        let request = turn.input.bytes(chunk).get(at..).unwrap_or_default();
        let Some((head, begun)) = request.split_at_checked(next.start) else { return false };
        if begun.len() > MOST_RECEIVED {
            return false;
        }
        let words: SmallVec<[&[u8]; 4]> = self.reader.arguments(head).collect();
        let value = client.session.begin_long_value(&words, next.count, next.len);
        drop(words);
        let Some(value) = value else { return false };
        (self.query_buffer, self.parsing) = (head.to_vec(), None);
        self.arriving = Some(Box::new(ArrivingValue { value, missing: next.len }));
        self.take_part(begun);
        true
    }

    /// Takes the next bytes of the request: those of the value to the store, what follows to the query
    /// buffer.
    pub(super) fn take_part(&mut self, bytes: &[u8]) {
        let missing = self.arriving.as_ref().map_or(0, |arriving| arriving.missing);
        let (part, rest) = bytes.split_at(missing.min(bytes.len()));
        if let Some(arriving) = self.arriving.as_mut().filter(|_| !part.is_empty()) {
            arriving.value.push(part);
            arriving.missing -= part.len();
            if arriving.missing == 0 {
                self.reader.leave_out();
            }
        }
        self.query_buffer.extend_from_slice(rest);
        self.has_unparsed = part.len() == missing;
    }
}
