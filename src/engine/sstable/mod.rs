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
//! | `loader`, `table`, `cursor`, `weights`, `verify` | reading a table |
//! | `salvage` | reading what is left of a damaged table |

pub(crate) mod block;
mod block_builder;
mod block_cursor;
mod block_sums;
mod cache;
mod cursor;
mod filter;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod index;
mod loader;
mod properties;
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
pub use cursor::TableCursor;
pub use properties::{Collector, CollectorFactory, Properties};
pub use salvage::{TableSalvage, Unreadable};
pub use table::{Hit, Table, TableCounters};
pub use writer::{TableSummary, TableWriter, WriterOptions};
