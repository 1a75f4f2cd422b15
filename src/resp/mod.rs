//! RESP, the protocol of Redis, in versions 2 and 3: parsing of requests and writing of replies.

mod growth;
mod request;
#[cfg(test)]
mod streaming_tests;
mod writer;

pub use crate::commands::quoted_words::split as split_inline;
pub(crate) use growth::GrowthLimit;
pub use request::{Limits, Parsed, ProtocolError, RequestReader};
pub(crate) use writer::{Protocol, Writer};
