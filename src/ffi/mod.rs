//! The C ABI. One file per C concept; `include/lsmkv.h` is generated from here (`make generate`).
//!
//! The functions of commands are generated from the schema; `odd` has the bodies that no rule
//! covers. Every function follows the same steps: empty the outputs, enter the handle, check
//! pointers and lengths, call the layer below, fill the outputs, leave. Every failure, a panic
//! included, becomes a status and a message.

mod argv;
#[cfg(feature = "remote")]
mod away;
mod batch;
mod bitfield;
mod boundary;
mod buffer;
mod command;
mod db;
mod err;
mod flags;
mod fork;
mod gate;
mod generated;
mod handle;
mod handle_kind;
mod iter;
mod odd;
mod options;
mod output;
mod packed;
#[cfg(feature = "remote")]
mod remote;
mod reply;
mod reply_writer;
mod server;
mod session;
#[cfg(all(feature = "remote", feature = "server"))]
mod shared;
mod slice;
mod slot;
mod status;
mod target;
mod transaction;
mod upkeep;
mod version;
mod views;

pub(crate) use db::handle_of;
#[cfg(loom)]
pub use slot::models;
