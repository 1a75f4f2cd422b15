//! The state of a client between two commands, without its socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::commands::{LongValue, Reply, Session, WaitingPop};

use super::client_list::ClientInfo;
use super::command_table::CommandEntry;
use super::held::Held;
use super::long_reply::LongReply;
use super::transaction_queue::TransactionQueue;
use crate::resp::Protocol;

/// The mode that CLIENT REPLY selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// The next command gets no reply.
    SkipNext,
    /// The current command gets no reply.
    Skipping,
}

/// Whether and when the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseState {
    Open,
    /// The connection closes once its replies are sent.
    AfterReplies,
    /// The connection closes at once.
    Now,
}

/// The state of a client that waits for a key or for a time.
#[derive(Debug)]
pub(crate) struct BlockedState {
    /// The number of the wait and the pop that waits; `None` if the client waits for the time only.
    pub(crate) pop: Option<(u64, WaitingPop)>,
    /// The number of the script that the client waits for.
    pub(crate) script: Option<u64>,
    pub(crate) deadline: Option<Instant>,
    /// The reply at the deadline.
    pub(crate) timeout_reply: Reply,
    /// Approximate memory of the keys it waits for.
    pub(crate) memory_bytes: usize,
}

/// A client: its session, its protocol version, and what it is about to do.
pub(crate) struct Client {
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) session: Session,
    pub(crate) protocol: Protocol,
    pub(crate) authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// The queue between MULTI and EXEC.
    pub(crate) queue: Option<TransactionQueue>,
    pub(crate) blocked: Option<BlockedState>,
    pub(crate) close_state: CloseState,
    /// What the client keeps here, if it is a process that shares the store.
    pub(crate) held: Held,
    /// The rest of the reply to its last command.
    pub(crate) long_reply: Option<LongReply>,
    /// The value of the command that is about to run, if it arrived in parts.
    pub(crate) long_value: Option<LongValue>,
    /// Whether the client has written since its replies were last sent.
    pub(crate) has_written: bool,
    /// The numbers of its channels, patterns and shard channels.
    pub(crate) subscriptions: [usize; 3],
    /// Whether its event loop learns of messages.
    pub(crate) listens: bool,
    /// Whether it sees the commands of others.
    pub(crate) monitors: bool,
    /// Whether its last script took too much for the event loop.
    pub(crate) had_slow_script: bool,
}

impl Client {
    pub(crate) fn new(info: Arc<ClientInfo>, session: Session, authenticated: bool) -> Self {
        Self {
            info,
            session,
            protocol: Protocol::Resp2,
            authenticated,
            reply_mode: ReplyMode::On,
            queue: None,
            blocked: None,
            close_state: CloseState::Open,
            held: Held::default(),
            long_reply: None,
            long_value: None,
            has_written: false,
            subscriptions: [0; 3],
            listens: false,
            monitors: false,
            had_slow_script: false,
        }
    }

    /// Whether its commands run on a snapshot or in a transaction.
    pub(crate) fn has_view(&self) -> bool {
        !self.session.db().is_live()
    }

    /// Whether the client is subscribed to anything.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriptions != [0; 3]
    }

    pub(crate) fn id(&self) -> u64 {
        self.info.id()
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.session.set_protocol(u8::try_from(protocol.number()).unwrap_or(2));
        self.info.protocol.store(protocol.number(), Ordering::Relaxed);
    }

    /// Approximate memory of the client without its buffers.
    pub(crate) fn memory_bytes(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, TransactionQueue::memory_bytes);
        let blocked = self.blocked.as_ref().map_or(0, |blocked| blocked.memory_bytes);
        queued + blocked + self.session.held_bytes()
    }

    /// Adopts the state of the session after a command and publishes it to the client list.
    pub(crate) fn sync_with_session(&mut self) {
        if !self.session.in_multi() {
            self.queue = None;
        }
        let queued = self.queue.as_ref().map_or(-1, |queue| queue.len() as i64);
        self.info.queued.store(queued, Ordering::Relaxed);
        self.info.database.store(self.session.db().database(), Ordering::Relaxed);
    }

    /// Publishes the client's last command to the client list.
    pub(crate) fn record_command(&self, entry: &CommandEntry) {
        self.info.last_command.store(entry.index, Ordering::Relaxed);
    }

    pub(crate) fn block(&mut self, blocked: BlockedState) {
        self.blocked = Some(blocked);
        self.info.blocked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn unblock(&mut self) {
        self.blocked = None;
        self.info.blocked.store(false, Ordering::Relaxed);
    }

    /// Whether CLIENT REPLY suppresses the reply of the command that has just run. Advances the
    /// mode for the next command.
    pub(crate) fn suppresses_reply(&mut self) -> bool {
        match self.reply_mode {
            ReplyMode::On => false,
            ReplyMode::Off => true,
            ReplyMode::SkipNext => {
                self.reply_mode = ReplyMode::Skipping;
                true
            }
            ReplyMode::Skipping => {
                self.reply_mode = ReplyMode::On;
                true
            }
        }
    }
}
