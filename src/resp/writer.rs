//! Writing of replies. The caller says what a reply is, and the protocol version decides its form:
//! in RESP2 a map is a flat array and a double is a string.

use crate::commands::{Head, Reply, ReplySink};

use super::growth::{Forecast, GrowthLimit, UNCHECKED_BYTES, target_capacity};

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The version that every client knows.
    Resp2,
    /// The version with maps, sets and doubles; clients select it by HELLO 3.
    Resp3,
}

impl Protocol {
    /// The version as HELLO names it.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// The maximum number of bytes around a text: type, length, line ends.
const FRAME: usize = 32;

/// A string of more bytes is long.
const LONG_BYTES: usize = 1 << 20;

/// Appends replies to a buffer. If a reply exceeds the limit, the writer discards what it has
/// written and is full: it ignores all further output.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
    /// Without a limit the buffer may grow to any size.
    limit: Option<&'a dyn GrowthLimit>,
    /// The offset of the first byte that this writer has written.
    begin: usize,
    full: bool,
    forecast: Forecast,
    /// Whether a long string that is the whole reply is left out, and whether one was.
    may_leave_out: bool,
    has_left_out: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        let begin = out.len();
        Self {
            out,
            protocol,
            limit: None,
            begin,
            full: false,
            forecast: Forecast::default(),
            may_leave_out: false,
            has_left_out: false,
        }
    }

    /// Leaves out a reply that is a string of more than a megabyte.
    pub(crate) fn leaving_out_long(self) -> Self {
        Self { may_leave_out: true, ..self }
    }

    /// Whether a reply was left out since its string is long.
    pub(crate) fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// A writer whose buffer grows only as `limit` allows.
    pub(crate) fn with_limit(
        out: &'a mut Vec<u8>,
        protocol: Protocol,
        limit: &'a dyn GrowthLimit,
    ) -> Self {
        Self { limit: Some(limit), ..Self::new(out, protocol) }
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Whether there is room for this many bytes, or can be made.
    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        let has = self.out.capacity() - self.out.len() >= bytes;
        !self.full && (has || self.grow(bytes))
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> bool {
        let (len, least) = (self.out.len(), self.out.len().saturating_add(bytes));
        let likely = target_capacity(len, bytes, self.forecast);
        let granted = match self.limit {
            Some(limit) if likely > UNCHECKED_BYTES => limit.grant(least, likely),
            _ => Some(likely),
        };
        let granted = granted.filter(|granted| {
            let exact = |size: usize| self.out.try_reserve_exact(size.saturating_sub(len)).is_ok();
            [*granted, least].into_iter().any(exact)
        });
        if granted.is_none() {
            self.discard();
        }
        granted.is_some()
    }

    fn discard(&mut self) {
        self.full = true;
        self.out.truncate(self.begin);
        self.out.shrink_to(UNCHECKED_BYTES);
    }

    fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    fn number(&mut self, kind: u8, number: impl itoa::Integer) {
        if self.has_room(FRAME) {
            self.put_number(kind, number);
        }
    }

    /// Writes a number. The caller has checked the room.
    #[inline]
    fn put_number(&mut self, kind: u8, number: impl itoa::Integer) {
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes a length, with a fast path for one or two digits. The caller has checked the room.
    #[inline]
    fn put_length(&mut self, kind: u8, len: usize) {
        let digit = |n: usize| b'0' + u8::try_from(n % 10).unwrap_or(0);
        match len {
            0..10 => self.out.extend_from_slice(&[kind, digit(len), b'\r', b'\n']),
            10..100 => {
                self.out.extend_from_slice(&[kind, digit(len / 10), digit(len), b'\r', b'\n']);
            }
            _ => self.put_number(kind, len),
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        if self.has_room(text.len() + FRAME) {
            self.out.push(kind);
            self.out.extend_from_slice(text);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn status(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    pub(crate) fn ok(&mut self) {
        self.status("OK");
    }

    /// Writes an error with its code. A line end would end the reply, so it becomes a blank.
    pub(crate) fn error(&mut self, text: &str) {
        let blank = |byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        self.line(b'-', &text.bytes().map(blank).collect::<Vec<u8>>());
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    #[inline]
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len() + FRAME) {
            self.put_length(b'$', bytes.len());
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
            self.forecast.count();
        }
    }

    /// Writes text for a person, which has a type of its own in RESP3.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.write_verbatim(*b"txt", text.as_bytes());
    }

    fn write_verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        if !self.is_resp3() {
            return self.bulk(text);
        }
        if self.has_room(text.len() + FRAME) {
            self.put_number(b'=', text.len() + 4);
            self.out.extend_from_slice(&format);
            self.out.push(b':');
            self.out.extend_from_slice(text);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn nil(&mut self) {
        self.write_nil(b"$-1\r\n");
    }

    pub(crate) fn nil_array(&mut self) {
        self.write_nil(b"*-1\r\n");
    }

    fn write_nil(&mut self, in_resp2: &[u8]) {
        if self.has_room(FRAME) {
            self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { in_resp2 });
            self.forecast.count();
        }
    }

    /// Writes the header of an array; its elements follow.
    pub(crate) fn array(&mut self, len: usize) {
        self.head(Head::Array, len);
    }

    /// Writes the header of a map; its keys and values follow in turn.
    pub(crate) fn map(&mut self, len: usize) {
        self.head(Head::Map, len);
    }

    /// Writes the header of a set; its elements follow.
    pub(crate) fn set(&mut self, len: usize) {
        self.head(Head::Set, len);
    }

    fn write_head(&mut self, head: Head, len: usize) {
        let twice = len.saturating_mul(2);
        match (head, self.is_resp3()) {
            (Head::Array | Head::Pairs, true) | (Head::Array | Head::Set | Head::Push, false) => {
                self.number(b'*', len);
            }
            (Head::Map | Head::Pairs, false) => self.number(b'*', twice),
            (Head::Map, true) => self.number(b'%', len),
            (Head::Set, true) => self.number(b'~', len),
            (Head::Push, true) => self.number(b'>', len),
        }
    }

    pub(crate) fn double(&mut self, number: f64) {
        let text = Reply::double_text(number);
        if !self.is_resp3() {
            return self.bulk(text.as_bytes());
        }
        self.line(b',', text.as_bytes());
        self.forecast.count();
    }

    /// Writes a reply of the library.
    pub(crate) fn reply(&mut self, reply: &Reply) {
        reply.write_to(self);
    }
}

impl ReplySink for Writer<'_> {
    fn nil(&mut self) {
        self.nil();
    }

    fn nil_array(&mut self) {
        self.nil_array();
    }

    fn status(&mut self, text: &'static str) {
        self.status(text);
    }

    fn text(&mut self, text: &[u8]) {
        let blank = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        self.line(b'+', &text.iter().map(blank).collect::<Vec<u8>>());
    }

    fn error(&mut self, text: &str) {
        self.error(text);
    }

    fn integer(&mut self, number: i64) {
        self.integer(number);
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.bulk(bytes);
    }

    fn leaves_out(&mut self, len: usize) -> bool {
        self.has_left_out |= self.may_leave_out && len > LONG_BYTES;
        self.has_left_out
    }

    fn begin_bulk(&mut self, len: usize) -> bool {
        if self.has_room(len.saturating_add(FRAME)) {
            self.put_length(b'$', len);
        }
        true
    }

    fn bulk_part(&mut self, bytes: &[u8]) {
        if !self.full {
            self.out.extend_from_slice(bytes);
        }
    }

    fn end_bulk(&mut self) {
        if !self.full {
            self.out.extend_from_slice(b"\r\n");
            self.forecast.count();
        }
    }

    fn double(&mut self, number: f64) {
        self.double(number);
    }

    fn boolean(&mut self, yes: bool) {
        match self.is_resp3() {
            true => self.line(b'#', if yes { b"t" } else { b"f" }),
            false => self.integer(i64::from(yes)),
        }
    }

    fn big_number(&mut self, digits: &[u8]) {
        match self.is_resp3() {
            true => self.line(b'(', digits),
            false => self.bulk(digits),
        }
    }

    fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        self.write_verbatim(format, text);
    }

    fn head(&mut self, head: Head, len: usize) {
        self.write_head(head, len);
        let each = if matches!(head, Head::Map | Head::Pairs) { 2 } else { 1 };
        self.forecast = Forecast::new(self.out.len(), len.saturating_mul(each));
    }

    fn pair(&mut self) {
        if self.is_resp3() {
            self.number(b'*', 2);
        }
    }

    fn is_full(&self) -> bool {
        self.full
    }

    fn position(&self) -> usize {
        self.out.len()
    }

    /// Appends the header and rotates it to the front; it has only a few bytes.
    fn insert_head(&mut self, position: usize, head: Head, len: usize) {
        let end = self.out.len();
        self.write_head(head, len);
        // The header found no room, and the writer has discarded everything.
        if self.full {
            return;
        }
        let written = self.out.len() - end;
        if let Some(moved) = self.out.get_mut(position..) {
            moved.rotate_right(written);
        }
    }

    fn rollback_to(&mut self, position: usize) {
        self.out.truncate(position);
    }
}

#[cfg(test)]
mod tests;
