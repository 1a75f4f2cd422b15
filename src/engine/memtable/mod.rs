//! What has been written and not yet flushed: an arena of entries, a hash index for point reads
//! and an ordered index for scans.
//!
//! Measured choice (architecture): appending to an arena and a hash chain costs a fifth of a
//! skip-list insert, and most memtables are never scanned. So the order is built only when asked:
//! by a scan, by the flush, and for a while after a scan by the writer, so that the next scan has
//! little to catch up.
//!
//! Threads: one writer at a time (a lock), any number of readers. Point reads take no lock.

mod arena;
mod cursor;
mod entries;
mod order;
mod standing;

pub use cursor::MemtableCursor;
pub use entries::{Found, Memtable};
pub(crate) use order::RUN;
