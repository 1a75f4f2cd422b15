//! Commands by name: the table, the argument grammar, the replies. No storage.
//!
//! Adding a regular command: a row in `table`, a method on `Tx` in `types`, a test, and
//! `make generate`. A command with options has a parser of its own in `irregular`. A reply is a
//! [`Reply`], or goes to a [`ReplySink`] piece by piece: `stream`.

mod ahead;
pub(crate) mod args;
mod batch;
mod catalog;
mod dispatch;
mod generated;
mod irregular;
mod pipeline;
mod plan;
mod reply;
pub(crate) mod session;
mod sink;
mod spec;
mod stream;
mod table;

pub use batch::Batch;
pub use catalog::{
    Call, CommandInfo, KeyPositions, SessionCommandInfo, commands, session_commands,
};
pub use reply::Reply;
pub(crate) use reply::{IntoReply, Members};
pub use session::Session;
pub use sink::{Head, ReplySink};
