//! The commands between MULTI and EXEC.
//!
//! The session queues its own commands and those of the store. This queue holds the server's, and
//! records for all of them, in order, which part of the program answers at EXEC.

use super::blocking_pop::BlockingPop;

/// A queued command, by the part of the program that answers it.
#[derive(Debug)]
pub(crate) enum QueuedCommand {
    /// The session answers it.
    Session,
    /// The session answers its non-blocking counterpart, whose reply takes another form.
    Pop(Box<BlockingPop>),
    /// The server runs the handler at this index after the session has run its commands.
    Server { handler: usize, argv: Vec<Vec<u8>> },
    /// The reply is this error.
    Invalid(String),
}

/// The transaction that a client is building.
#[derive(Debug, Default)]
pub(crate) struct TransactionQueue {
    pub(crate) commands: Vec<QueuedCommand>,
    /// Keys that EXEC may write; blocked clients may wait for them.
    pub(crate) written_keys: Vec<Vec<u8>>,
    /// Whether EXEC may write keys that are not in `written_keys`.
    pub(crate) writes_any_key: bool,
    pub(crate) writes: bool,
    /// Approximate memory of arguments and keys that this queue holds.
    held_bytes: usize,
}

impl TransactionQueue {
    /// Records a command that the session holds.
    pub(crate) fn push(&mut self, queued: QueuedCommand) {
        self.commands.push(queued);
    }

    /// Approximate memory of this queue, without the session's own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let commands = self.commands.capacity() * size_of::<QueuedCommand>();
        let keys = self.written_keys.capacity() * size_of::<Vec<u8>>();
        commands + keys + self.held_bytes
    }

    /// Records a command whose arguments the session does not hold.
    pub(crate) fn push_with_arguments(&mut self, queued: QueuedCommand, argv: &[&[u8]]) {
        self.held_bytes += arguments_memory(argv.iter().copied());
        self.push(queued);
    }

    /// Records a key that EXEC may write.
    pub(crate) fn add_written_key(&mut self, key: &[u8]) {
        self.held_bytes += arguments_memory([key]);
        self.written_keys.push(key.to_vec());
    }
}

/// Approximate memory of copies of these arguments.
pub(crate) fn arguments_memory<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> usize {
    const OVERHEAD: usize = 48;
    words.into_iter().map(|word| word.len() + OVERHEAD).sum()
}
