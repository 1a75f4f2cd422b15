//! lsmkv: an embedded, persistent store of Redis data structures. Linked like SQLite, used like
//! Redis, sized like RocksDB.
//!
//! The layers, top down; each may import only those below it (see docs/ARCHITECTURE.md):
//! `ffi` (the C ABI), `commands`, `types` (Redis semantics), `encoding`, `engine`, `io`.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests use small numbers"))]

mod commands;
pub mod encoding;
pub mod engine;
mod error;
#[expect(
    non_camel_case_types,
    unreachable_pub,
    dead_code,
    reason = "C names; what is public here is public to C, and some constants are only for C"
)]
mod ffi;
pub mod io;
mod options;
pub mod types;

pub use commands::{
    Batch, Call, CommandInfo, Head, KeyPositions, Reply, ReplySink, Session, SessionCommandInfo,
    commands, session_commands,
};
pub use error::{Error, ErrorKind, Result};
pub use options::{Compression, Description, Options, SyncMode};
pub use types::{Db, Ticket, Transaction, Type};

/// The `lsmkv_db *` of a store that was opened from Rust. Tests of the C ABI open it on a file
/// system with faults; C has no name for this.
#[doc(hidden)]
pub fn handle_for_c(db: Db) -> Result<*mut std::ffi::c_void> {
    ffi::handle_of(db).map(<*mut _>::cast)
}
