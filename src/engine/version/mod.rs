//! Versions: which files make up the store, as a log of edits.
//!
//! - [`manifest_file`]: the manifest as a file of opaque, framed payloads;
//! - [`current`]: the file CURRENT, which names the manifest in force.

pub mod current;
pub mod manifest_file;
