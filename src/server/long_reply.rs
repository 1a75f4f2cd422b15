//! The reply to GET of a long string: it goes to the client part by part, as there is room.
//!
//! The string is read as of the moment at which the reply began, whatever is written meanwhile. The
//! client's next commands run when the reply has ended.

use std::io::Write as _;

use crate::error::Result;
use crate::txn::Db;
use crate::types::StringReader;

/// The bytes that are appended at a time.
const PART_BYTES: u64 = 1 << 20;

/// A reply of which a part is still to be read.
#[derive(Debug)]
pub(crate) struct LongReply {
    reader: StringReader,
}

impl LongReply {
    /// Begins the reply, as of now, and writes its length; `None` if no string in chunks is there.
    pub(crate) fn begin(db: &Db, key: &[u8], out: &mut Vec<u8>) -> Result<Option<Self>> {
        let Some(reader) = StringReader::open(db, key)? else { return Ok(None) };
        // A vector takes all that is written.
        let _ = write!(out, "${}\r\n", reader.len());
        Ok(Some(Self { reader }))
    }

    /// Appends a part, and the end of the reply with the last one.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.reader.read(PART_BYTES, |part| out.extend_from_slice(part))?;
        if self.is_done() {
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Whether all of the reply was appended.
    pub(crate) fn is_done(&self) -> bool {
        self.reader.is_done()
    }
}
