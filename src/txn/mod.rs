//! How commands run: [`Tx`], and the handles that run them.
//!
//! - `tx`: one command's or transaction's view of the store; `overlay`: its pending writes;
//!   `writes`: those of a tree; `pending_write`: one of them; `write_filter`: which keys they may hold; `walk`: rows in order;
//!   `counted`: how many rows there are and which is the nth; `prefetch`: rows that are needed soon;
//!   `touched`: the keys that a transaction depends on;
//! - `store`: what all handles share; `dependents`: what a close of the store ends first; `stripes`:
//!   locks by key; `execution`: reads, writes, commits;
//! - `snapshot`: read points that stay; `frozen`: rows that an iterator reads later; `running`,
//!   `transaction`: transactions; `watch`: WATCH;
//! - `script`: how a script runs, under the locks of its keys or alone; `script_locks`: which locks
//!   slow scripts hold;
//! - `conflicts`, `revalidation`: whether a key was changed meanwhile;
//! - `refresh`: how a store beside a writer moves on;
//! - `outgoing`, `delivery`: messages, key events and news of cached keys that follow a commit;
//! - `db`, `view`, `ticket`: the handle that users hold, what it reads, and its commits.

pub(crate) mod collection;
pub(crate) mod conflicts;
mod counted;
pub(crate) mod db;
mod delivery;
mod dependents;
pub(crate) mod execution;
mod frozen;
mod outgoing;
mod overlay;
mod pending_write;
mod prefetch;
mod record;
mod refresh;
mod revalidation;
mod running;
mod script;
mod script_locks;
mod snapshot;
pub(crate) mod store;
mod stripe_set;
mod stripes;
mod ticket;
mod touched;
mod transaction;
mod tx;
mod view;
mod walk;
pub(crate) mod watch;
mod write_filter;
mod writes;

#[cfg(loom)]
pub use conflicts::models as conflict_models;
pub use db::Db;
#[cfg(feature = "server")]
pub(crate) use dependents::Dependent;
pub(crate) use execution::Done;
pub(crate) use frozen::FrozenRows;
pub(crate) use outgoing::Origin;
pub(crate) use record::Record;
pub use ticket::Ticket;
pub use transaction::Transaction;
pub(crate) use tx::{ScriptBudget, Tx};
pub(crate) use walk::{PackedRows, Walk};
