//! What the server remembers of a connection between two commands, apart from its socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lsmkv::{Reply, Session};

use super::catalog::Entry;
use super::clients::ClientInfo;
use super::pop::Pop;
use crate::resp::Protocol;

/// What CLIENT REPLY asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// The next command's reply is left out.
    SkipNext,
    /// This command's reply is left out.
    Skipping,
}

/// What becomes of the connection after its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    /// It is closed when its replies are sent.
    Closes,
    /// It is closed at once.
    Dies,
}

/// A command between MULTI and EXEC, by who answers it.
#[derive(Debug)]
pub(crate) enum Queued {
    /// The session.
    Plain,
    /// The session, whose reply takes another form.
    Popped(Pop),
    /// The server, which runs it when the session has run its own.
    Own(Vec<Vec<u8>>),
    /// Nobody: it is an error.
    Refused(String),
}

/// Between MULTI and EXEC.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<Queued>,
    /// Keys that may have something to take afterwards.
    pub(crate) touched: Vec<Vec<u8>>,
    /// Any key may.
    pub(crate) touches_all: bool,
    pub(crate) writes: bool,
    /// Memory that all this takes, about, beside what the session holds.
    pub(crate) bytes: usize,
}

impl Queue {
    /// Remembers who answers a command that the session has queued.
    pub(crate) fn push(&mut self, queued: Queued) {
        self.bytes += size_of::<Queued>();
        self.commands.push(queued);
    }

    /// Remembers a command that the session does not hold.
    pub(crate) fn push_own(&mut self, queued: Queued, argv: &[&[u8]]) {
        self.bytes += memory_of(argv.iter().copied());
        self.push(queued);
    }

    /// Remembers a key that may have something to take afterwards.
    pub(crate) fn touch(&mut self, key: &[u8]) {
        self.bytes += memory_of([key]);
        self.touched.push(key.to_vec());
    }
}

/// What copies of these words take, about.
pub(crate) fn memory_of<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> usize {
    const EACH: usize = 48;
    words.into_iter().map(|word| word.len() + EACH).sum()
}

/// A client that waits.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// What it is among those who wait for keys; `None`: it only waits for the time.
    pub(crate) ticket: Option<u64>,
    pub(crate) deadline: Option<Instant>,
    /// What it is told at the end if it has no ticket.
    pub(crate) finally: Reply,
    /// Memory that what it waits for takes, about.
    pub(crate) bytes: usize,
}

/// See the module's documentation.
pub(crate) struct Client {
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) session: Session,
    pub(crate) protocol: Protocol,
    pub(crate) authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) queue: Option<Queue>,
    pub(crate) blocked: Option<Blocked>,
    pub(crate) fate: Fate,
    /// Whether it has written since this was last looked at.
    pub(crate) wrote: bool,
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
            fate: Fate::Lives,
            wrote: false,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.info.id()
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.info.protocol.store(protocol.number(), Ordering::Relaxed);
    }

    /// Memory that it takes beside its buffers, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, |queue| queue.bytes);
        let waits_for = self.blocked.as_ref().map_or(0, |blocked| blocked.bytes);
        queued + waits_for + self.session.held_bytes()
    }

    /// Follows what the session has become, and tells others.
    pub(crate) fn follow_session(&mut self) {
        if !self.session.in_multi() {
            self.queue = None;
        }
        let queued = self.queue.as_ref().map_or(-1, |queue| queue.commands.len() as i64);
        self.info.queued.store(queued, Ordering::Relaxed);
        self.info.database.store(self.session.db().database(), Ordering::Relaxed);
    }

    /// Tells others what it did last.
    pub(crate) fn note_command(&self, entry: &Entry) {
        self.info.last_command.store(entry.index, Ordering::Relaxed);
    }

    pub(crate) fn block(&mut self, blocked: Blocked) {
        self.blocked = Some(blocked);
        self.info.blocked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn unblock(&mut self) {
        self.blocked = None;
        self.info.blocked.store(false, Ordering::Relaxed);
    }

    /// Whether the reply of the command that has just run is left out; prepares for the next.
    pub(crate) fn swallows_reply(&mut self) -> bool {
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
