//! Parsers of commands with an odd grammar. The entry in the schema gives the reason. Each family
//! has one file, and each function has the name of its command.

pub(super) mod bits;
pub(super) mod blocking;
pub(super) mod hash;
pub(super) mod key;
pub(super) mod list;
pub(super) mod message;
pub(super) mod scan;
pub(super) mod script;
pub(super) mod set;
pub(super) mod sort;
pub(super) mod string;
pub(super) mod zset;
