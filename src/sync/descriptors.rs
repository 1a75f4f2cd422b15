//! The sockets of this process, by descriptor: those of servers, and connections to stores elsewhere.
//!
//! A forked child has copies of them. As long as it keeps them, the port stays taken after its
//! parent has gone, and clients wait for replies that nobody sends. So the handler that runs in the
//! child closes them. It may take no lock, hence this table of bits.
//!
//! Invariant: a descriptor is listed only while it is open. It is listed after it was opened and
//! taken off the list before it is closed, so that the child never closes anything else.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 64;
const DESCRIPTORS_PER_CHUNK: usize = WORDS * 64;
/// With chunks of 4,096 this covers a million descriptors, the usual limit of a system.
const CHUNKS: usize = 256;

type Chunk = [AtomicU64; WORDS];

static OPEN: [OnceLock<Box<Chunk>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// A descriptor on the list, until this is dropped. It is dropped before the socket.
#[derive(Debug)]
pub(crate) struct Listed(RawFd);

impl Listed {
    pub(crate) fn new(descriptor: RawFd) -> Self {
        if let Some((chunk, word, bit)) = place(descriptor) {
            let chunk = OPEN.get(chunk).map(|chunk| chunk.get_or_init(empty_chunk));
            if let Some(word) = chunk.and_then(|chunk| chunk.get(word)) {
                word.fetch_or(bit, Ordering::SeqCst);
            }
        }
        Self(descriptor)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some((chunk, word, bit)) = place(self.0)
            && let Some(word) =
                OPEN.get(chunk).and_then(OnceLock::get).and_then(|chunk| chunk.get(word))
        {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }
}

fn empty_chunk() -> Box<Chunk> {
    Box::new([const { AtomicU64::new(0) }; WORDS])
}

/// The chunk, the word in it and the bit in that of a descriptor.
fn place(descriptor: RawFd) -> Option<(usize, usize, u64)> {
    let number = usize::try_from(descriptor).ok()?;
    let within = number % DESCRIPTORS_PER_CHUNK;
    Some((number / DESCRIPTORS_PER_CHUNK, within / 64, 1 << (within % 64)))
}

/// Calls `close` with every descriptor on the list. It takes no lock and allocates nothing.
pub(crate) fn for_each_descriptor(mut close: impl FnMut(RawFd)) {
    for (at, chunk) in OPEN.iter().enumerate() {
        let Some(chunk) = chunk.get() else { continue };
        for (word_at, word) in chunk.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let number =
                    at * DESCRIPTORS_PER_CHUNK + word_at * 64 + bits.trailing_zeros() as usize;
                if let Ok(descriptor) = RawFd::try_from(number) {
                    close(descriptor);
                }
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_listed_until_they_are_dropped() {
        // Larger than any that a test opens.
        let numbers = [70_000, 70_063, 70_064, 500_000, 1_048_575];
        let listed: Vec<_> = numbers.map(Listed::new).into();
        let beyond = [Listed::new(-1), Listed::new(RawFd::MAX)];
        let found = || {
            let mut found = Vec::new();
            for_each_descriptor(|descriptor| found.push(descriptor));
            found.retain(|descriptor| *descriptor >= 70_000);
            found
        };
        assert_eq!(found(), numbers);
        drop((listed, beyond));
        assert_eq!(found(), []);
    }
}
