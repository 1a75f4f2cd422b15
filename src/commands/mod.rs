//! Commands by name: the table, the argument grammar, the replies. No storage.
//!
//! Adding a regular command: a row in `table`, a method on `Tx` in `types`, a test, and
//! `make generate`. A command with options has a parser of its own in `irregular`.

pub(crate) mod args;
mod dispatch;
mod generated;
mod irregular;
mod reply;
mod spec;
mod table;

pub use reply::Reply;
