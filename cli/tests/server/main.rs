//! `lsmkv serve` as clients meet it: the program is started, and spoken to over its socket.
//!
//! `LSMKV_WIRE_COMMANDS` says how many commands the judge compares in each version of the protocol
//! (20,000), `LSMKV_WIRE_SEED` where to begin, `LSMKV_SERVER_KILLS` how often the server is killed
//! under load (3), `LSMKV_RESTART_MB` how large a store is opened again (64; 1 GB is the long form).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "a test may")]
#![allow(clippy::cast_possible_truncation, reason = "tests use small numbers")]

mod admin;
mod blocking;
mod clients;
mod crowd;
mod durability;
mod hostile;
mod judge;
mod protocol;
mod replies;
mod stories;
mod support;
mod together;

#[path = "../../../tests/differential/check.rs"]
mod check;
#[path = "../../../tests/differential/grammar.rs"]
mod grammar;
#[allow(dead_code, reason = "the judge of the library uses the rest")]
#[path = "../../../tests/differential/plan.rs"]
mod plan;
#[rustfmt::skip]
#[path = "../../../tests/differential/pools.rs"]
mod pools;
#[path = "../../../tests/differential/resp.rs"]
mod resp;
#[allow(dead_code, reason = "the judge of the library uses the rest")]
#[path = "../../../tests/differential/sequence.rs"]
mod sequence;
#[path = "../../../tests/differential/server.rs"]
mod server;
#[rustfmt::skip]
#[path = "../../../tests/differential/table.rs"]
mod table;
#[path = "../../../tests/toolchain/programs.rs"]
mod toolchain;
#[path = "../../../tests/differential/values.rs"]
mod values;
