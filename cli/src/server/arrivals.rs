//! What has arrived in a round. It stays where it is until the commands in it have run: those that
//! run together name their arguments by place.

use std::io::Read;

/// What one connection may read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// What all may read before what they have read must have run.
const ALL_BYTES: usize = 4 * CHUNK_BYTES;

/// See the module's documentation.
pub(crate) struct Arrivals {
    buffer: Box<[u8]>,
    filled: usize,
    /// Of connections that had kept what arrived before.
    kept: Vec<Vec<u8>>,
}

/// A part that came from one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chunk {
    /// From here to there in the buffer.
    Read(usize, usize),
    /// The connection's own, by number.
    Kept(usize),
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        let buffer = vec![0; ALL_BYTES].into_boxed_slice();
        Self { buffer, filled: 0, kept: Vec::new() }
    }

    /// Whether another connection can have its turn before this is cleared.
    pub(crate) fn has_room(&self) -> bool {
        self.buffer.len() - self.filled >= CHUNK_BYTES
    }

    /// Reads once; also tells whether there may be more. An empty chunk is the end.
    pub(crate) fn read(&mut self, stream: &mut impl Read) -> std::io::Result<(Chunk, bool)> {
        let from = self.filled;
        let to = (from + CHUNK_BYTES).min(self.buffer.len());
        let space = self.buffer.get_mut(from..to).unwrap_or_default();
        if space.is_empty() {
            // What reads into nothing is told that it is at the end.
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let len = stream.read(space)?;
        let full = len == space.len();
        self.filled = from + len;
        Ok((Chunk::Read(from, self.filled), full))
    }

    /// Takes what a connection had kept.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> Chunk {
        self.kept.push(bytes);
        Chunk::Kept(self.kept.len() - 1)
    }

    /// What a connection is to keep of a chunk for later: all from `at` on. If nothing in the
    /// chunk is needed here any more, its memory goes with it.
    pub(crate) fn give_back(&mut self, chunk: Chunk, at: usize, needed: bool) -> Vec<u8> {
        match chunk {
            Chunk::Kept(number) if !needed => {
                let mut bytes = self.kept.get_mut(number).map(std::mem::take).unwrap_or_default();
                bytes.drain(..at.min(bytes.len()));
                bytes
            }
            _ => self.bytes(chunk).get(at..).unwrap_or_default().to_vec(),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self, chunk: Chunk) -> &[u8] {
        match chunk {
            Chunk::Read(from, to) => self.buffer.get(from..to).unwrap_or_default(),
            Chunk::Kept(number) => self.kept.get(number).map_or(&[], Vec::as_slice),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stay_where_they_are_until_all_is_forgotten() {
        let mut arrivals = Arrivals::new();
        let (first, more) = arrivals.read(&mut &b"one"[..]).unwrap();
        let kept = arrivals.keep(b"kept".to_vec());
        let (second, _) = arrivals.read(&mut &b"two"[..]).unwrap();
        assert!(!more);
        let all = [first, kept, second].map(|chunk| arrivals.bytes(chunk).to_vec());
        assert_eq!(all, [&b"one"[..], b"kept", b"two"]);
        assert_eq!(arrivals.give_back(second, 1, false), b"wo");
        assert_eq!(arrivals.give_back(kept, 2, true), b"pt");
        assert_eq!(arrivals.bytes(kept), b"kept");
        assert_eq!(arrivals.give_back(kept, 2, false), b"pt");
        assert_eq!(arrivals.bytes(kept), b"");
    }

    #[test]
    fn a_connection_reads_one_chunk_and_all_of_them_four() {
        let (mut arrivals, mut endless) = (Arrivals::new(), std::io::repeat(7));
        for _ in 0..ALL_BYTES / CHUNK_BYTES {
            assert!(arrivals.has_room());
            let (chunk, more) = arrivals.read(&mut endless).unwrap();
            assert!(more && arrivals.bytes(chunk).len() == CHUNK_BYTES);
        }
        assert!(!arrivals.has_room());
        let refused = arrivals.read(&mut endless).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::Interrupted);
        arrivals.clear();
        assert!(arrivals.has_room());
    }
}
