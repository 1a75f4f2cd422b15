//! RESP, the protocol of Redis, in versions 2 and 3: parsing of requests and writing of replies.

mod growth;
mod inline;
mod request;
#[cfg(test)]
mod streaming_tests;
mod writer;

pub(crate) use growth::GrowthLimit;
pub use inline::split as split_inline;
pub use request::{Limits, Parsed, ProtocolError, RequestReader};
pub(crate) use writer::{Protocol, Writer};
