//! The reply to GET of a long string: it goes to the client part by part, as there is room.
//!
//! The string is read as of the moment at which the reply began, whatever is written meanwhile. The
//! client's next commands run when the reply has ended.
//!
//! Meanwhile the store keeps what was overwritten and deleted since. So a client has to take a part in
//! [`PART_MS`], or it is closed.

use std::io::Write as _;

use crate::error::Result;
use crate::txn::Db;
use crate::types::StringReader;

/// The bytes that are appended at a time.
const PART_BYTES: u64 = 1 << 20;
/// The time in which a client has to take a part: lines slower than 17 KB/s are too slow.
const PART_MS: u64 = 60_000;

/// A reply of which a part is still to be read.
#[derive(Debug)]
pub(crate) struct LongReply {
    reader: StringReader,
    /// When the last part was appended.
    appended_ms: u64,
}

impl LongReply {
    /// Begins the reply, as of now, and writes its length; `None` if no string in chunks is there.
    pub(crate) fn begin(
        db: &Db,
        key: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<Self>> {
        let Some(reader) = StringReader::open(db, key)? else { return Ok(None) };
        // A vector takes all that is written.
        let _ = write!(out, "${}\r\n", reader.len());
        Ok(Some(Self { reader, appended_ms: now_ms }))
    }

    /// Appends a part, and the end of the reply with the last one.
    pub(crate) fn append(&mut self, now_ms: u64, out: &mut Vec<u8>) -> Result<()> {
        self.appended_ms = now_ms;
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

    /// Whether the client takes nothing any more, or so little that it comes to the same.
    pub(crate) fn is_stalled(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.appended_ms) > PART_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn a_reply_is_stalled_when_no_part_was_taken_for_a_minute() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"key", &vec![7; 3 << 20]).unwrap();
        let mut out = Vec::new();
        let mut reply = LongReply::begin(&db, b"key", 1000, &mut out).unwrap().unwrap();
        assert!(!reply.is_stalled(61_000) && reply.is_stalled(61_001));
        reply.append(50_000, &mut out).unwrap();
        assert!(!reply.is_stalled(110_000) && reply.is_stalled(110_001));
    }
}
