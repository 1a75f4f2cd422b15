//! Commands by name: their schema, arguments and replies. Nothing here touches storage.
//!
//! To add a regular command, write an entry in `schema`, a method on `Tx` in `types` and a test,
//! then run `make generate`. A command with an odd grammar also needs a parser in `parse`. A
//! command returns a [`Reply`], or writes its reply to a [`ReplySink`] element by element
//! (`stream`).

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
mod reply;
mod reply_builder;
mod schema;
pub(crate) mod session;
mod sink;
pub(crate) mod stream;
mod syntax;

pub use batch::Batch;
pub use blocking::{BlockingPop, PopOutcome, WaitingPop};
pub use catalog::{Call, CommandInfo, SessionCommandInfo, commands, session_commands};
pub(crate) use generated::dispatch as entries;
pub use reply::Reply;
pub(crate) use reply::{IntoReply, Members};
pub use schema::connection::ConnectionCommand;
pub use schema::spec::KeyPositions;
pub use session::Session;
pub use sink::{Head, ReplySink};
