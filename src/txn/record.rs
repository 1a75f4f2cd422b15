//! A record of the meta tree.

use bytes::Bytes;

use crate::encoding::meta::{Body, HEADER_BYTES, Header};
use crate::error::Result;
use crate::keyspace::errors::malformed;

/// The record of a key that exists.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) header: Header,
    pub(crate) bytes: Bytes,
}

impl Record {
    /// The part after the header: the value of a string.
    pub(crate) fn value(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES.min(self.bytes.len())..)
    }

    /// Decodes the part of a collection's record after the header.
    pub(crate) fn body(&self, key: &[u8]) -> Result<Body> {
        Body::decode(self.header.kind, &self.bytes).map_err(|why| malformed(key, why))
    }
}
