//! The commands between MULTI and EXEC.
//!
//! The session queues its own commands and those of the store. This queue holds the server's, with
//! their places among all of them, so a transaction of the store's commands takes nothing here.

/// A queued command that the server runs after the session has run its commands.
#[derive(Debug)]
pub(crate) struct ServerCommand {
    /// How many commands were queued before it.
    pub(crate) place: usize,
    /// The index of its handler.
    pub(crate) handler: usize,
    pub(crate) argv: Vec<Vec<u8>>,
}

/// A queued command as those that monitor see it.
#[derive(Debug)]
pub(crate) struct ShownCommand {
    pub(crate) words: String,
    pub(crate) is_script: bool,
}

/// The transaction that a client is building.
#[derive(Debug, Default)]
pub(crate) struct TransactionQueue {
    /// The number of queued commands, those of the session included.
    len: usize,
    /// The server's commands, in order.
    pub(crate) server_commands: Vec<ServerCommand>,
    /// Whether a queued command writes.
    pub(crate) writes: bool,
    /// Whether a queued command begins or ends subscriptions.
    pub(crate) subscribes: bool,
    /// The commands, if somebody monitors.
    pub(crate) shown: Vec<ShownCommand>,
    /// Approximate memory of arguments that this queue holds.
    held_bytes: usize,
}

impl TransactionQueue {
    /// The number of queued commands.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Records a command that the session holds.
    pub(crate) fn push_of_session(&mut self) {
        self.len += 1;
    }

    /// Queues a command of the server.
    pub(crate) fn push(&mut self, handler: usize, argv: &[&[u8]]) {
        self.held_bytes += arguments_memory(argv.iter().copied());
        let argv = argv.iter().map(|word| word.to_vec()).collect();
        self.server_commands.push(ServerCommand { place: self.len, handler, argv });
        self.len += 1;
    }

    /// Approximate memory of this queue, without the session's own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let shown: usize = self.shown.iter().map(|shown| shown.words.capacity()).sum();
        self.server_commands.capacity() * size_of::<ServerCommand>() + self.held_bytes + shown
    }
}

/// Approximate memory of copies of these arguments.
pub(crate) fn arguments_memory<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> usize {
    const OVERHEAD: usize = 48;
    words.into_iter().map(|word| word.len() + OVERHEAD).sum()
}
