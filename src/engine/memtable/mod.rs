//! Memtables: writes that are not flushed yet. Each has an arena of entries, a hash index for
//! point reads, and an order for scans.
//!
//! Appending to an arena and a hash chain costs a fifth of an insert into a skip list, and most
//! memtables are never scanned. So the order is built only on demand: by a scan, by a flush, and
//! for a while after a scan by the writer, so that the next scan has little to sort.
//!
//! - `arena`, `entries`: memory, and the layout of an entry in it;
//! - `order`: the sorted addresses of entries;
//! - `table`: [`Memtable`], which ties these together;
//! - `pinned_value`: values that outlive the memtable;
//! - `current_entry`, `cursor`: walking a memtable;
//! - `set`: [`MemtableSet`], the memtables of all trees.
//!
//! Threads: one writer at a time, which takes a lock, and any number of readers. Point reads take
//! no lock.

mod arena;
mod current_entry;
mod cursor;
mod entries;
#[cfg(loom)]
pub mod models;
mod order;
mod pinned_value;
mod set;
mod table;

pub use cursor::MemtableCursor;
pub use entries::MemtableEntry;
pub(crate) use order::RUN;
pub use set::MemtableSet;
pub use table::Memtable;
