//! The tools as programs: their output, the files they leave, their exit status.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "a test fails by panicking, and uses small numbers"
)]

#[path = "../../../tests/support/certificates.rs"]
mod certificates;
mod damaged_dumps;
mod dump;
mod import_export;
mod inspect;
mod interrupt;
mod long_strings;
mod no_store;
mod places;
mod readme;
mod redis;
mod repair;
mod resume;
#[path = "../../../tests/servers/mod.rs"]
mod servers;
mod shared;
mod shell;
mod support;
mod tls;
#[path = "../../../tests/toolchain/programs.rs"]
mod toolchain;
mod tunnel;
mod watch;
