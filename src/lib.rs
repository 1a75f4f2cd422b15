//! lsmkv is an embedded, persistent store of Redis data structures. It is linked like SQLite, used
//! like Redis, and sized like RocksDB.
//!
//! ```
//! use lsmkv::{Db, Options};
//!
//! let db = Db::open(":memory:", Options::default())?;
//! db.set(b"greeting", b"hello")?;
//! assert_eq!(db.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
//! db.hset(b"user:1", &[(&b"name"[..], &b"Ada"[..])])?;
//! assert_eq!(db.hlen(b"user:1")?, 1);
//! db.close()?;
//! # Ok::<(), lsmkv::Error>(())
//! ```
//!
//! A path instead of `:memory:` opens a store on disk. The layers, from top to bottom, are `ffi`
//! (the C ABI), `server` and `remote`, `commands`, `admin`, `reclaim`, `types` (the semantics of Redis), `txn`,
//! `messages`, `keyspace`, `encoding`, `engine` and `io`. Each imports only those below it; docs/ARCHITECTURE.md describes them.

#![cfg_attr(
    not(all(feature = "scripting", feature = "server")),
    expect(
        dead_code,
        reason = "the layers below are ready for scripts and servers in every build"
    )
)]
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests use small numbers"))]

// Hidden modules are no part of the API. Tests, the program and the benchmarks use them.
mod admin;
mod commands;
#[doc(hidden)]
pub mod encoding;
#[doc(hidden)]
pub mod engine;
mod error;
#[expect(
    non_camel_case_types,
    unreachable_pub,
    dead_code,
    reason = "C names; what is public here is public to C, and some constants are only for C"
)]
mod ffi;
#[doc(hidden)]
pub mod io;
mod keyspace;
mod messages;
mod options;
#[cfg(all(feature = "remote", feature = "server"))]
mod places;
#[doc(hidden)]
pub mod rdb;
mod reclaim;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod resp;
#[cfg(feature = "scripting")]
mod scripting;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod server;
mod sync;
#[cfg(any(feature = "remote", feature = "server"))]
mod tls;
mod txn;
pub mod types;

pub use admin::{Stat, StatValue, TableInfo};
pub use commands::{
    AbandonedCommands, Batch, BlockingPop, Call, CommandInfo, Commands, ConnectionCommand, Head,
    KeyPositions, PopOutcome, Reply, ReplySink, RestorePolicy, ScoredMembers, Script, Session,
    SessionCommandInfo, SessionCommands, SessionTrackingState, WaitingPop, commands,
    session_commands,
};
pub use engine::CacheFill;
pub use error::{Error, ErrorKind, Result};
pub use keyspace::limits::Limits;
pub use messages::{OutputLimits, TrackingCounts, normalized_event_classes};
pub use options::{ClientCertificates, Compression, Description, Options, SyncMode};
#[cfg(all(feature = "remote", feature = "server"))]
pub use places::{
    SharedBatch, SharedIter, SharedSession, SharedStore, SharedTransaction, SharedView,
};
#[cfg(feature = "remote")]
pub use remote::{Address, Endpoint, Place, Remote, RemoteBatch, RemoteSession};
#[cfg(feature = "server")]
pub use server::RunningServer as Server;
pub use txn::{Db, Ticket, Transaction};
pub use types::Type;

/// What `tests/schedules.rs` runs under loom.
#[cfg(loom)]
#[doc(hidden)]
pub mod models {
    pub use crate::engine::models as engine;
    pub use crate::ffi::models as slot;
    pub use crate::txn::conflict_models as conflicts;
}
/// What runs scripts. Commands call it, though it is a layer above them.
#[cfg(feature = "scripting")]
const SCRIPT_ENGINE: Option<&dyn commands::ScriptEngine> = Some(&scripting::LuaEngine);
#[cfg(not(feature = "scripting"))]
const SCRIPT_ENGINE: Option<&dyn commands::ScriptEngine> = None;

/// The `lsmkv_db *` of a store that was opened from Rust. Tests of the C ABI open it on a file
/// system with faults; C has no name for this.
#[doc(hidden)]
pub fn handle_for_c(db: Db) -> Result<*mut std::ffi::c_void> {
    ffi::handle_of(db).map(<*mut _>::cast)
}
