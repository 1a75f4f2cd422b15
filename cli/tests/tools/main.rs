//! The tools as programs: their output, the files they leave, their exit status.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "a test fails by panicking, and uses small numbers"
)]

mod damaged_dumps;
mod dump;
mod import_export;
mod inspect;
mod interrupt;
mod no_store;
#[path = "../../../tests/toolchain/programs.rs"]
mod programs;
mod readme;
mod redis;
mod repair;
mod resume;
mod shell;
mod support;
mod tunnel;
mod watch;
