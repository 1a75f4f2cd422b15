//! Commands that concern only the connection: its name, its number, its protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::subscriptions::{Subscribing, Subscriptions};
use super::tracking::{KnownPeer, SessionTracking};
use super::{Known, clients, info};
use crate::commands::args::{Args, quoted, wrong_number};
use crate::commands::dispatch::fits;
use crate::commands::reply::Reply;
use crate::commands::schema::connection::ConnectionCommand;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::clients::ClientCard;
use crate::messages::{Inbox, Peer};
use crate::txn::Db;
use crate::types::KeyspaceSampler;
use crate::types::number::{out_of_range, parse_integer};

/// The number of connections that this process has made.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// The state of a connection: its name, its number, its protocol, its subscriptions, and what it
/// tracks.
#[derive(Debug)]
pub(super) struct Connection {
    /// The handle that made the session.
    pub(super) home: Db,
    /// What others may know of the session; made when it is first needed.
    card: Option<Arc<ClientCard>>,
    /// Whether the card is in the store's list.
    listed: bool,
    pub(super) key_sampler: KeyspaceSampler,
    pub(super) over: bool,
    subscriptions: Option<Subscriptions>,
    /// What CLIENT TRACKING is set to; `None` if it is off.
    pub(super) tracking: Option<SessionTracking>,
    known: KnownPeer,
}

pub(super) fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, text)
}

/// Fails for a call that is refused before it runs or is queued.
pub(super) fn check((which, command): Known, argv: &[&[u8]]) -> Result<()> {
    if !fits(command.arity, argv.len()) {
        return Err(wrong_number(command.name));
    }
    match which {
        ConnectionCommand::Client => clients::check(argv),
        _ => Ok(()),
    }
}

/// Parses the number of a database. The caller checks that it exists.
pub(in crate::commands) fn database(args: &mut Args<'_>) -> Result<u32> {
    let bounds = format!(", value must between {} and {}", i32::MIN, i32::MAX);
    let number = i32::try_from(args.integer()?).map_err(|_| out_of_range(&bounds))?;
    u32::try_from(number)
        .map_err(|_| Error::new(ErrorKind::OutOfRange, "ERR DB index is out of range"))
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.listed {
            self.home.store().hub().clients().leave(self.peer().id);
        }
    }
}

impl Connection {
    pub(super) fn new(home: Db) -> Self {
        let id = CONNECTIONS.fetch_add(1, Ordering::Relaxed) + 1;
        let peer = Arc::new(Peer::new(id));
        home.store().hub().meet_peer(&peer);
        let known = KnownPeer { db: home.clone(), peer };
        Self {
            home,
            card: None,
            listed: false,
            key_sampler: KeyspaceSampler::default(),
            over: false,
            subscriptions: None,
            tracking: None,
            known,
        }
    }

    /// The session as others know it.
    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.known.peer
    }

    pub(super) fn id(&self) -> i64 {
        i64::try_from(self.peer().id).unwrap_or(i64::MAX)
    }

    /// Returns to the initial state. Messages that wait are dropped.
    pub(super) fn reset(&mut self) -> Result<()> {
        self.end_tracking();
        self.subscriptions = None;
        if let Some(card) = &self.card {
            card.names.lock().name = Bytes::new();
        }
        self.peer().set_protocol(2);
        self.peer().set_subscribed(false);
        if let Some(inbox) = self.known_inbox() {
            inbox.reopen();
            while inbox.take()?.is_some() {}
        }
        Ok(())
    }

    /// What others may know of the session.
    pub(super) fn card(&mut self) -> &Arc<ClientCard> {
        let (id, database) = (self.peer().id, self.home.database());
        self.card.get_or_insert_with(|| {
            let card = ClientCard::new(id);
            card.database.store(database, Ordering::Relaxed);
            Arc::new(card)
        })
    }

    /// Puts the session into the store's list, which CLIENT LIST shows.
    pub(super) fn list(&mut self) {
        let card = Arc::clone(self.card());
        self.home.store().hub().clients().join(&card);
        self.listed = true;
    }

    /// Notes which database is selected.
    pub(super) fn note_database(&self, number: u32) {
        if let Some(card) = &self.card {
            card.database.store(number, Ordering::Relaxed);
        }
    }

    /// Where messages arrive, made when it is first asked for.
    pub(super) fn inbox(&mut self) -> &Arc<Inbox> {
        let peer = &self.known.peer;
        // The store closes the inboxes that it knows.
        self.subscriptions.get_or_insert_with(|| Subscriptions::new(&self.home, peer));
        peer.inbox()
    }

    pub(super) fn known_inbox(&self) -> Option<&Arc<Inbox>> {
        self.peer().known_inbox()
    }

    pub(super) fn subscription_counts(&self) -> [usize; 3] {
        self.subscriptions.as_ref().map_or([0; 3], Subscriptions::counts)
    }

    /// Roughly the memory of the subscriptions and of the messages that wait.
    pub(super) fn held_bytes(&self) -> usize {
        let waiting = self.known_inbox().map_or(0, |inbox| inbox.waiting_bytes());
        waiting + self.subscriptions.as_ref().map_or(0, Subscriptions::bytes)
    }

    fn subscribe(&mut self, what: Subscribing, args: Args<'_>) -> Reply {
        self.inbox();
        self.subscriptions.as_mut().map_or(Reply::Nil, |own| own.run(what, args))
    }

    /// Runs a command that has passed [`check`].
    pub(super) fn run(&mut self, command: ConnectionCommand, mut args: Args<'_>) -> Result<Reply> {
        match command {
            ConnectionCommand::Ping if args.len() > 1 => Err(wrong_number("ping")),
            ConnectionCommand::Ping if args.is_empty() => Ok(Reply::Status("PONG")),
            ConnectionCommand::Ping | ConnectionCommand::Echo => Ok(bulk(args.bytes()?)),
            ConnectionCommand::Client => self.client(args),
            ConnectionCommand::Config => self.config(args),
            ConnectionCommand::Hello => self.hello(args),
            ConnectionCommand::Info => self.info(args),
            ConnectionCommand::Time => Ok(info::time()),
            other => match Subscribing::of(other) {
                Some(what) => Ok(self.subscribe(what, args)),
                None => Ok(Reply::OK),
            },
        }
    }

    fn hello(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let (mut protocol, mut name) = (self.peer().protocol(), None);
        if let Some(text) = args.peek() {
            let number = parse_integer(text)
                .map_err(|_| invalid("ERR Protocol version is not an integer or out of range"))?;
            args.bytes()?;
            protocol = match number {
                2 => 2,
                3 => 3,
                _ => return Err(invalid("NOPROTO unsupported protocol version")),
            };
        }
        while let Some(word) = args.peek() {
            if args.len() > 2 && args.take_word("auth") {
                let user = args.take(2)?.first().copied();
                if user != Some(b"default") {
                    let text = "WRONGPASS invalid username-password pair or user is disabled.";
                    return Err(invalid(text));
                }
            } else if args.len() > 1 && args.take_word("setname") {
                name = Some(args.bytes()?);
            } else {
                let word = quoted(word);
                return Err(invalid(format!("ERR Syntax error in HELLO option '{word}'")));
            }
        }
        if let Some(name) = name {
            self.set_name(name)?;
        }
        self.peer().set_protocol(protocol);
        Ok(self.introduction())
    }

    fn introduction(&self) -> Reply {
        let text = |text: &'static str| Reply::Bulk(Bytes::from_static(text.as_bytes()));
        Reply::Map(vec![
            (text("server"), text("lsmkv")),
            (text("version"), text(env!("CARGO_PKG_VERSION"))),
            (text("proto"), Reply::Int(i64::from(self.peer().protocol()))),
            (text("id"), Reply::Int(self.id())),
            (text("mode"), text("standalone")),
            (text("role"), text("master")),
            (text("modules"), Reply::Array(Vec::new())),
        ])
    }
}

fn bulk(bytes: &[u8]) -> Reply {
    Reply::Bulk(Bytes::copy_from_slice(bytes))
}
