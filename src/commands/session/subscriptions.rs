//! SUBSCRIBE and its kin: what a session listens to, and what it receives.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::Session;
use crate::commands::args::Args;
use crate::commands::reply::Reply;
use crate::commands::schema::connection::ConnectionCommand;
use crate::error::Result;
use crate::messages::{Inbox, Kind, Message, Peer};
use crate::txn::Db;

/// Roughly the memory that a subscription takes beside the bytes of its name: it is in the tables
/// of the channel and of the subscriber.
const NAME_BYTES: usize = 160;

/// The subscriptions of a session. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Subscriptions {
    db: Db,
    number: u64,
    peer: Arc<Peer>,
    /// Roughly the memory of the names.
    bytes: usize,
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.db.store().hub().leave(self.number);
    }
}

/// A command that begins or ends subscriptions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscribing {
    kind: Kind,
    begins: bool,
    /// The word in the confirmation.
    word: &'static str,
}

impl Subscribing {
    pub(super) fn of(command: ConnectionCommand) -> Option<Self> {
        let (kind, begins, word) = match command {
            ConnectionCommand::Subscribe => (Kind::Channel, true, "subscribe"),
            ConnectionCommand::Psubscribe => (Kind::Pattern, true, "psubscribe"),
            ConnectionCommand::Ssubscribe => (Kind::Shard, true, "ssubscribe"),
            ConnectionCommand::Unsubscribe => (Kind::Channel, false, "unsubscribe"),
            ConnectionCommand::Punsubscribe => (Kind::Pattern, false, "punsubscribe"),
            ConnectionCommand::Sunsubscribe => (Kind::Shard, false, "sunsubscribe"),
            _ => return None,
        };
        Some(Self { kind, begins, word })
    }

    fn confirmation(self, name: Option<&[u8]>, count: usize) -> Reply {
        let word = Reply::Bulk(Bytes::from_static(self.word.as_bytes()));
        let count = Reply::Int(i64::try_from(count).unwrap_or(i64::MAX));
        Reply::Push(vec![word, Reply::bulk(name.map(Bytes::copy_from_slice)), count])
    }
}

impl Subscriptions {
    pub(super) fn new(db: &Db, peer: &Arc<Peer>) -> Self {
        let number = db.store().hub().join(peer.inbox());
        Self { db: db.clone(), number, peer: Arc::clone(peer), bytes: 0 }
    }

    /// The numbers of channels, patterns and shard channels.
    pub(super) fn counts(&self) -> [usize; 3] {
        self.db.store().hub().counts_of(self.number)
    }

    /// Roughly the memory of the names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Runs a command. Its reply is a confirmation for each name; several are an array.
    pub(super) fn run(&mut self, what: Subscribing, args: Args<'_>) -> Reply {
        let reply = self.change(what, args);
        self.peer.set_subscribed(self.counts() != [0; 3]);
        reply
    }

    fn change(&mut self, what: Subscribing, mut args: Args<'_>) -> Reply {
        let db = self.db.clone();
        let (hub, names) = (db.store().hub(), args.all());
        if what.begins {
            self.peer.inbox().reopen();
        }
        let mut confirmations: Vec<Reply> = if !what.begins && names.is_empty() {
            let (names, left) = hub.unsubscribe_all(what.kind, self.number);
            let cost: usize = names.iter().map(|name| name.len() + NAME_BYTES).sum();
            self.bytes = self.bytes.saturating_sub(cost);
            // As if they had ended one after the other.
            let last = names.len();
            let count = |n: usize| left + last - n - 1;
            names.iter().enumerate().map(|(n, it)| what.confirmation(Some(it), count(n))).collect()
        } else {
            let one = |name: &&[u8]| {
                let (count, changed) = match what.begins {
                    true => hub.subscribe(what.kind, name, self.number, self.peer.inbox()),
                    false => hub.unsubscribe(what.kind, name, self.number),
                };
                let cost = if changed { name.len() + NAME_BYTES } else { 0 };
                self.bytes = match what.begins {
                    true => self.bytes.saturating_add(cost),
                    false => self.bytes.saturating_sub(cost),
                };
                what.confirmation(Some(name), count)
            };
            names.iter().map(one).collect()
        };
        if confirmations.is_empty() {
            let [channels, patterns, shards] = hub.counts_of(self.number);
            let left = if what.kind == Kind::Shard { shards } else { channels + patterns };
            return what.confirmation(None, left);
        }
        match confirmations.pop() {
            Some(only) if confirmations.is_empty() => only,
            last => {
                confirmations.extend(last);
                Reply::Array(confirmations)
            }
        }
    }
}

/// A message as a subscriber sees it.
fn pushed(message: Message) -> Reply {
    let word = |word: &'static str| Reply::Bulk(Bytes::from_static(word.as_bytes()));
    let bytes = |bytes: Arc<[u8]>| Reply::Bulk(Bytes::from_owner(bytes));
    Reply::Push(match message {
        Message::Channel { channel, payload } => {
            vec![word("message"), bytes(channel), bytes(payload)]
        }
        Message::Pattern { pattern, channel, payload } => {
            vec![word("pmessage"), bytes(pattern), bytes(channel), bytes(payload)]
        }
        Message::Shard { channel, payload } => {
            vec![word("smessage"), bytes(channel), bytes(payload)]
        }
        Message::Invalidate { keys, by_channel } => {
            let keys = keys.map_or(Reply::Nil, |keys| {
                Reply::Array(keys.iter().map(|key| bytes(Arc::clone(key))).collect())
            });
            match by_channel {
                false => vec![word("invalidate"), keys],
                true => vec![word("message"), word("__redis__:invalidate"), keys],
            }
        }
        Message::BrokenRedirect { to } => {
            let to = i64::try_from(to).unwrap_or(i64::MAX);
            vec![word("tracking-redir-broken"), Reply::Int(to)]
        }
    })
}

/// Appends a part of a message as version 3 or 2 of the protocol writes it.
fn encode(reply: &Reply, resp3: bool, out: &mut Vec<u8>) {
    let head = |mark: char, number: i64, out: &mut Vec<u8>| {
        out.extend_from_slice(format!("{mark}{number}\r\n").as_bytes());
    };
    let count = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
    match reply {
        Reply::Bulk(bytes) => {
            head('$', count(bytes.len()), out);
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Int(number) => head(':', *number, out),
        Reply::Array(items) | Reply::Push(items) => {
            let is_push = resp3 && matches!(reply, Reply::Push(_));
            head(if is_push { '>' } else { '*' }, count(items.len()), out);
            items.iter().for_each(|item| encode(item, resp3, out));
        }
        // A message has no other parts.
        _ => out.extend_from_slice(if resp3 { b"_\r\n" } else { b"$-1\r\n" }),
    }
}

impl Session {
    /// Waits until a message arrives for this session, at most until the deadline; `None` if it
    /// passed. Messages are [`Reply::Push`], as RESP3 sends them: `message`, the channel, the
    /// message.
    ///
    /// Fails with [`crate::ErrorKind::Closed`] once the store is closed, and with
    /// [`crate::ErrorKind::TooLarge`] if the session was so slow that it was cut off. Then it has
    /// no subscriptions any more, until it subscribes again.
    ///
    /// ```
    /// use lsmkv::{Db, Options, Reply};
    ///
    /// let db = Db::open(":memory:", Options::default())?;
    /// let mut session = db.session();
    /// session.command(&[b"SUBSCRIBE", b"news"])?;
    /// assert_eq!(db.publish(b"news", b"hello")?, 1);
    /// let Some(Reply::Push(message)) = session.wait(None)? else { panic!() };
    /// assert_eq!(message[2], Reply::Bulk("hello".into()));
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Reply>> {
        let inbox = Arc::clone(self.connection.inbox());
        Ok(inbox.wait(deadline)?.map(pushed))
    }

    /// Takes the next message without waiting. Fails as [`Session::wait`] does.
    pub fn take_message(&mut self) -> Result<Option<Reply>> {
        match self.connection.known_inbox() {
            Some(inbox) => Ok(inbox.take()?.map(pushed)),
            None => Ok(None),
        }
    }

    /// Takes the next message without waiting and appends its bytes on the wire, in version 3 of the
    /// protocol or 2. The bytes are made once for all subscribers. Returns false if nothing waits,
    /// and fails as [`Session::wait`] does.
    pub fn take_message_bytes(&mut self, resp3: bool, out: &mut Vec<u8>) -> Result<bool> {
        let inbox = self.connection.known_inbox();
        let Some(published) = inbox.map(|inbox| inbox.take_published()).transpose()?.flatten()
        else {
            return Ok(false);
        };
        out.extend_from_slice(published.encoded(resp3, |message| {
            let mut bytes = Vec::new();
            encode(&pushed(message.clone()), resp3, &mut bytes);
            bytes
        }));
        Ok(true)
    }

    /// Takes the messages of channels that wait, and then those about cached keys. A server sends
    /// the first ones before the reply of a command that has just run, and the others after it: then
    /// a client that has cached a reply learns that it is no longer valid.
    pub fn take_messages(&mut self) -> Result<(Vec<Reply>, Vec<Reply>)> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let Some(inbox) = self.connection.known_inbox() else { return Ok((before, after)) };
        while let Some(message) = inbox.take()? {
            let list = if message.is_of_cache() { &mut after } else { &mut before };
            list.push(pushed(message));
        }
        Ok((before, after))
    }

    /// Calls `wake` whenever messages begin to wait, from the thread that sends them. It must not
    /// block or call the store.
    pub fn on_message(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.connection.inbox().on_arrival(Box::new(wake));
    }

    /// Why no more messages arrive, once [`Session::wait`] fails.
    pub fn message_failure(&self) -> Option<crate::error::Error> {
        self.connection.known_inbox()?.end()
    }

    /// Whether messages wait for the session.
    pub fn has_messages(&self) -> bool {
        self.connection.known_inbox().is_some_and(|inbox| inbox.waiting_bytes() > 0)
    }

    /// The numbers of channels, patterns and shard channels that the session is subscribed to.
    pub fn subscriptions(&self) -> [usize; 3] {
        self.connection.subscription_counts()
    }

    /// A descriptor that is readable while messages wait. It belongs to the session: poll it, but
    /// do not read from it or close it.
    pub fn message_descriptor(&mut self) -> Result<std::os::fd::RawFd> {
        self.connection.inbox().descriptor()
    }

    /// A session of a handle that another thread can close: that ends the waits of the database, and
    /// closes the inbox.
    pub(crate) fn of_handle(db: &Db) -> (Db, Self, Arc<Inbox>) {
        let (db, inbox) = (db.with_waits(Arc::default()), Arc::<Inbox>::default());
        let mut session = db.session();
        session.use_inbox(Arc::clone(&inbox));
        session.list_as_client();
        (db, session, inbox)
    }

    /// Makes messages arrive in this inbox, which the caller keeps to end a wait.
    fn use_inbox(&mut self, inbox: Arc<Inbox>) {
        self.connection.peer().use_inbox(inbox);
    }
}
