//! Redis servers that keys come from and go to.

mod info;
mod sink;
mod source;

use bytes::Bytes;

use super::Command;

pub(crate) use sink::RedisSink;
pub(crate) use source::RedisSource;

/// A command of these words.
fn words(texts: &[&[u8]]) -> Command {
    texts.iter().map(|text| Bytes::copy_from_slice(text)).collect()
}
