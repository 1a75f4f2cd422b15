//! A store that several processes share: one of them holds it, the others are its clients.
//!
//! - `store`: who holds the store, and how another process takes over;
//! - `session`: commands that belong together, and messages;
//! - `batch`: write commands that run together;
//! - `view`: snapshots and transactions, `iter`: walks over keys, `ticket`: waits for the device;
//! - `keeper`: the connection by which the holder keeps these for a client.
//!
//! Whoever gets the lock of the directory is the holder. It runs commands itself and serves the
//! others on a Unix socket in the directory. A client whose holder is gone tries to get the lock; the
//! one that does recovers the store and serves the rest.
//!
//! Invariants:
//! - A command runs at most once, unless it only reads. A reply that was lost is an error.
//! - What the holder keeps for a client ends with the connection. The next call on it is an error, and
//!   never one on another connection.
//! - A process that holds the store holds it until it closes its handle or ends.
//! - Nothing here waits for a lock of parking_lot while the process is a client: a forked child may
//!   be one, and the waiting threads of its parent are still listed there.

mod batch;
mod iter;
mod keeper;
mod session;
mod store;
mod ticket;
mod view;

pub use batch::SharedBatch;
pub use iter::SharedIter;
pub use session::SharedSession;
pub(crate) use session::{SessionEnd, Together};
pub use store::SharedStore;
pub(crate) use store::refuse_private;
pub use view::{SharedTransaction, SharedView};
