//! File systems, clocks and byte codecs: everything below the engine. This layer imports no other.

pub mod beside;
pub mod clock;
pub mod codec;
pub mod fault;
pub mod fs;
pub mod lock;
pub mod mem;
pub mod real;
pub mod splitmix;
