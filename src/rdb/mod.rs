//! What Redis's dump files and payloads are made of: their checksum and their compression.

pub mod checksum;
pub mod lzf;
