//! Sorted tables: immutable files of entries in internal order (docs/FORMAT.md, "Sorted tables").
//!
//! | file | what it holds |
//! |---|---|
//! | `format` | footer, block trailer, checksums |
//! | `block`, `block_builder`, `block_cursor` | a data block: reading, writing, walking |
//! | `index` | separators of the data blocks, on disk and in memory |
//! | `filter` | the bloom filter |
//! | `properties` | what a table says about itself, and collectors that add to it |
//! | `sink`, `writer` | writing a table |
//! | `load`, `table`, `cursor`, `verify` | reading one |
//! | `salvage` | reading what is left of a damaged one |

pub(crate) mod block;
mod block_builder;
mod block_cursor;
mod cursor;
mod filter;
mod format;
mod index;
mod load;
mod properties;
mod salvage;
mod sink;
mod table;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub use block::Block;
pub use cursor::TableCursor;
pub use properties::{Collector, Properties};
pub use salvage::{TableSalvage, Unreadable};
pub use table::{Hit, Table, TableCounters};
pub use writer::{TableSummary, TableWriter, WriterOptions};
