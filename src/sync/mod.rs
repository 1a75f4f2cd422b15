//! Locks, atomics, threads and clocks of what many threads share.
//!
//! In a normal build every name here is that of std, parking_lot or arc-swap. With `--cfg loom` or
//! `--cfg shuttle` it is a stand-in with the same interface (`checked`), so that the checker decides
//! which thread runs next. The tests named `loom_tests` and `tests/schedules.rs` run like that.
//!
//! What is not shared for coordination stays with std: counters, numbers of files, statics.

#[cfg(not(any(loom, shuttle)))]
mod native;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use native::*;

pub(crate) mod background;
pub(crate) mod descriptors;
#[cfg(any(feature = "remote", feature = "server"))]
pub(crate) mod socket_path;
mod spawn;
pub(crate) mod transit;
pub(crate) use spawn::{spawn, without_signals};

#[cfg(any(loom, shuttle))]
mod checked;
#[cfg(any(loom, shuttle))]
pub(crate) use checked::*;
