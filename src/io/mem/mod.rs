//! A strict file system in memory. It tracks what is durable and can show what a power cut would
//! leave.
//!
//! - `handle.rs`: [`MemFs`], the shared handle, and its files
//! - `entry.rs`: what a name refers to; `tree.rs`: directories, names, links
//! - `space.rs`: writes within the capacity, and freeing the space of files
//! - `journal.rs`: changes of names that are not durable yet
//! - `content.rs`, `pages.rs`: one file's bytes, current and durable
//! - `crash.rs`: what is left after a crash
//! - `capture.rs`: the file system as it was at the k-th sync
//!
//! It serves the crash, model and fault tests, and stores opened as `:memory:`
//! ([`MemFs::untracked`]).
//!
//! Threads: one reader-writer lock guards a whole file system, so a clone is a consistent state of
//! it.

mod capture;
mod content;
mod crash;
mod entry;
mod handle;
mod journal;
mod pages;
mod space;
mod tree;

#[cfg(test)]
mod tests;

pub use capture::SyncCapture;
pub use crash::CrashMode;
pub use handle::{MemFs, SyncPoint, SyncStage};
