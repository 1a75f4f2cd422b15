//! Waiting for another party without becoming deaf: a socket that does not answer and an input that
//! does not end are given up when the user interrupts.
//!
//! Signals restart the system calls that they meet, so a call that waits for ever never learns of
//! one: sockets wait for a moment at a time, other inputs are read by a thread of their own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::Interrupt;
use super::progress::LOOK;

/// A server that says nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that an input's thread reads at once.
const PIECE: usize = 256 << 10;

/// The error of what an interruption ended.
pub(super) fn stopped() -> io::Error {
    io::Error::other("stopped")
}

/// A socket whose calls can be told to return after a while.
pub(super) trait Socket: Read + Write {
    fn wait_at_most(&self, limit: Duration) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn wait_at_most(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

impl Socket for UnixStream {
    fn wait_at_most(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

/// A socket that is waited for in turns.
pub(super) struct Patient<S> {
    socket: S,
    interrupt: Interrupt,
}

impl<S: Socket> Patient<S> {
    pub(super) fn new(socket: S, interrupt: &Interrupt) -> io::Result<Self> {
        socket.wait_at_most(LOOK)?;
        Ok(Self { socket, interrupt: interrupt.clone() })
    }

    fn until_done<T>(&mut self, mut attempt: impl FnMut(&mut S) -> io::Result<T>) -> io::Result<T> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        let begun = Instant::now();
        loop {
            match attempt(&mut self.socket) {
                Err(e) if matches!(e.kind(), WouldBlock | TimedOut | Interrupted) => {
                    if self.interrupt.raised() {
                        return Err(stopped());
                    }
                    if begun.elapsed() >= PATIENCE {
                        let text = format!("it has said nothing for {} s", PATIENCE.as_secs());
                        return Err(io::Error::new(TimedOut, text));
                    }
                }
                done => return done,
            }
        }
    }
}

impl<S: Socket> Read for Patient<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_done(|socket| socket.read(buffer))
    }
}

impl<S: Socket> Write for Patient<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(Write::flush)
    }
}

/// An input that may never end, of which nothing more is given after an interruption.
pub(crate) struct Interruptible {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

impl Interruptible {
    /// `open` makes the input, in the thread that reads it.
    pub(crate) fn new<R: Read>(
        open: impl FnOnce() -> R + Send + 'static,
        interrupt: &Interrupt,
    ) -> Self {
        let (sender, pieces) = sync_channel(1);
        std::thread::spawn(move || {
            let mut input = open();
            loop {
                let mut piece = vec![0; PIECE];
                let read = match input.read(&mut piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let over = !matches!(read, Ok(1..));
                let read = read.map(|length| {
                    piece.truncate(length);
                    piece
                });
                // An empty piece is the end. Nobody may want it any more.
                if sender.send(read).is_err() || over {
                    return;
                }
            }
        });
        Self { pieces, piece: io::Cursor::default(), interrupt: interrupt.clone() }
    }
}

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.piece.read(buffer)? {
                0 if !buffer.is_empty() => {}
                read => return Ok(read),
            }
            match self.pieces.recv_timeout(LOOK) {
                Ok(piece) => self.piece = io::Cursor::new(piece?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.raised() {
                return Err(stopped());
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
        let mut input = Interruptible::new(|| io::Cursor::new(copy), &Interrupt::default());
        let mut read = Vec::new();
        input.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        assert_eq!(input.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn a_socket_that_says_nothing_is_left_when_interrupted() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let interrupt = Interrupt::default();
        let mut patient = Patient::new(ours, &interrupt).unwrap();
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| patient.read(&mut [0; 8]).unwrap_err().to_string());
            interrupt.raise();
            assert_eq!(reading.join().unwrap(), "stopped");
        });
    }
}
