//! Threads in orders that a checker chooses. Not part of `cargo test`: the whole library is compiled
//! with the locks and atomics of the checker (src/sync).
//!
//! `make loom` runs the lock-free parts in every order that the memory model allows, up to a number
//! of preemptions. `make shuttle` runs a whole store in random orders.
#![cfg(any(loom, shuttle))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

#[cfg(loom)]
mod every_order;
#[cfg(shuttle)]
mod random_orders;
#[cfg(shuttle)]
mod story;
