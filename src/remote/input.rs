//! The bytes that a server has sent: lines and values of a stated length, as they arrive.
//!
//! A length is a claim: memory is taken for bytes that have arrived.

use std::io::Read;

use super::frame::{Outcome, ReadFailure, odd};

/// The longest line: a number, a status or an error.
pub(super) const LONGEST_LINE: usize = 64 << 10;
/// The bytes that are read at once.
pub(super) const READ_BYTES: usize = 16 << 10;
/// The room that is kept across replies.
const KEPT_BYTES: usize = 1 << 20;

/// Bytes of a source that were read and not taken yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Room that stays from read to read.
    buffer: Vec<u8>,
    /// The part of the buffer that holds bytes which nobody has taken.
    begin: usize,
    end: usize,
}

impl Input {
    /// Whether bytes have been read that nobody has taken.
    pub(super) fn has_read_ahead(&self) -> bool {
        self.begin < self.end
    }

    /// Takes a value of at most [`READ_BYTES`] and the end of its line.
    pub(super) fn short(&mut self, source: &mut impl Read, len: usize) -> Outcome<&[u8]> {
        while self.untaken().len() < len + 2 {
            self.fill(source)?;
        }
        let taken = self.take(len + 2);
        let (bytes, end) = taken.split_at_checked(len).unwrap_or_default();
        check_end(end)?;
        Ok(bytes)
    }

    /// Takes a value of any length and the end of its line. Memory is taken as the bytes arrive.
    pub(super) fn long(&mut self, source: &mut impl Read, len: u64) -> Outcome<Vec<u8>> {
        let have = usize::try_from(len).unwrap_or(usize::MAX).min(self.untaken().len());
        let mut bytes = self.take(have).to_vec();
        let missing = len - have as u64;
        if source.take(missing).read_to_end(&mut bytes)? as u64 != missing {
            return Err(closed());
        }
        self.short(source, 0)?;
        Ok(bytes)
    }

    /// Takes a line without its end.
    pub(super) fn line(&mut self, source: &mut impl Read) -> Outcome<&[u8]> {
        let mut searched = 0;
        let len = loop {
            let untaken = self.untaken();
            let found = untaken.get(searched..).unwrap_or_default();
            if let Some(at) = found.iter().position(|byte| *byte == b'\n') {
                break searched + at;
            }
            searched = untaken.len();
            if searched > LONGEST_LINE {
                return Err(ReadFailure::Protocol("it sends a line without end".to_owned()));
            }
            self.fill(source)?;
        };
        let line = self.take(len + 1);
        line.strip_suffix(b"\r\n").ok_or_else(|| odd("the end of a line", line))
    }

    /// Takes a byte.
    pub(super) fn byte(&mut self, source: &mut impl Read) -> Outcome<u8> {
        let byte = self.peek(source)?;
        self.begin += 1;
        Ok(byte)
    }

    /// The byte that comes next.
    pub(super) fn peek(&mut self, source: &mut impl Read) -> Outcome<u8> {
        loop {
            if let Some(byte) = self.untaken().first() {
                return Ok(*byte);
            }
            self.fill(source)?;
        }
    }

    fn untaken(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// Takes bytes that are there.
    fn take(&mut self, len: usize) -> &[u8] {
        let begin = self.begin;
        self.begin += len;
        self.buffer.get(begin..self.begin).unwrap_or_default()
    }

    /// Reads more bytes.
    fn fill(&mut self, source: &mut impl Read) -> Outcome<()> {
        self.make_room();
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = loop {
            match source.read(room) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.end += read;
        if read == 0 { Err(closed()) } else { Ok(()) }
    }

    /// Moves the bytes that nobody has taken to the front, and has room for [`READ_BYTES`] more.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.end == 0 && self.buffer.len() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        if self.buffer.len() - self.end < READ_BYTES {
            self.buffer.resize(self.end + READ_BYTES, 0);
        }
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
