//! The bytes that connections have received in one round. They stay in place until their commands
//! have run, because batched commands refer to their arguments by position.

use std::io::Read;

/// The maximum number of bytes that one connection reads per turn.
const CHUNK_BYTES: usize = 64 << 10;
/// The maximum number of bytes if others wait until the requests in them have run.
pub(crate) const SHARED_CHUNK_BYTES: usize = 2 << 10;
/// The maximum number of bytes before the batch must run.
const BUFFER_BYTES: usize = 4 * CHUNK_BYTES;

/// The input of all connections of an event loop.
pub(crate) struct InputBuffer {
    buffer: Box<[u8]>,
    filled: usize,
    /// Query buffers that connections have handed over.
    owned: Vec<Vec<u8>>,
}

/// The input of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InputChunk {
    /// A range of the shared buffer.
    Shared(usize, usize),
    /// A connection's query buffer, by number.
    Owned(usize),
}

impl InputBuffer {
    pub(crate) fn new() -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { buffer, filled: 0, owned: Vec::new() }
    }

    /// Whether another connection can read before `clear`.
    pub(crate) fn has_room(&self) -> bool {
        self.buffer.len() - self.filled >= CHUNK_BYTES
    }

    /// Reads once, and not much if `is_shared`: then others wait. Also returns whether the socket may
    /// have more; an empty chunk is the end of the stream.
    pub(crate) fn read(
        &mut self,
        stream: &mut impl Read,
        is_shared: bool,
    ) -> std::io::Result<(InputChunk, bool)> {
        let from = self.filled;
        let len = if is_shared { SHARED_CHUNK_BYTES } else { CHUNK_BYTES };
        let to = (from + len).min(self.buffer.len());
        let space = self.buffer.get_mut(from..to).unwrap_or_default();
        if space.is_empty() {
            // A read into an empty slice would look like the end of the stream.
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let len = stream.read(space)?;
        let full = len == space.len();
        self.filled = from + len;
        Ok((InputChunk::Shared(from, self.filled), full))
    }

    /// Takes over the query buffer of a connection.
    pub(crate) fn push_owned(&mut self, bytes: Vec<u8>) -> InputChunk {
        self.owned.push(bytes);
        InputChunk::Owned(self.owned.len() - 1)
    }

    /// Returns the bytes of a chunk from `at` on, for the connection's query buffer. If the chunk
    /// is not `needed` here any more, its allocation moves along.
    pub(crate) fn take_rest(&mut self, chunk: InputChunk, at: usize, needed: bool) -> Vec<u8> {
        match chunk {
            InputChunk::Owned(number) if !needed => {
                let mut bytes = self.owned.get_mut(number).map(std::mem::take).unwrap_or_default();
                bytes.drain(..at.min(bytes.len()));
                bytes
            }
            _ => self.bytes(chunk).get(at..).unwrap_or_default().to_vec(),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self, chunk: InputChunk) -> &[u8] {
        match chunk {
            InputChunk::Shared(from, to) => self.buffer.get(from..to).unwrap_or_default(),
            InputChunk::Owned(number) => self.owned.get(number).map_or(&[], Vec::as_slice),
        }
    }

    /// Discards all input.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.owned.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stay_in_place_until_the_buffer_is_cleared() {
        let mut input_buffer = InputBuffer::new();
        let (first, more) = input_buffer.read(&mut &b"one"[..], false).unwrap();
        let owned = input_buffer.push_owned(b"kept".to_vec());
        let (second, _) = input_buffer.read(&mut &b"two"[..], false).unwrap();
        assert!(!more);
        let all = [first, owned, second].map(|chunk| input_buffer.bytes(chunk).to_vec());
        assert_eq!(all, [&b"one"[..], b"kept", b"two"]);
        assert_eq!(input_buffer.take_rest(second, 1, false), b"wo");
        assert_eq!(input_buffer.take_rest(owned, 2, true), b"pt");
        assert_eq!(input_buffer.bytes(owned), b"kept");
        assert_eq!(input_buffer.take_rest(owned, 2, false), b"pt");
        assert_eq!(input_buffer.bytes(owned), b"");
    }

    #[test]
    fn a_connection_reads_one_chunk_and_all_of_them_four() {
        let (mut input_buffer, mut endless) = (InputBuffer::new(), std::io::repeat(7));
        for _ in 0..BUFFER_BYTES / CHUNK_BYTES {
            assert!(input_buffer.has_room());
            let (chunk, more) = input_buffer.read(&mut endless, false).unwrap();
            assert!(more && input_buffer.bytes(chunk).len() == CHUNK_BYTES);
        }
        assert!(!input_buffer.has_room());
        let refused = input_buffer.read(&mut endless, false).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::Interrupted);
        input_buffer.clear();
        assert!(input_buffer.has_room());
    }
}
