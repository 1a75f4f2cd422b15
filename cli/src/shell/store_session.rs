//! A session on a store: of this process, one that processes share, or one of a server or a cluster.

use lsmkv::{
    Address, Db, Options, Remote, RemoteSession, Reply, Session, SharedSession, SharedStore,
};

use crate::failure::Failure;
use crate::store::WritableStore;

/// Where the commands of the shell run.
pub(super) enum StoreSession {
    Here(Box<Session>),
    Shared { store: SharedStore, session: Box<SharedSession>, seen: Seen },
    Elsewhere { remote: Remote, session: Box<RemoteSession>, seen: Seen },
}

/// What commands have told a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The selected database.
    database: u32,
    is_over: bool,
}

impl Seen {
    fn new(database: u32) -> Self {
        Self { database, is_over: false }
    }

    fn note(&mut self, argv: &[&[u8]], reply: &Reply) {
        let failed = matches!(reply, Reply::Error(_));
        match argv {
            [name, number] if !failed && name.eq_ignore_ascii_case(b"SELECT") => {
                let text = std::str::from_utf8(number).unwrap_or_default();
                self.database = text.parse().unwrap_or(self.database);
            }
            [name] => self.is_over |= name.eq_ignore_ascii_case(b"QUIT"),
            _ => {}
        }
    }
}

impl StoreSession {
    /// A session on a database of a store in a directory.
    pub(super) fn on(store: WritableStore, database: u32) -> lsmkv::Result<Self> {
        Ok(match store {
            WritableStore::Own(db) => Self::Here(Box::new(db.select(database)?.session())),
            WritableStore::Shared(store) => {
                let session = Box::new(store.select(database)?.session());
                Self::Shared { store, session, seen: Seen::new(database) }
            }
        })
    }

    /// Connects to a server or a cluster.
    pub(super) fn connect(
        address: &str,
        database: u32,
        options: &Options,
    ) -> Result<Self, Failure> {
        let mut address = Address::parse(address)?;
        if database > 0 {
            address.database = Some(database);
        }
        let seen = Seen::new(address.database.unwrap_or(0));
        let remote = Remote::open_any_protocol(address, options)?;
        let session = Box::new(remote.session()?);
        Ok(Self::Elsewhere { remote, session, seen })
    }

    /// Another session on the same database.
    pub(super) fn another(&self) -> Result<Self, Failure> {
        Ok(match self {
            Self::Here(session) => Self::Here(Box::new(session.db().session())),
            Self::Shared { store, seen, .. } => {
                Self::on(WritableStore::Shared(store.clone()), seen.database)?
            }
            Self::Elsewhere { remote, seen, .. } => {
                let database = seen.database;
                let remote = if database > 0 { remote.select(database)? } else { remote.clone() };
                let session = Box::new(remote.session()?);
                Self::Elsewhere { remote, session, seen: Seen::new(database) }
            }
        })
    }

    /// The store, if it is of this process alone.
    pub(super) fn db(&self) -> Option<&Db> {
        match self {
            Self::Here(session) => Some(session.db()),
            Self::Shared { .. } | Self::Elsewhere { .. } => None,
        }
    }

    pub(super) fn database(&self) -> u32 {
        match self {
            Self::Here(session) => session.db().database(),
            Self::Shared { seen, .. } | Self::Elsewhere { seen, .. } => seen.database,
        }
    }

    pub(super) fn command(&mut self, argv: &[&[u8]]) -> lsmkv::Result<Reply> {
        let (reply, seen) = match self {
            Self::Here(session) => return session.command(argv),
            Self::Shared { session, seen, .. } => (session.command(argv)?, seen),
            Self::Elsewhere { session, seen, .. } => (session.command(argv)?, seen),
        };
        seen.note(argv, &reply);
        Ok(reply)
    }

    pub(super) fn in_multi(&self) -> bool {
        match self {
            Self::Here(session) => session.in_multi(),
            Self::Shared { session, .. } => session.in_multi(),
            Self::Elsewhere { session, .. } => session.in_multi(),
        }
    }

    /// Whether QUIT has ended the session.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Here(session) => session.is_over(),
            Self::Shared { seen, .. } | Self::Elsewhere { seen, .. } => seen.is_over,
        }
    }

    /// Closes the store, if it is one of a directory.
    pub(super) fn close(&self) -> lsmkv::Result<()> {
        match self {
            Self::Here(session) => session.db().close(),
            Self::Shared { store, .. } => store.close(),
            Self::Elsewhere { .. } => Ok(()),
        }
    }
}
