//! Versions: which files make up the store, as a log of edits.
//!
//! - [`edit`]: one change, and its stored form;
//! - [`file`]: a table with what the manifest knows of it;
//! - [`levels`]: the tables of a tree, by level;
//! - [`manifest_file`]: the manifest as a file of opaque, framed payloads;
//! - [`current`]: the file CURRENT, which names the manifest in force.

pub mod current;
pub mod edit;
pub mod file;
pub mod levels;
pub mod manifest_file;

pub use current::read_current;
pub use edit::{Edit, LEVELS, LogState};
pub use file::{FileMeta, TableFile};
pub use levels::Levels;
pub use manifest_file::{ManifestWriter, read_manifest};
