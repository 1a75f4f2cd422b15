//! Versions: the set of files that make up the store, recorded as a log of edits.
//!
//! - [`levels`]: [`Version`], the tables of all trees by level; `level_sums`, `weights`: their weights;
//! - [`edit`]: one change of it, and its stored form; `apply`: the version after an edit;
//! - [`file`]: a table with its metadata and reader; [`opener`]: opens and deletes table files;
//! - [`manifest_file`]: a manifest as a file of opaque, framed payloads;
//! - `manifest`: the manifest of an open store, to which edits are appended;
//! - [`current`]: the file CURRENT, which names the current manifest.

mod apply;
mod bounds;
pub mod current;
pub mod edit;
pub mod file;
mod level_sums;
pub mod levels;
mod manifest;
pub mod manifest_file;
pub mod opener;
mod weights;

pub use bounds::KeyBounds;
pub use current::read_current;
pub use edit::{LEVELS, LogState, VersionEdit};
pub use file::{FileMeta, TableFile};
pub use levels::{Levels, Version};
pub(crate) use manifest::Manifest;
pub use manifest_file::{ManifestWriter, read_manifest, write_manifest_of_copy};
pub use opener::TableOpener;
