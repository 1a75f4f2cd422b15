//! Redis servers as sources and sinks.

mod info;
mod sink;
mod source;

use bytes::Bytes;

use super::Command;

pub(crate) use sink::RedisSink;
pub(crate) use source::RedisSource;

/// A command with these arguments.
fn words(texts: &[&[u8]]) -> Command {
    texts.iter().map(|text| Bytes::copy_from_slice(text)).collect()
}
