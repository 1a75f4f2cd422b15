//! Reads replies of a server, in RESP3, and writes them to a sink as they arrive.
//!
//! A server may lie: lengths are claims, so memory is taken for bytes that have arrived, and nesting
//! is bounded.

use std::io::Read;

use bytes::Bytes;

use super::server_error::server_error;
use crate::commands::{Head, Reply, ReplyBuilder, ReplySink};

/// The deepest nesting of a reply.
const MOST_DEPTH: usize = 128;
/// The longest line: a number, a status or an error.
const LONGEST_LINE: usize = 64 << 10;
/// The bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// The room for a value that is kept across replies.
const KEPT_BYTES: usize = 1 << 20;

/// Why a reply could not be read.
#[derive(Debug)]
pub(super) enum ReadFailure {
    /// The connection failed, or was closed by the server.
    Io(std::io::Error),
    /// The bytes are no reply.
    Protocol(String),
}

impl From<std::io::Error> for ReadFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

type Outcome<T> = Result<T, ReadFailure>;

/// What arrived.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// A reply, which is in the sink.
    Reply,
    /// An error reply.
    Error(String),
    /// A message that no command asked for, or the confirmation of a subscription.
    Push(Reply),
}

impl Frame {
    /// Writes an error reply to the sink; any other is there already.
    pub(super) fn write_error(self, sink: &mut dyn ReplySink) {
        if let Self::Error(text) = self {
            sink.error(&text);
        }
    }

    /// Fails with an error reply.
    pub(super) fn into_result(self) -> crate::error::Result<()> {
        match self {
            Self::Error(text) => Err(server_error(&text)),
            _ => Ok(()),
        }
    }
}

/// Whether a reply holds pairs, such as members with scores, that belong side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As the server sends it.
    AsSent,
    /// An array of arrays of two is a sequence of pairs.
    Pairs,
}

/// Reads replies from a source. What it has read ahead is kept for the next reply.
#[derive(Debug)]
pub(super) struct ReplyReader {
    buffer: Vec<u8>,
    /// The part of the buffer that is not parsed yet.
    begin: usize,
    /// The longest value that is accepted.
    longest: u64,
}

impl ReplyReader {
    /// A reader that accepts values of up to `longest` bytes.
    pub(super) fn new(longest: u64) -> Self {
        Self { buffer: Vec::new(), begin: 0, longest }
    }

    /// Whether bytes have been read that belong to no reply yet.
    pub(super) fn has_read_ahead(&self) -> bool {
        self.begin < self.buffer.len()
    }

    /// Reads what comes next, and writes it to `sink`.
    pub(super) fn read(
        &mut self,
        source: &mut impl Read,
        shape: Shape,
        sink: &mut dyn ReplySink,
    ) -> Outcome<Frame> {
        self.forget_parsed();
        let mut kind = self.byte(source)?;
        while kind == b'|' {
            self.skip_attributes(source)?;
            kind = self.byte(source)?;
        }
        match kind {
            b'-' => Ok(Frame::Error(text_of(self.line(source)?))),
            b'!' => {
                let len = self.length(source)?.unwrap_or(0);
                let text = self.bulk(source, len)?;
                Ok(Frame::Error(text_of(&text)))
            }
            b'>' => {
                let mut message = ReplyBuilder::default();
                self.value(source, kind, Shape::AsSent, 0, &mut message)?;
                Ok(Frame::Push(message.finish()))
            }
            _ => self.value(source, kind, shape, 0, sink).map(|()| Frame::Reply),
        }
    }

    fn value(
        &mut self,
        source: &mut impl Read,
        kind: u8,
        shape: Shape,
        depth: usize,
        sink: &mut dyn ReplySink,
    ) -> Outcome<()> {
        match kind {
            b'+' => sink.text(self.line(source)?),
            b'-' => sink.error(&text_of(self.line(source)?)),
            b':' => sink.integer(self.number(source)?),
            b'_' => {
                self.line(source)?;
                sink.nil();
            }
            b'#' => match self.line(source)? {
                b"t" => sink.boolean(true),
                b"f" => sink.boolean(false),
                other => return Err(odd("a boolean", other)),
            },
            b',' => {
                let line = self.line(source)?;
                let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
                sink.double(number.ok_or_else(|| odd("a double", line))?);
            }
            b'(' => sink.big_number(self.line(source)?),
            b'!' => {
                let len = self.length(source)?.unwrap_or(0);
                let text = self.bulk(source, len)?;
                sink.error(&text_of(&text));
            }
            b'=' => {
                let len = self.length(source)?.unwrap_or(0);
                let text = self.bulk(source, len)?;
                match text.split_at_checked(4) {
                    Some((format, text)) => {
                        let letters = format.first_chunk::<3>().copied();
                        sink.verbatim(letters.unwrap_or(*b"txt"), text);
                    }
                    None => return Err(odd("a verbatim text", &text)),
                }
            }
            b'$' => match self.length(source)? {
                None => sink.nil(),
                Some(len) => self.bulk_into(source, len, sink)?,
            },
            b'*' | b'~' | b'>' | b'%' => self.aggregate(source, kind, shape, depth, sink)?,
            other => return Err(odd("a reply", &[other])),
        }
        Ok(())
    }

    fn aggregate(
        &mut self,
        source: &mut impl Read,
        kind: u8,
        shape: Shape,
        depth: usize,
        sink: &mut dyn ReplySink,
    ) -> Outcome<()> {
        let Some(len) = self.length(source)? else {
            sink.nil_array();
            return Ok(());
        };
        if depth >= MOST_DEPTH {
            return Err(ReadFailure::Protocol("its reply nests too deep".to_owned()));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let head = match kind {
            b'~' => Head::Set,
            b'>' => Head::Push,
            b'%' => Head::Map,
            _ => Head::Array,
        };
        if shape == Shape::Pairs && kind == b'*' && len > 0 && self.peek(source)? == b'*' {
            return self.pairs(source, len, depth, sink);
        }
        sink.head(head, len);
        let values = if head == Head::Map { len.saturating_mul(2) } else { len };
        for _ in 0..values {
            let kind = self.byte(source)?;
            self.value(source, kind, Shape::AsSent, depth + 1, sink)?;
        }
        Ok(())
    }

    fn pairs(
        &mut self,
        source: &mut impl Read,
        len: usize,
        depth: usize,
        sink: &mut dyn ReplySink,
    ) -> Outcome<()> {
        sink.head(Head::Pairs, len);
        for _ in 0..len {
            if self.byte(source)? != b'*' || self.length(source)? != Some(2) {
                return Err(ReadFailure::Protocol("a pair of its reply has not two parts".into()));
            }
            sink.pair();
            for _ in 0..2 {
                let kind = self.byte(source)?;
                self.value(source, kind, Shape::AsSent, depth + 2, sink)?;
            }
        }
        Ok(())
    }

    /// Reads attributes, which no command here asks for, and forgets them.
    fn skip_attributes(&mut self, source: &mut impl Read) -> Outcome<()> {
        let len = self.length(source)?.unwrap_or(0);
        let mut nothing = ReplyBuilder::default();
        for _ in 0..len.saturating_mul(2) {
            let kind = self.byte(source)?;
            self.value(source, kind, Shape::AsSent, 1, &mut nothing)?;
            nothing.rollback_to(0);
        }
        Ok(())
    }

    /// Reads a number after the kind of a reply; `None` for -1, which is no value.
    fn length(&mut self, source: &mut impl Read) -> Outcome<Option<u64>> {
        match self.number(source)? {
            -1 => Ok(None),
            number => match u64::try_from(number) {
                Ok(len) => Ok(Some(len)),
                Err(_) => Err(odd("a length", number.to_string().as_bytes())),
            },
        }
    }

    fn number(&mut self, source: &mut impl Read) -> Outcome<i64> {
        let line = self.line(source)?;
        let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| odd("a number", line))
    }

    /// Writes bytes to the sink, from the buffer if they are there.
    fn bulk_into(
        &mut self,
        source: &mut impl Read,
        len: u64,
        sink: &mut dyn ReplySink,
    ) -> Outcome<()> {
        if len <= READ_BYTES as u64 {
            let len = usize::try_from(len).unwrap_or(READ_BYTES);
            while self.unparsed().len() < len + 2 {
                self.fill(source)?;
            }
            let (bytes, end) = self.unparsed().split_at_checked(len).unwrap_or_default();
            check_end(end)?;
            sink.bulk(bytes);
            self.begin += len + 2;
            return Ok(());
        }
        let bytes = self.bulk(source, len)?;
        sink.shared_bulk(Bytes::from(bytes));
        Ok(())
    }

    /// Reads bytes and the end of their line. Memory is taken as they arrive.
    fn bulk(&mut self, source: &mut impl Read, len: u64) -> Outcome<Vec<u8>> {
        if len > self.longest {
            let text = format!("a value of {len} bytes is longer than max_value_bytes");
            return Err(ReadFailure::Protocol(text));
        }
        let have = usize::try_from(len).unwrap_or(usize::MAX).min(self.unparsed().len());
        let mut bytes = self.unparsed().get(..have).unwrap_or_default().to_vec();
        self.begin += have;
        let missing = len - have as u64;
        if source.take(missing).read_to_end(&mut bytes)? as u64 != missing {
            return Err(closed());
        }
        while self.unparsed().len() < 2 {
            self.fill(source)?;
        }
        check_end(self.unparsed())?;
        self.begin += 2;
        Ok(bytes)
    }

    /// Takes a line without its end.
    fn line(&mut self, source: &mut impl Read) -> Outcome<&[u8]> {
        let mut searched = 0;
        let len = loop {
            let unparsed = self.unparsed();
            let found = unparsed.get(searched..).unwrap_or_default();
            if let Some(at) = found.iter().position(|byte| *byte == b'\n') {
                break searched + at;
            }
            searched = unparsed.len();
            if searched > LONGEST_LINE {
                return Err(ReadFailure::Protocol("it sends a line without end".to_owned()));
            }
            self.fill(source)?;
        };
        let begin = self.begin;
        self.begin += len + 1;
        let line = self.buffer.get(begin..begin + len).unwrap_or_default();
        line.strip_suffix(b"\r").ok_or_else(|| odd("the end of a line", line))
    }

    fn byte(&mut self, source: &mut impl Read) -> Outcome<u8> {
        let byte = self.peek(source)?;
        self.begin += 1;
        Ok(byte)
    }

    fn peek(&mut self, source: &mut impl Read) -> Outcome<u8> {
        loop {
            if let Some(byte) = self.unparsed().first() {
                return Ok(*byte);
            }
            self.fill(source)?;
        }
    }

    fn unparsed(&self) -> &[u8] {
        self.buffer.get(self.begin..).unwrap_or_default()
    }

    /// Reads more bytes.
    fn fill(&mut self, source: &mut impl Read) -> Outcome<()> {
        self.forget_parsed();
        let len = self.buffer.len();
        self.buffer.resize(len + READ_BYTES, 0);
        let room = self.buffer.get_mut(len..).unwrap_or_default();
        let read = loop {
            match source.read(room) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                done => break done,
            }
        };
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(closed()),
            _ => Ok(()),
        }
    }

    fn forget_parsed(&mut self) {
        if self.begin == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
        } else {
            self.buffer.drain(..self.begin);
        }
        self.begin = 0;
    }
}

fn check_end(end: &[u8]) -> Outcome<()> {
    match end.get(..2) {
        Some(b"\r\n") => Ok(()),
        other => Err(odd("the end of a value", other.unwrap_or_default())),
    }
}

fn closed() -> ReadFailure {
    let message = "the server closed the connection";
    ReadFailure::Io(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, message))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn odd(expected: &str, found: &[u8]) -> ReadFailure {
    const SHOWN: usize = 40;
    let shown = found.get(..SHOWN).unwrap_or(found).escape_ascii();
    ReadFailure::Protocol(format!("it sent '{shown}' where {expected} belongs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            let len = self.1.min(self.0.len()).min(room.len());
            let (given, rest) = self.0.split_at(len);
            room[..len].copy_from_slice(given);
            self.0 = rest;
            Ok(len)
        }
    }

    fn read_all(bytes: &[u8], step: usize, shape: Shape) -> Outcome<Vec<(Frame, Reply)>> {
        let mut reader = ReplyReader::new(1 << 20);
        let mut source = Trickle(bytes, step);
        let mut out = Vec::new();
        while !source.0.is_empty() || reader.has_read_ahead() {
            let mut builder = ReplyBuilder::default();
            let frame = reader.read(&mut source, shape, &mut builder)?;
            out.push((frame, builder.finish()));
        }
        Ok(out)
    }

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn every_kind_of_reply_is_read_whatever_the_pieces() {
        let long = "x".repeat(40_000);
        let bytes = format!(
            "+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n_\r\n,1.5\r\n,-inf\r\n#t\r\n(123\r\n=7\r\ntxt:abc\r\n\
             *2\r\n:1\r\n*0\r\n%1\r\n$1\r\nk\r\n-ERR nested\r\n~1\r\n:3\r\n*-1\r\n-ERR no\r\n\
             |1\r\n+a\r\n+b\r\n:9\r\n>2\r\n+message\r\n+x\r\n$40000\r\n{long}\r\n!5\r\nERR x\r\n"
        );
        let reply = |reply| (Frame::Reply, reply);
        let expected = vec![
            reply(Reply::Text("OK".into())),
            reply(Reply::Int(-7)),
            reply(bulk("a\r\n")),
            reply(Reply::Nil),
            reply(Reply::Nil),
            reply(Reply::Double(1.5)),
            reply(Reply::Double(f64::NEG_INFINITY)),
            reply(Reply::Bool(true)),
            reply(Reply::BigNumber("123".into())),
            reply(Reply::Verbatim(*b"txt", "abc".into())),
            reply(Reply::Array(vec![Reply::Int(1), Reply::Array(vec![])])),
            reply(Reply::Map(vec![(bulk("k"), Reply::Error("ERR nested".into()))])),
            reply(Reply::Set(vec![Reply::Int(3)])),
            reply(Reply::NilArray),
            (Frame::Error("ERR no".into()), Reply::Nil),
            reply(Reply::Int(9)),
            (
                Frame::Push(Reply::Push(vec![
                    Reply::Text("message".into()),
                    Reply::Text("x".into()),
                ])),
                Reply::Nil,
            ),
            reply(bulk(&long)),
            (Frame::Error("ERR x".into()), Reply::Nil),
        ];
        for step in [1, 2, 3, 7, 1000, 1 << 20] {
            let bytes = bytes.as_bytes();
            assert_eq!(read_all(bytes, step, Shape::AsSent).unwrap(), expected, "{step}");
        }
    }

    #[test]
    fn pairs_are_side_by_side_only_where_the_command_has_them() {
        let bytes =
            b"*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2\r\n*2\r\n$1\r\na\r\n,1\r\n*0\r\n";
        let pair = |name, score| (bulk(name), Reply::Double(score));
        let pairs = read_all(bytes, 5, Shape::Pairs).unwrap();
        assert_eq!(pairs[0].1, Reply::Pairs(vec![pair("a", 1.0), pair("b", 2.0)]));
        assert_eq!(pairs[1].1, Reply::Array(vec![bulk("a"), Reply::Double(1.0)]));
        assert_eq!(pairs[2].1, Reply::Array(vec![]));
        let as_sent = read_all(bytes, 5, Shape::AsSent).unwrap();
        assert!(
            matches!(&as_sent[0].1, Reply::Array(parts) if matches!(parts[0], Reply::Array(_)))
        );
    }

    #[test]
    fn what_is_no_reply_is_refused_and_no_claim_takes_memory() {
        let deep = "*1\r\n".repeat(MOST_DEPTH + 2);
        let endless = format!("+{}", "x".repeat(LONGEST_LINE * 2));
        for bytes in [
            "?\r\n",
            ":x\r\n",
            "$-2\r\n",
            "$3\r\nabcd\r\n",
            "$9999999999\r\nab\r\n",
            "#x\r\n",
            ",x\r\n",
            "+a\n",
            "=2\r\nab\r\n",
            deep.as_str(),
            endless.as_str(),
            "$99999999999999999999\r\n",
            "*2\r\n*2\r\n:1\r\n:2\r\n*3\r\n:1\r\n:2\r\n:3\r\n",
        ] {
            let failure = read_all(bytes.as_bytes(), 1 << 20, Shape::Pairs).unwrap_err();
            assert!(matches!(failure, ReadFailure::Protocol(_)), "{bytes}: {failure:?}");
        }
        for cut in ["$5\r\nab", "*3\r\n:1\r\n", "+OK", "$900000\r\nab", "*1000000000\r\n:1\r\n"] {
            let failure = read_all(cut.as_bytes(), 1 << 20, Shape::AsSent).unwrap_err();
            assert!(matches!(failure, ReadFailure::Io(_)), "{cut}: {failure:?}");
        }
    }
}
