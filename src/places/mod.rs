//! A store that several processes share: one of them holds it, the others are its clients.
//!
//! - `store`: who holds the store, and how another process takes over;
//! - `session`: commands that belong together, and messages;
//! - `batch`: write commands that run together.
//!
//! Whoever gets the lock of the directory is the holder. It runs commands itself and serves the
//! others on a Unix socket in the directory. A client whose holder is gone tries to get the lock; the
//! one that does recovers the store and serves the rest.
//!
//! Invariants:
//! - A command runs at most once, unless it only reads. A reply that was lost is an error.
//! - A process that holds the store holds it until it closes its handle or ends.
//! - Nothing here waits for a lock of parking_lot while the process is a client: a forked child may
//!   be one, and the waiting threads of its parent are still listed there.

mod batch;
mod session;
mod store;

pub use batch::SharedBatch;
pub use session::SharedSession;
pub(crate) use session::{SessionEnd, Together};
pub use store::SharedStore;
