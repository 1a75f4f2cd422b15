//! Dump files of Redis (RDB), read as a stream.
//!
//! The reader supports the five types in all encodings of versions 2.0 to 7.4, expiry, and several
//! databases. A hash field with an expiry of its own (7.4) is imported without it, or left out if
//! it has expired. Streams, modules and functions are skipped and counted. The checksum at the end
//! is verified.
//!
//! A claimed length allocates nothing before the bytes arrive. Memory is bounded by one chunk and
//! one packed node, which Redis keeps small.

mod field_expiry;
mod input;
mod members;
mod packed;
mod skip;
mod source;

pub(crate) use source::RdbSource;

#[cfg(test)]
mod tests;
