//! lsmkv: an embedded, persistent store of Redis data structures. Linked like SQLite, used like
//! Redis, sized like RocksDB.
//!
//! The layers, top down; each may import only those below it (see docs/ARCHITECTURE.md):
//! `ffi` (the C ABI), `commands`, `types` (Redis semantics), `encoding`, `engine`, `io`.

pub mod engine;
mod error;
pub mod io;
mod options;

pub use error::{Error, ErrorKind, Result};
pub use options::{Compression, Description, Options, SyncMode};
