//! A record of the meta tree.

use bytes::{Buf, Bytes};

use crate::encoding::chunked::{StringBody, is_chunked};
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
    /// The value of a string; if it is in chunks, the record itself.
    #[inline]
    pub(crate) fn whole_value(self) -> std::result::Result<Bytes, Self> {
        if is_chunked(&self.bytes) {
            return Err(self);
        }
        let mut value = self.bytes;
        value.advance(HEADER_BYTES.min(value.len()));
        Ok(value)
    }

    /// The value of a string, or where it is.
    #[inline]
    pub(crate) fn into_string(self, key: &[u8]) -> Result<StringBody> {
        StringBody::decode(self.bytes).map_err(|why| malformed(key, why))
    }

    /// Decodes the part of a collection's record after the header.
    pub(crate) fn body(&self, key: &[u8]) -> Result<Body> {
        Body::decode(self.header.kind, &self.bytes).map_err(|why| malformed(key, why))
    }
}
