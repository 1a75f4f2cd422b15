//! RESP, the protocol of Redis, in versions 2 and 3: parsing of requests and writing of replies.

mod growth;
mod inline;
mod request;
#[cfg(test)]
mod streamed_replies;
mod writer;

pub(crate) use growth::GrowthLimit;
pub(crate) use inline::split as split_inline;
pub(crate) use request::{Limits, Parsed, RequestReader};
pub(crate) use writer::{Protocol, Writer};
