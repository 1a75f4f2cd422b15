//! RESP, the protocol of Redis, in versions 2 and 3: parsing of requests and writing of replies.

mod growth;
mod request;
#[cfg(test)]
mod streaming_tests;
mod writer;

pub(crate) use growth::GrowthLimit;
pub use request::{Limits, Parsed, ProtocolError, RequestReader};
pub(crate) use writer::{Protocol, Writer};

/// Splits an inline request into words; `None` if a quote is not closed or not followed by a blank.
pub fn split_inline(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    crate::commands::quoted_words::split(line)
}
