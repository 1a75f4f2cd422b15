//! RESP, the protocol of Redis: requests are read, replies written, in version 2 and 3.

mod growth;
mod inline;
#[cfg(test)]
mod pieces;
mod request;
mod writer;

pub(crate) use growth::Room;
pub(crate) use inline::split as split_inline;
pub(crate) use request::{Limits, Parsed, RequestReader};
pub(crate) use writer::{Protocol, Writer};
