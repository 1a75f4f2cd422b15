//! Written by `make generate` from the schema and committed; a test fails when it is stale.

pub(crate) mod dispatch;
mod methods;
mod typed;

pub use typed::{Commands, ScoredMembers, SessionCommands};
