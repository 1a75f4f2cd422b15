//! Memtables: writes that are not flushed yet. Each has an arena of entries, a hash index for
//! point reads, and an order for scans.
//!
//! Appending to an arena and a hash chain costs a fifth of an insert into a skip list, and most
//! memtables are never scanned. So the writer only assigns entries to runs of neighbours, many at a
//! time. A run is sorted when a scan or a flush reaches it.
//!
//! - `arena`, `entries`: memory, and the layout of an entry in it;
//! - `order`: the addresses of entries in runs, which are sorted on demand;
//! - `table`: [`Memtable`], which ties these together;
//! - `pinned_value`: values that outlive the memtable;
//! - `current_entry`, `cursor`: walking a memtable;
//! - `weights`: sums of the weights of entries;
//! - `set`: [`MemtableSet`], the memtables of all trees;
//! - `held`: which of those readers still keep in memory.
//!
//! Threads: one writer at a time, which takes a lock, and any number of readers. Point reads take
//! no lock.

mod arena;
mod buckets;
mod current_entry;
mod cursor;
mod entries;
mod held;
mod mapped;
#[cfg(loom)]
pub mod models;
mod order;
mod pinned_value;
mod set;
mod table;
mod weights;

pub use cursor::MemtableCursor;
pub use entries::MemtableEntry;
pub(crate) use held::HeldMemtables;
pub(crate) use order::RUN;
pub use set::MemtableSet;
pub use table::Memtable;
