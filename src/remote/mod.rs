//! Stores of other processes: a server that speaks Redis's protocol, or a cluster of them.
//!
//! - `address`: how a store is named;
//! - `socket`, `transport`, `connection`, `input`, `reply_reader`, `frame`, `server_error`: one
//!   connection;
//! - `pool`: connections that no call uses;
//! - `call`: what the schema says about a command on its way;
//! - `cluster`: slots, and which node runs what;
//! - `session`, `batch`: commands that belong together;
//! - `line`: a connection that the holder of a shared store keeps something for.
//!
//! A command runs at most once, unless it only reads. A reply that was lost is an error that says
//! so, never a silent repetition.

mod address;
mod batch;
mod call;
mod cluster;
mod connection;
mod frame;
mod input;
mod line;
mod pool;
mod reply_reader;
mod server_error;
mod session;
mod socket;
mod transport;
mod waits;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use address::{Address, Endpoint, Place};
pub use batch::RemoteBatch;
use call::Call;
use cluster::Cluster;
pub(crate) use connection::Holder;
pub(crate) use connection::Wait;
use connection::{CallFailure, Connection, Login, SeenHolder};
use frame::Frame;
pub(crate) use line::{Line, LineFailure};
use pool::Pool;
pub use session::RemoteSession;
pub(crate) use waits::Waits;

use crate::commands::entry::Entry;
use crate::commands::{
    Commands, Reply, ReplyBuilder, ReplySink, by_entry, name_of, refuse_session,
};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::limits::Limits;
use crate::options::Options;
use crate::tls::ClientTls;

/// The bytes of commands that are sent before their replies are read.
const WINDOW: usize = 256 << 10;

/// A store of another process. Clones use the same connections.
///
/// ```no_run
/// use lsmkv::{Commands, Options, Remote, Reply};
///
/// let store = Remote::open("redis://localhost:6379", &Options::default())?;
/// store.set(b"greeting", b"hello")?;
/// assert_eq!(store.get(b"greeting")?, Some("hello".into()));
/// assert_eq!(store.command(&[b"SET", b"greeting", b"hi", b"NX"])?, Reply::Nil);
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Remote {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    options: Options,
    any_protocol: bool,
    limits: Limits,
    servers: Servers,
    /// The waits of this handle.
    waits: Arc<Waits>,
    /// Those of the store, whose close ends all.
    store_waits: Arc<Waits>,
    /// The process that was last found to hold the store, if processes share it.
    holder: Option<SeenHolder>,
}

/// Why a command has no reply.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The server is gone, and the command can be given to another one: it was not sent, or only
    /// reads.
    Gone(Error),
    /// It must not be repeated.
    Failed(Error),
}

#[derive(Debug)]
enum Servers {
    One(Pool),
    Cluster(Cluster),
}

impl Commands for Remote {
    fn call(&self, argv: &[&[u8]]) -> Result<Reply> {
        by_entry(argv, |entry, sink| self.run_entry(entry, argv, sink))
    }
}

impl Remote {
    /// Connects to the store at an address, such as `redis://host`, `rediss://host`, `unix:///path`
    /// or `redis-cluster://host,host`. Of the options those for remote stores count, and the limits of
    /// keys and values.
    pub fn open(address: &str, options: &Options) -> Result<Self> {
        Self::open_address(Address::parse(address)?, options, false)
    }

    /// Connects like [`Remote::open`], and accepts servers that speak RESP2 alone, as those before
    /// Redis 6 do. Replies then have the shapes of that protocol, and no messages arrive.
    pub fn open_any_protocol(address: Address, options: &Options) -> Result<Self> {
        Self::open_address(address, options, true)
    }

    fn open_address(address: Address, options: &Options, any_protocol: bool) -> Result<Self> {
        options.validate()?;
        let waits = Arc::<Waits>::default();
        let remote = Self::made(address, options, any_protocol, None, (Arc::clone(&waits), waits))?;
        remote.greet()?;
        Ok(remote)
    }

    /// The store whose holder listens on a Unix socket. It connects when it is used.
    pub(crate) fn of_holder(socket: &str, options: &Options) -> Result<Self> {
        let place = Place::Server(Endpoint::Unix(socket.to_owned()));
        let address = Address { place, tls: false, user: None, password: None, database: None };
        let waits = Arc::<Waits>::default();
        Self::made(address, options, false, Some(Arc::default()), (Arc::clone(&waits), waits))
    }

    /// Makes the handle; `waits` are its own and those of the store.
    fn made(
        address: Address,
        options: &Options,
        any_protocol: bool,
        holder: Option<SeenHolder>,
        (waits, store_waits): (Arc<Waits>, Arc<Waits>),
    ) -> Result<Self> {
        let limits = Limits { key: options.max_key_bytes, value: options.max_value_bytes };
        let milliseconds = |number| (number > 0).then(|| Duration::from_millis(number));
        let tls = address.tls.then(|| ClientTls::from_options(options)).transpose()?;
        let login = Login {
            tls,
            user: address.user.clone(),
            password: address.password.clone(),
            database: address.database.unwrap_or(0),
            holder: holder.clone(),
            any_protocol,
            connect_limit: Duration::from_millis(options.connect_timeout_ms),
            reply_limit: milliseconds(options.reply_timeout_ms),
            longest_value: limits.value,
        };
        let servers = match &address.place {
            Place::Server(endpoint) => Servers::One(Pool::new(endpoint.clone(), login)),
            Place::Cluster(nodes) => Servers::Cluster(Cluster::open(nodes.clone(), login)?),
        };
        let options = options.clone();
        Ok(Self {
            shared: Arc::new(Shared {
                address,
                options,
                any_protocol,
                limits,
                servers,
                waits,
                store_waits,
                holder,
            }),
        })
    }

    /// Connects, so that a wrong address or password shows at once.
    pub(crate) fn greet(&self) -> Result<()> {
        if let Servers::One(pool) = &self.shared.servers {
            pool.give_back(pool.take()?);
        }
        Ok(())
    }

    /// Connects to a server that has not ended.
    pub(crate) fn attempt_greeting(&self) -> std::result::Result<(), Unanswered> {
        self.shared.waits.check_open().map_err(Unanswered::Failed)?;
        self.greet().map_err(unconnected)
    }

    /// Another database of the same store.
    pub fn select(&self, number: u32) -> Result<Self> {
        if self.is_cluster() && number != 0 {
            let message = format!("a cluster has database 0 alone, and no database {number}");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let other = self.select_later(number)?;
        other.greet()?;
        Ok(other)
    }

    /// Another database of the same store, which connects when it is used.
    pub(crate) fn select_later(&self, number: u32) -> Result<Self> {
        let shared = &self.shared;
        let address = Address { database: Some(number), ..shared.address.clone() };
        let store_waits = Arc::clone(&shared.store_waits);
        let waits = (store_waits.of_handle()?, store_waits);
        let holder = shared.holder.clone();
        Self::made(address, &shared.options, shared.any_protocol, holder, waits)
    }

    /// The database of the handle's connections.
    fn home_database(&self) -> u32 {
        self.shared.address.database.unwrap_or(0)
    }

    /// The process that was last found to hold the store, if processes share it.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let seen = self.shared.holder.as_ref()?;
        *seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of keys and values that are sent.
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// The address, without the password.
    pub fn address(&self) -> String {
        self.shared.address.to_string()
    }

    /// Runs any command by name. An error of the command is a reply.
    pub fn command(&self, argv: &[&[u8]]) -> Result<Reply> {
        ReplyBuilder::collect(|reply| self.command_into(argv, reply))
    }

    /// Runs any command by name and writes its reply to `sink`. An error of the command is a reply.
    pub fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        refuse_session(name_of(argv)?)?;
        self.run(&Call::of(argv), sink)?.write_error(sink);
        Ok(())
    }

    /// Runs a command whose entry is known. An error of the command is an `Err`.
    pub(crate) fn run_entry(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.run(&Call { argv, entry: Some(entry) }, sink)?.into_result()
    }

    /// Runs a command once, at a server that has not ended, and writes its reply to `sink`. An error
    /// of the command is a failure if its entry is given, else a reply.
    pub(crate) fn attempt(
        &self,
        entry: Option<&'static Entry>,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> std::result::Result<(), Unanswered> {
        let call = match entry {
            Some(_) => Call { argv, entry },
            None => Call::of(argv),
        };
        let frame = self.attempt_call(&call, call.wait(), sink)?;
        frame.settle(entry.is_some(), sink).map_err(Unanswered::Failed)
    }

    /// Runs a command that only the holder of a shared store knows, once, and waits for it. An error
    /// that the holder replies is the inner one.
    pub(crate) fn attempt_private(
        &self,
        argv: &[&[u8]],
        wait: Option<Wait>,
    ) -> std::result::Result<Result<Reply>, Unanswered> {
        let mut reply = ReplyBuilder::default();
        let frame = self.attempt_call(&Call { argv, entry: None }, wait, &mut reply)?;
        Ok(frame.settle(true, &mut reply).map(|()| reply.finish()))
    }

    fn attempt_call(
        &self,
        call: &Call<'_>,
        wait: Option<Wait>,
        sink: &mut dyn ReplySink,
    ) -> std::result::Result<Frame, Unanswered> {
        let Servers::One(pool) = &self.shared.servers else {
            return Err(Unanswered::Failed(Error::new(ErrorKind::Unsupported, "a cluster")));
        };
        self.shared.waits.check_open().map_err(Unanswered::Failed)?;
        let mut connection = pool.take().map_err(unconnected)?;
        let waiting = match wait {
            Some(_) => {
                let entered = self.shared.waits.enter(connection.socket());
                Some(entered.map_err(Unanswered::Failed)?)
            }
            None => None,
        };
        let outcome = connection.call(call.argv, call.shape(), wait, sink);
        drop(waiting);
        outcome.inspect(|_| pool.give_back(connection)).map_err(|failure| {
            match (self.shared.waits.check_open(), failure) {
                (Err(closed), _) => Unanswered::Failed(closed),
                (_, CallFailure::NotSent(error)) if error.kind() == ErrorKind::Timeout => {
                    Unanswered::Failed(error)
                }
                (_, CallFailure::NotSent(error)) => Unanswered::Gone(error),
                (_, CallFailure::Lost(error))
                    if call.may_repeat() && error.kind() != ErrorKind::Timeout =>
                {
                    Unanswered::Gone(error)
                }
                (_, lost) => Unanswered::Failed(lost.into_error()),
            }
        })
    }

    /// Runs several commands, as on a connection of their own. They are sent together; `each` is
    /// called after each reply.
    pub(crate) fn pipeline_into<'c, S: ReplySink>(
        &self,
        commands: impl Iterator<Item = Result<Vec<&'c [u8]>>>,
        sink: &mut S,
        each: impl FnMut(&mut S),
    ) -> Result<()> {
        self.session()?.pipeline_into(commands, sink, each)
    }

    /// A connection of its own, for MULTI, WATCH and subscriptions.
    pub fn session(&self) -> Result<RemoteSession> {
        RemoteSession::new(self.clone())
    }

    /// Write commands that are sent together.
    pub fn batch(&self) -> RemoteBatch {
        RemoteBatch::new(self.clone())
    }

    /// Ends all waits of other threads at the servers, and every later call. What was made by
    /// [`Remote::select`] and [`Remote::session`] ends with the store that [`Remote::open`] opened.
    pub fn close(&self) {
        self.shared.waits.close();
    }

    /// Fails once the store was closed, by whatever handle.
    pub(crate) fn check_store_open(&self) -> Result<()> {
        self.shared.store_waits.check_open()
    }

    fn run(&self, call: &Call<'_>, sink: &mut dyn ReplySink) -> Result<Frame> {
        self.shared.waits.check_open()?;
        self.check_writable(call)?;
        match &self.shared.servers {
            Servers::Cluster(cluster) => cluster.run(call, &self.shared.waits, sink),
            Servers::One(pool) => self.run_at_one(pool, call, sink),
        }
    }

    /// Fails for a command that may write to a store that was opened read_only.
    fn check_writable(&self, call: &Call<'_>) -> Result<()> {
        if !self.shared.options.read_only || call.only_reads() || call.is_of_session() {
            return Ok(());
        }
        let message = "the remote store was opened read_only: it takes no writes";
        Err(Error::new(ErrorKind::ReadOnly, message))
    }

    fn run_at_one(&self, pool: &Pool, call: &Call<'_>, sink: &mut dyn ReplySink) -> Result<Frame> {
        let wait = call.wait();
        let mut connection = pool.take()?;
        for last in [false, true] {
            let waiting = match wait {
                Some(_) => Some(self.shared.waits.enter(connection.socket())?),
                None => None,
            };
            let outcome = connection.call(call.argv, call.shape(), wait, sink);
            drop(waiting);
            match outcome {
                Ok(frame) => {
                    pool.give_back(connection);
                    return Ok(frame);
                }
                Err(CallFailure::NotSent(_)) if !last => {
                    drop(connection);
                    connection = pool.fresh()?;
                }
                Err(CallFailure::Lost(error))
                    if !last && call.only_reads() && error.kind() != ErrorKind::Timeout =>
                {
                    drop(connection);
                    connection = pool.fresh()?;
                }
                Err(failure) => {
                    self.shared.waits.check_open()?;
                    return Err(failure.into_error());
                }
            }
        }
        Err(Error::new(ErrorKind::Io, format!("{} does not answer", connection.peer())))
    }

    /// A connection that no other call uses. It waits for a node that takes over.
    fn own_connection(&self, slot: Option<u16>) -> Result<Connection> {
        self.shared.waits.check_open()?;
        match &self.shared.servers {
            Servers::One(pool) => pool.take(),
            Servers::Cluster(cluster) => cluster.connect(slot, &self.shared.waits),
        }
    }

    /// A connection like that of [`Remote::own_connection`], unless the node does not answer.
    fn own_connection_once(&self, slot: Option<u16>) -> Result<Connection> {
        match &self.shared.servers {
            Servers::One(pool) => pool.take(),
            Servers::Cluster(cluster) => cluster.connect_once(slot),
        }
    }

    /// Gives back a connection of [`Remote::own_connection`] that is as it was.
    fn give_back(&self, connection: Connection) {
        if let Servers::One(pool) = &self.shared.servers {
            pool.give_back(connection);
        }
    }

    /// Whether the store is a cluster.
    pub fn is_cluster(&self) -> bool {
        self.cluster().is_some()
    }

    fn cluster(&self) -> Option<&Cluster> {
        match &self.shared.servers {
            Servers::Cluster(cluster) => Some(cluster),
            Servers::One(_) => None,
        }
    }
}

/// Tells a server that is gone from one that refuses, or does not answer.
fn unconnected(error: Error) -> Unanswered {
    const REFUSED: [i32; 4] = [1, 13, 23, 24];
    match error.kind() {
        // No permission, and no descriptors left, do not get better by another holder.
        ErrorKind::Io if !REFUSED.contains(&error.os_errno()) => Unanswered::Gone(error),
        _ => Unanswered::Failed(error),
    }
}
