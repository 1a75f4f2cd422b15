//! Reads that Ctrl-C interrupts: an input without end.
//!
//! A signal restarts the system call that it interrupts, so a blocking call never notices it.
//! So the input is read by a thread of its own.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use super::Interrupt;
use super::progress::POLL_INTERVAL;

/// The number of bytes that the reading thread reads at once.
const READ_BYTES: usize = 256 << 10;

/// The error of an interrupted operation.
fn stopped_error() -> io::Error {
    io::Error::other("stopped")
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
}
