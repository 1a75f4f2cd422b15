//! Reads and writes that Ctrl-C interrupts: a socket without answer and an input without end.
//!
//! A signal restarts the system call that it interrupts, so a blocking call never notices it.
//! Sockets wait with a short timeout, in a loop; other inputs are read by a thread of their own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::Interrupt;
use super::progress::POLL_INTERVAL;

/// The time after which a silent server is given up.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// The number of bytes that the reading thread reads at once.
const READ_BYTES: usize = 256 << 10;

/// The error of an interrupted operation.
pub(super) fn stopped_error() -> io::Error {
    io::Error::other("stopped")
}

/// A socket with timeouts.
pub(super) trait Socket: Read + Write {
    fn set_timeouts(&self, limit: Duration) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn set_timeouts(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

impl Socket for UnixStream {
    fn set_timeouts(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

/// A socket whose reads and writes end when the user interrupts.
pub(super) struct InterruptibleSocket<S> {
    socket: S,
    interrupt: Interrupt,
}

impl<S: Socket> InterruptibleSocket<S> {
    pub(super) fn new(socket: S, interrupt: &Interrupt) -> io::Result<Self> {
        socket.set_timeouts(POLL_INTERVAL)?;
        Ok(Self { socket, interrupt: interrupt.clone() })
    }

    fn retry_until_done<T>(
        &mut self,
        mut attempt: impl FnMut(&mut S) -> io::Result<T>,
    ) -> io::Result<T> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        let begun = Instant::now();
        loop {
            match attempt(&mut self.socket) {
                Err(e) if matches!(e.kind(), WouldBlock | TimedOut | Interrupted) => {
                    if self.interrupt.raised() {
                        return Err(stopped_error());
                    }
                    if begun.elapsed() >= SILENCE_LIMIT {
                        let text = format!("it has said nothing for {} s", SILENCE_LIMIT.as_secs());
                        return Err(io::Error::new(TimedOut, text));
                    }
                }
                done => return done,
            }
        }
    }
}

impl<S: Socket> Read for InterruptibleSocket<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.retry_until_done(|socket| socket.read(buffer))
    }
}

impl<S: Socket> Write for InterruptibleSocket<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry_until_done(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.retry_until_done(Write::flush)
    }
}

/// An input whose reads end when the user interrupts.
pub(crate) struct InterruptibleReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

impl InterruptibleReader {
    /// Starts a thread that opens the input and reads it.
    pub(crate) fn new<R: Read>(
        open: impl FnOnce() -> R + Send + 'static,
        interrupt: &Interrupt,
    ) -> Self {
        let (sender, chunks) = sync_channel(1);
        std::thread::spawn(move || {
            let mut input = open();
            loop {
                let mut chunk = vec![0; READ_BYTES];
                let read = match input.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let over = !matches!(read, Ok(1..));
                let read = read.map(|length| {
                    chunk.truncate(length);
                    chunk
                });
                // An empty chunk is the end. The receiver may already be gone.
                if sender.send(read).is_err() || over {
                    return;
                }
            }
        });
        Self { chunks, chunk: io::Cursor::default(), interrupt: interrupt.clone() }
    }
}

impl Read for InterruptibleReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.chunk.read(buffer)? {
                0 if !buffer.is_empty() => {}
                read => return Ok(read),
            }
            match self.chunks.recv_timeout(POLL_INTERVAL) {
                Ok(chunk) => self.chunk = io::Cursor::new(chunk?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.raised() {
                return Err(stopped_error());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_read_to_its_end() {
        let bytes: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
        let copy = bytes.clone();
        let mut input = InterruptibleReader::new(|| io::Cursor::new(copy), &Interrupt::default());
        let mut read = Vec::new();
        input.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        assert_eq!(input.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn a_socket_that_says_nothing_is_left_when_interrupted() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let interrupt = Interrupt::default();
        let mut interruptible = InterruptibleSocket::new(ours, &interrupt).unwrap();
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| interruptible.read(&mut [0; 8]).unwrap_err().to_string());
            interrupt.raise();
            assert_eq!(reading.join().unwrap(), "stopped");
        });
    }
}
