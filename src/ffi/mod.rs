//! The C ABI. One file a C concept; `include/lsmkv.h` is generated from here (`make generate`).
//!
//! Every function follows the same steps: empty the outputs, enter the handle, check pointers
//! and lengths, call the layer below, fill the outputs, leave. Whatever goes wrong on the way, a
//! panic included, becomes a status and a message.

mod boundary;
mod buffer;
mod db;
mod err;
mod fork;
mod gate;
mod handle;
mod options;
mod slice;
mod status;
mod upkeep;
mod version;
