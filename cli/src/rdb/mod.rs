//! Dump files of Redis (RDB), read as a stream.
//!
//! The five types in all encodings that versions 2.0 to 7.4 write, expiry, several databases;
//! fields of hashes with an expiry of their own (7.4) come without it, unless they have expired by
//! now: then they stay away. Streams, modules and
//! functions are skipped and counted. The checksum at the end is compared.
//!
//! Nothing a length claims is allocated before the bytes are there; memory is that of one chunk and
//! of one packed node, which Redis keeps small.

mod blob;
mod checksum;
mod field_times;
mod input;
mod lzf;
mod members;
mod skip;
mod source;

pub(crate) use source::RdbSource;

#[cfg(test)]
mod tests;
