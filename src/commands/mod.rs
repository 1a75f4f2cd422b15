//! Commands by name: their schema, arguments and replies. Nothing here touches storage.
//!
//! To add a regular command, write an entry in `schema`, a method on `Tx` in `types` and a test,
//! then run `make generate`. A command with an odd grammar also needs a parser in `parse`. A
//! command of one value returns a [`Reply`]. One that may reply with several writes them to a
//! [`ReplySink`]: as it walks (`stream`), or once it has collected them (`write_to`).

pub(crate) mod args;
mod batch;
mod blocking;
mod bound;
mod catalog;
mod dispatch;
pub(crate) mod entry;
mod generated;
mod parse;
mod pipeline;
mod prefetch;
pub(crate) mod quoted_words;
mod reply;
mod reply_builder;
mod schema;
mod script_calls;
pub(crate) mod script_log;
pub(crate) mod scripts;
pub(crate) mod session;
mod sink;
#[cfg(all(feature = "remote", feature = "server"))]
mod stored_batch;
pub(crate) mod stream;
mod syntax;
mod write_to;

pub use batch::Batch;
pub use blocking::{BlockingPop, PopOutcome, WaitingPop};
pub use catalog::{Call, CommandInfo, SessionCommandInfo, commands, session_commands};
#[cfg(feature = "remote")]
pub(crate) use dispatch::{find, keys_of, name_of, refuse_session};
pub(crate) use generated::dispatch as entries;
pub use reply::Reply;
pub(crate) use reply_builder::ReplyBuilder;
pub use schema::connection::ConnectionCommand;
pub use schema::spec::KeyPositions;
pub use script_calls::{RestorePolicy, Script};
pub(crate) use scripts::ScriptEngine;
#[cfg(feature = "server")]
pub(crate) use session::LongValue;
pub use session::{AbandonedCommands, Session, SessionTrackingState};
pub use sink::{Head, ReplySink};
#[cfg(all(feature = "remote", feature = "server"))]
pub(crate) use stored_batch::StoredBatch;
pub(crate) use write_to::{InPairs, WriteTo};
