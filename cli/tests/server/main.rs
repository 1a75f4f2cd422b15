//! `lsmkv serve` from the outside: the tests start the program and talk to its socket.
//!
//! `LSMKV_WIRE_COMMANDS` sets the number of commands that the differential test compares in each
//! version of the protocol (20,000), `LSMKV_WIRE_SEED` its first seed, `LSMKV_SERVER_KILLS` the
//! number of kills under load (3), `LSMKV_MESSAGE_COMMANDS` the number of commands of the comparison
//! of subscriptions (3,000), `LSMKV_EVENT_COMMANDS` that of key events (3,000),
//! `LSMKV_TRACKING_COMMANDS` that of clients that track keys (4,000), `LSMKV_MESSAGE_SEED`,
//! `LSMKV_EVENT_SEED` and `LSMKV_TRACKING_SEED` what these follow from, `LSMKV_RESTART_MB`
//! the size of a store that is opened again (64; the long form uses 1 GB), `LSMKV_LONG_SET_MB` that of
//! a value that is set (96; the long form uses 512). `LSMKV_SIEGE=long` makes attacks last longer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "a test may")]
#![allow(clippy::cast_possible_truncation, reason = "tests use small numbers")]

mod admin;
mod blocking;
mod clients;
mod command_batch;
mod differential;
mod durability;
mod hash_flood;
mod hostile;
mod key_events;
mod like_redis;
mod long_sets;
mod long_strings;
mod many_clients;
mod memory;
mod messages;
mod monitor;
mod protocol;
mod replies;
mod scripts;
mod siege;
mod stories;
mod support;
mod tracking;
mod tracking_order;

#[path = "../../../tests/differential/check.rs"]
mod check;
#[path = "../../../tests/support/flood_keys.rs"]
mod flood_keys;
#[path = "../../../tests/differential/grammar.rs"]
mod grammar;
#[allow(dead_code, reason = "the differential test of the library uses the rest")]
#[path = "../../../tests/differential/plan.rs"]
mod plan;
#[rustfmt::skip]
#[path = "../../../tests/differential/pools.rs"]
mod pools;
#[path = "../../../tests/differential/resp.rs"]
mod resp;
#[allow(dead_code, reason = "the differential test of the library uses the rest")]
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
