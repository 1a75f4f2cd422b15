//! A record of the meta tree.

use bytes::{Buf, Bytes};

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
    pub(crate) fn value(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The value of a string, for keeping.
    pub(crate) fn into_value(self) -> Bytes {
        let mut value = self.bytes;
        value.advance(HEADER_BYTES.min(value.len()));
        value
    }

    /// Decodes the part of a collection's record after the header.
    pub(crate) fn body(&self, key: &[u8]) -> Result<Body> {
        Body::decode(self.header.kind, &self.bytes).map_err(|why| malformed(key, why))
    }
}
