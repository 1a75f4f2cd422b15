//! Sorted tables: immutable files of entries in internal order (docs/FORMAT.md, "Sorted tables").
//!
//! | file | what it holds |
//! |---|---|
//! | `format` | footer, block trailer, checksums |
//! | `block`, `block_builder`, `block_cursor` | a data block: reading, writing, walking |
//! | `cache` | the block cache |
//! | `index`, `block_sums` | the separators and weights of the data blocks, on disk and in memory |
//! | `filter` | the Bloom filter |
//! | `properties` | the properties of a table, and collectors that add to them |
//! | `sink`, `writer` | writing a table |
//! | `loader`, `frame`, `resident` | reading the parts of a table file |
//! | `table`, `hit`, `cursor`, `weights`, `peek`, `verify`, `counters` | reading a table |
//! | `salvage` | reading what is left of a damaged table |

pub(crate) mod block;
mod block_builder;
mod block_cursor;
mod block_sums;
mod cache;
mod counters;
mod cursor;
mod filter;
mod format;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hit;
mod index;
mod loader;
mod peek;
mod properties;
mod resident;
mod salvage;
mod sink;
mod table;
mod verify;
mod weights;
mod writer;

#[cfg(test)]
mod tests;

pub use block::Block;
pub use cache::{BlockCache, CacheFill};
pub use counters::TableCounters;
pub use cursor::TableCursor;
pub(crate) use frame::TAIL_BYTES;
pub use hit::Hit;
pub use properties::{Collector, CollectorFactory, Properties};
pub use salvage::{TableSalvage, Unreadable};
pub use table::Table;
pub use writer::{TableSummary, TableWriter, WriterOptions};
