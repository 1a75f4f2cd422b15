//! The C ABI. One file a C concept; `include/lsmkv.h` is generated from here (`make generate`).
//!
//! Every function follows the same steps: empty the outputs, enter the handle, check pointers
//! and lengths, call the layer below, fill the outputs, leave. Whatever goes wrong on the way, a
//! panic included, becomes a status and a message.

mod batch;
mod bits;
mod boundary;
mod buffer;
mod command;
mod db;
mod err;
mod expire;
mod flags;
mod fork;
mod gate;
mod generated;
mod give;
mod handle;
mod hash;
mod inside;
mod iter;
mod key;
mod list;
mod on;
mod options;
mod packed;
mod reply;
mod scan;
mod set;
mod slice;
mod status;
mod string;
mod transaction;
mod upkeep;
mod version;
mod views;
mod zset;

pub(crate) use db::handle_of;
