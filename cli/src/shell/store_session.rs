//! A session on a store of this process, or on one of a server or a cluster.

use lsmkv::{Address, Db, Options, Remote, RemoteSession, Reply, Session};

use crate::failure::Failure;

/// Where the commands of the shell run.
pub(super) enum StoreSession {
    Here(Box<Session>),
    Elsewhere {
        remote: Remote,
        session: Box<RemoteSession>,
        /// The selected database.
        database: u32,
        is_over: bool,
    },
}

impl StoreSession {
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
        let database = address.database.unwrap_or(0);
        let remote = Remote::open_any_protocol(address, options)?;
        let session = Box::new(remote.session()?);
        Ok(Self::Elsewhere { remote, session, database, is_over: false })
    }

    /// Another session on the same database.
    pub(super) fn another(&self) -> Result<Self, Failure> {
        Ok(match self {
            Self::Here(session) => Self::Here(Box::new(session.db().session())),
            Self::Elsewhere { remote, database, .. } => {
                let remote = if *database > 0 { remote.select(*database)? } else { remote.clone() };
                let session = Box::new(remote.session()?);
                Self::Elsewhere { remote, session, database: *database, is_over: false }
            }
        })
    }

    /// The store, if it is of this process.
    pub(super) fn db(&self) -> Option<&Db> {
        match self {
            Self::Here(session) => Some(session.db()),
            Self::Elsewhere { .. } => None,
        }
    }

    pub(super) fn database(&self) -> u32 {
        match self {
            Self::Here(session) => session.db().database(),
            Self::Elsewhere { database, .. } => *database,
        }
    }

    pub(super) fn command(&mut self, argv: &[&[u8]]) -> lsmkv::Result<Reply> {
        match self {
            Self::Here(session) => session.command(argv),
            Self::Elsewhere { session, database, is_over, .. } => {
                let reply = session.command(argv)?;
                let failed = matches!(reply, Reply::Error(_));
                match argv {
                    [name, number] if !failed && name.eq_ignore_ascii_case(b"SELECT") => {
                        let text = std::str::from_utf8(number).unwrap_or_default();
                        *database = text.parse().unwrap_or(*database);
                    }
                    [name] => *is_over |= name.eq_ignore_ascii_case(b"QUIT"),
                    _ => {}
                }
                Ok(reply)
            }
        }
    }

    pub(super) fn in_multi(&self) -> bool {
        match self {
            Self::Here(session) => session.in_multi(),
            Self::Elsewhere { session, .. } => session.in_multi(),
        }
    }

    /// Whether QUIT has ended the session.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Here(session) => session.is_over(),
            Self::Elsewhere { is_over, .. } => *is_over,
        }
    }
}
