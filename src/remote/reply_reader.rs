//! Reads replies of a server, in RESP3, and writes them to a sink as they arrive.
//!
//! A server may lie: lengths are claims, so memory is taken for bytes that have arrived, and nesting
//! is bounded.

use std::io::Read;

use bytes::Bytes;

use super::frame::{Frame, Outcome, ReadFailure, Shape, odd};
use super::input::{Input, READ_BYTES};
use crate::commands::{Head, ReplyBuilder, ReplySink};

/// The deepest nesting of a reply.
const MOST_DEPTH: usize = 128;

/// Reads replies from a source. What it has read ahead is kept for the next reply.
#[derive(Debug)]
pub(super) struct ReplyReader {
    input: Input,
    /// The longest value that is accepted.
    longest: u64,
}

impl ReplyReader {
    /// A reader that accepts values of up to `longest` bytes.
    pub(super) fn new(longest: u64) -> Self {
        Self { input: Input::default(), longest }
    }

    /// Whether bytes have been read that belong to no reply yet.
    pub(super) fn has_read_ahead(&self) -> bool {
        self.input.has_read_ahead()
    }

    /// Reads what comes next, and writes it to `sink`.
    pub(super) fn read(
        &mut self,
        source: &mut impl Read,
        shape: Shape,
        sink: &mut dyn ReplySink,
    ) -> Outcome<Frame> {
        let mut kind = self.input.byte(source)?;
        while kind == b'|' {
            self.skip_attributes(source)?;
            kind = self.input.byte(source)?;
        }
        match kind {
            b'-' => Ok(Frame::Error(text_of(self.input.line(source)?))),
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
            b'+' => sink.text(self.input.line(source)?),
            b'-' => sink.error(&text_of(self.input.line(source)?)),
            b':' => sink.integer(self.number(source)?),
            b'_' => {
                self.input.line(source)?;
                sink.nil();
            }
            b'#' => match self.input.line(source)? {
                b"t" => sink.boolean(true),
                b"f" => sink.boolean(false),
                other => return Err(odd("a boolean", other)),
            },
            b',' => {
                let line = self.input.line(source)?;
                let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
                sink.double(number.ok_or_else(|| odd("a double", line))?);
            }
            b'(' => sink.big_number(self.input.line(source)?),
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
        if shape == Shape::Pairs && kind == b'*' && len > 0 && self.input.peek(source)? == b'*' {
            return self.pairs(source, len, depth, sink);
        }
        sink.head(head, len);
        let values = if head == Head::Map { len.saturating_mul(2) } else { len };
        for _ in 0..values {
            let kind = self.input.byte(source)?;
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
            if self.input.byte(source)? != b'*' || self.length(source)? != Some(2) {
                return Err(ReadFailure::Protocol("a pair of its reply has not two parts".into()));
            }
            sink.pair();
            for _ in 0..2 {
                let kind = self.input.byte(source)?;
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
            let kind = self.input.byte(source)?;
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
        let line = self.input.line(source)?;
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
        match usize::try_from(len).ok().filter(|len| *len <= READ_BYTES) {
            Some(len) => sink.bulk(self.input.short(source, len)?),
            None => sink.shared_bulk(Bytes::from(self.bulk(source, len)?)),
        }
        Ok(())
    }

    /// Reads a value of at most the longest length that is accepted.
    fn bulk(&mut self, source: &mut impl Read, len: u64) -> Outcome<Vec<u8>> {
        if len > self.longest {
            let text = format!("a value of {len} bytes is longer than max_value_bytes");
            return Err(ReadFailure::Protocol(text));
        }
        self.input.long(source, len)
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Reply;
    use crate::remote::input::LONGEST_LINE;

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
