//! A piece of the commands between MULTI and EXEC: their arguments, one after the other.

use super::queue::Queued;

/// A chunk takes no further command beyond this many bytes. One command may take more by itself.
const CHUNK_BYTES: usize = 32 << 10;

/// Queued commands, in order.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    calls: Vec<Call>,
    /// The arguments of all commands, one after the other.
    arguments: Vec<u8>,
    /// Where each argument ends in `arguments`.
    ends: Vec<usize>,
}

/// A queued command and the end of its arguments in [`Chunk::ends`].
#[derive(Debug)]
struct Call {
    what: Queued,
    end: usize,
}

impl Chunk {
    /// Whether a command with these arguments belongs into this chunk.
    pub(super) fn has_room(&self, argv: &[&[u8]]) -> bool {
        let used = self.arguments.len() + bookkeeping(self.calls.len(), self.ends.len());
        let more = argv.iter().map(|argument| argument.len()).sum::<usize>();
        used + more + bookkeeping(1, argv.len()) <= CHUNK_BYTES
    }

    pub(super) fn push(&mut self, what: Queued, argv: &[&[u8]]) {
        for argument in argv {
            self.arguments.extend_from_slice(argument);
            self.ends.push(self.arguments.len());
        }
        self.calls.push(Call { what, end: self.ends.len() });
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.arguments.capacity() + bookkeeping(self.calls.capacity(), self.ends.capacity())
    }

    /// The commands with their arguments, the name first.
    pub(super) fn calls(&self) -> impl Iterator<Item = (Queued, Vec<&[u8]>)> {
        let (mut call_begin, mut begin) = (0, 0);
        self.calls.iter().map(move |call| {
            let ends = self.ends.get(call_begin..call.end).unwrap_or_default();
            call_begin = call.end;
            let argv = ends.iter().map(|end| {
                let argument = self.arguments.get(begin..*end).unwrap_or_default();
                begin = *end;
                argument
            });
            (call.what, argv.collect())
        })
    }
}

/// The memory of so many commands and arguments, without the arguments' own bytes.
fn bookkeeping(calls: usize, arguments: usize) -> usize {
    calls * size_of::<Call>() + arguments * size_of::<usize>()
}
