//! RESP, the protocol of Redis: requests are read, replies written, in version 2 and 3.

mod inline;
mod request;
mod writer;

pub(crate) use inline::split as split_inline;
pub(crate) use request::{Limits, Parsed, RequestReader};
pub(crate) use writer::{Protocol, Writer};
