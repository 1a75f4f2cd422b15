//! A strict file system in memory: it knows what is durable and can show what a power cut leaves.
//!
//! - `handle.rs`: [`MemFs`], the shared handle, and its files
//! - `tree.rs`: directories, names, links
//! - `space.rs`: writes within the capacity, and when a file's space is free again
//! - `journal.rs`: changes of names that no directory sync has made durable
//! - `content.rs`, `pages.rs`: one file's bytes, current and durable
//! - `crash.rs`: what is left after a crash
//! - `capture.rs`: the file system as it was at the k-th sync
//!
//! It serves the crash, model and fault tests, and stores opened as `:memory:`
//! ([`MemFs::untracked`]).
//!
//! Threads: one reader-writer lock guards a whole file system, so a clone is one moment of it.

mod capture;
mod content;
mod crash;
mod handle;
mod journal;
mod pages;
mod space;
mod tree;

#[cfg(test)]
mod tests;

pub use capture::{SyncCapture, SyncPoint, SyncStage};
pub use crash::CrashMode;
pub use handle::MemFs;
