//! A connection with the part of RESP2 that the bench needs: commands are buffered and sent
//! together; replies are checked where that is cheap, and dropped.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::Result;

/// A server that says nothing for so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Status,
    Number(i64),
    /// Its bytes, unless it is nil.
    Bulk(Option<usize>),
    /// Its elements.
    Array(usize),
}

pub(super) struct Connection<S = UnixStream> {
    reader: BufReader<S>,
    unsent: Vec<u8>,
    line: Vec<u8>,
}

impl Connection {
    pub(super) fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self::new(stream))
    }

    pub(super) fn send(&mut self) -> Result<()> {
        self.reader.get_mut().write_all(&self.unsent)?;
        self.unsent.clear();
        Ok(())
    }
}

impl<S: std::io::Read> Connection<S> {
    fn new(stream: S) -> Self {
        let reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        Self { reader, unsent: Vec::new(), line: Vec::new() }
    }

    /// Begins a command of so many parts, its name included.
    pub(super) fn command(&mut self, parts: usize) {
        self.head(b'*', parts);
    }

    pub(super) fn part(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.unsent.extend_from_slice(bytes);
        self.unsent.extend_from_slice(b"\r\n");
    }

    fn head(&mut self, kind: u8, count: usize) {
        self.unsent.push(kind);
        self.unsent.extend_from_slice(count.to_string().as_bytes());
        self.unsent.extend_from_slice(b"\r\n");
    }

    /// The next reply; one that is an error is an error.
    pub(super) fn reply(&mut self) -> Result<Reply> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line)?;
        let Some((kind, rest)) = self.line.split_first() else {
            return Err("redis-server hung up".into());
        };
        let text = std::str::from_utf8(rest)?.trim_end();
        match kind {
            b'+' => Ok(Reply::Status),
            b'-' => Err(format!("redis-server says: {text}").into()),
            b':' => Ok(Reply::Number(text.parse()?)),
            b'$' => match text.parse::<i64>()? {
                len @ 0.. => {
                    let len = usize::try_from(len)?;
                    self.skip(len + 2)?;
                    Ok(Reply::Bulk(Some(len)))
                }
                _ => Ok(Reply::Bulk(None)),
            },
            b'*' => {
                let count = text.parse::<i64>()?.max(0);
                for _ in 0..count {
                    self.reply()?;
                }
                Ok(Reply::Array(usize::try_from(count)?))
            }
            _ => Err(format!("not RESP: {}", self.line.escape_ascii()).into()),
        }
    }

    fn skip(&mut self, mut bytes: usize) -> Result<()> {
        while bytes > 0 {
            let found = self.reader.fill_buf()?.len().min(bytes);
            if found == 0 {
                return Err("redis-server hung up within a reply".into());
            }
            self.reader.consume(found);
            bytes -= found;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(bytes: &[u8]) -> Connection<&[u8]> {
        Connection::new(bytes)
    }

    #[test]
    fn a_command_is_an_array_of_its_parts() {
        let mut connection = replies(b"");
        connection.command(2);
        connection.part(b"GET");
        connection.part(b"");
        assert_eq!(connection.unsent, b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    }

    #[test]
    fn replies_are_read_one_after_the_other() {
        let mut connection = replies(
            b"+OK\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n*-1\r\n:9\r\n",
        );
        let expected = [
            Reply::Status,
            Reply::Number(-7),
            Reply::Bulk(Some(4)),
            Reply::Bulk(None),
            Reply::Array(2),
            Reply::Array(0),
            Reply::Number(9),
        ];
        for reply in expected {
            assert_eq!(connection.reply().unwrap(), reply);
        }
        assert!(connection.reply().is_err(), "nothing is left");
    }

    #[test]
    fn errors_ends_and_nonsense_are_no_replies() {
        for bytes in [&b"-ERR no\r\n"[..], b"hello\r\n", b"$5\r\nab", b":x\r\n", b""] {
            assert!(replies(bytes).reply().is_err(), "{}", bytes.escape_ascii());
        }
    }
}
