//! The commands between MULTI and EXEC.
//!
//! The session queues its own commands and those of the store. This queue holds the server's, and
//! records for all of them, in order, which part of the program answers at EXEC.

/// A queued command, by the part of the program that answers it.
#[derive(Debug)]
pub(crate) enum QueuedCommand {
    /// The session answers it.
    Session,
    /// The server runs the handler at this index after the session has run its commands.
    Server { handler: usize, argv: Vec<Vec<u8>> },
}

/// The transaction that a client is building.
#[derive(Debug, Default)]
pub(crate) struct TransactionQueue {
    pub(crate) commands: Vec<QueuedCommand>,
    /// Whether a queued command writes.
    pub(crate) writes: bool,
    /// Whether a queued command begins or ends subscriptions.
    pub(crate) subscribes: bool,
    /// The words of the commands, if somebody monitors.
    pub(crate) shown: Vec<String>,
    /// Approximate memory of arguments that this queue holds.
    held_bytes: usize,
}

impl TransactionQueue {
    /// Records a command that the session holds.
    pub(crate) fn push(&mut self, queued: QueuedCommand) {
        self.commands.push(queued);
    }

    /// Approximate memory of this queue, without the session's own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let shown: usize = self.shown.iter().map(String::capacity).sum();
        self.commands.capacity() * size_of::<QueuedCommand>() + self.held_bytes + shown
    }

    /// Records a command whose arguments the session does not hold.
    pub(crate) fn push_with_arguments(&mut self, queued: QueuedCommand, argv: &[&[u8]]) {
        self.held_bytes += arguments_memory(argv.iter().copied());
        self.push(queued);
    }
}

/// Approximate memory of copies of these arguments.
pub(crate) fn arguments_memory<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> usize {
    const OVERHEAD: usize = 48;
    words.into_iter().map(|word| word.len() + OVERHEAD).sum()
}
