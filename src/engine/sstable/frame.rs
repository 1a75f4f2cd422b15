//! Opens the frame of a table file: footer and properties, which tell where everything is.
//!
//! One read brings the tail of the file. Parts that lie within
//! it are taken from there; the others, and those whose bytes do not verify, are read when
//! they are needed.

use std::borrow::Cow;

use super::format::{BadFooter, FOOTER_BYTES, Footer, Handle};
use super::loader::{Loader, framed_length};
use super::properties::Properties;
use crate::error::{Error, ErrorKind, Result};

/// The number of bytes at the end of a table that are read at once when it is opened.
pub(crate) const TAIL_BYTES: usize = 16 << 10;

/// The last bytes of a table file.
#[derive(Debug, Default)]
pub(super) struct Tail {
    start: u64,
    bytes: Vec<u8>,
}

impl Tail {
    /// Reads the last bytes of a file that must have `expected_size`: up to [`TAIL_BYTES`], and the
    /// footer alone if the others cannot be read.
    pub(super) fn read(loader: &Loader, expected_size: u64) -> Result<Self> {
        let path = &loader.path;
        let size = loader.file.len().map_err(|cause| Error::io("stat", path, &cause))?;
        if size != expected_size {
            let detail = format!("the file has {size} bytes, the manifest says {expected_size}");
            return Err(Error::corrupt(path, size.min(expected_size), detail));
        }
        if size < FOOTER_BYTES as u64 {
            return Err(Error::corrupt(path, 0, format!("{size} bytes are too few for a table")));
        }
        Self::last(loader, size, TAIL_BYTES).or_else(|_| Self::last(loader, size, FOOTER_BYTES))
    }

    fn last(loader: &Loader, size: u64, most: usize) -> Result<Self> {
        let length = usize::try_from(size).unwrap_or(most).min(most);
        let (start, mut bytes) = (size - length as u64, vec![0; length]);
        loader.read(&mut bytes, start)?;
        Ok(Self { start, bytes })
    }

    /// Decodes the footer.
    pub(super) fn footer(&self, loader: &Loader) -> Result<Footer> {
        let bytes = self.bytes.last_chunk::<FOOTER_BYTES>().map_or(&[][..], |bytes| &bytes[..]);
        let offset = self.start + (self.bytes.len() - bytes.len()) as u64;
        Footer::decode(bytes, loader.number, offset).map_err(|bad| match bad {
            BadFooter::Damaged(detail) => Error::corrupt(&loader.path, offset, detail),
            BadFooter::Version(version) => {
                let message = format!("{} has table format {version}", loader.path.display());
                Error::new(ErrorKind::Incompatible, message + "; this library reads format 1")
            }
        })
    }

    /// Reads the properties.
    pub(super) fn properties(&self, loader: &Loader, footer: &Footer) -> Result<Properties> {
        let payload = self.payload(loader, footer.properties)?;
        Properties::decode(&payload).map_err(|why| loader.malformed(footer.properties.offset, why))
    }

    /// Whether the parts from `offset` on are here.
    pub(super) fn holds_from(&self, offset: u64) -> bool {
        !self.bytes.is_empty() && self.start <= offset
    }

    /// The payload of a block other than a data block: from here, or else from the file.
    pub(super) fn payload(&self, loader: &Loader, handle: Handle) -> Result<Cow<'_, [u8]>> {
        match self.framed(handle) {
            Some(framed) => loader.payload_from(framed, handle.offset).map(Cow::Borrowed),
            None => loader.payload(handle).map(Cow::Owned),
        }
    }

    /// Payload and trailer of a block that lies within the tail.
    fn framed(&self, handle: Handle) -> Option<&[u8]> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(framed_length(handle))?)
    }
}
