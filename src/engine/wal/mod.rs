//! The log: every commit is appended here before it is applied, and replayed from here at open.
//!
//! - [`position`]: where a record ends, the currency of everything below;
//! - [`header`], [`record`]: the bytes (docs/FORMAT.md, chapter Log);
//! - [`segment`], [`spares`]: files of fixed size, made ready before they are needed;
//! - [`sync_file`]: the file SYNC, evidence of how far log and manifest were synced;
//! - [`durability`]: flushes shared by the writers that wait for one;
//! - [`log`]: the append side that ties these together;
//! - [`reader`], [`scan`], [`recovery`]: reading it all back, and telling a torn tail from damage.

#[cfg(test)]
mod crash_tests;
pub mod durability;
pub mod header;
pub mod log;
pub mod position;
pub mod reader;
pub mod record;
pub mod recovery;
pub mod scan;
pub mod segment;
pub mod spares;
pub mod sync_file;
#[cfg(test)]
pub(crate) mod testing;

pub use log::{KeptLog, Log};
pub use position::{Cut, LogPosition};
pub use recovery::{Recovered, recover, seal};
pub use segment::LogEnv;
pub use sync_file::{SyncFile, SyncState};
