//! The write-ahead log: every commit is appended to it before it is applied, and replayed from it
//! when the store is opened.
//!
//! - [`position`]: positions in the log;
//! - [`header`], [`record`]: the bytes of a file (docs/FORMAT.md, chapter Log);
//! - [`segment`], [`segment_pool`]: files of fixed size, which are prepared before they are needed;
//! - [`sync_file`]: the file SYNC, which records how far log and manifest were synced;
//! - [`durability`]: syncs shared by the writers that wait for one;
//! - [`log`]: appends to the log, and ties these together;
//! - [`reader`], [`scan`], [`recovery`]: read the log, and tell a torn tail from damage;
//! - `follow`: reads what another process appends.

#[cfg(test)]
mod crash_tests;
pub mod durability;
pub mod follow;
pub mod header;
pub mod log;
pub mod position;
pub mod reader;
pub mod record;
pub mod recovery;
pub mod scan;
pub mod segment;
pub mod segment_pool;
pub mod sync_file;
#[cfg(test)]
pub(crate) mod testing;

pub use follow::follow;
pub use log::{Log, SegmentPin};
pub use position::{Cut, LogPosition};
pub use recovery::{Recovered, recover, seal};
pub use segment::LogEnv;
pub use sync_file::{SyncFile, SyncState};
