//! What the fuzz targets call. `damage.rs`, `pairs.rs` and `targets.rs` are compiled into
//! `tests/fuzz_corpus.rs` too, and `cli/src/fuzzing.rs` into the tests of the program; both run the
//! corpora without a fuzzer.

pub use lsmkv::engine::fuzzing as engine;

pub mod damage;
pub mod pairs;
pub mod targets;

// The program is no library. Its parsers are compiled here, under the names that they know.
#[allow(dead_code, unused_imports)]
#[path = "../../../cli/src/failure.rs"]
mod failure;
#[path = "../../../cli/src/fuzzing.rs"]
pub mod program;
#[allow(dead_code, unused_imports)]
#[path = "../../../cli/src/rdb/mod.rs"]
mod rdb;
#[allow(dead_code, unused_imports)]
#[path = "../../../cli/src/transfer/mod.rs"]
mod transfer;
