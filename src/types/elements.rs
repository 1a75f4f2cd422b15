//! The elements of a list as a whole: what SORT reads and writes.

use bytes::Bytes;

use crate::encoding::keys::{prefix, row_key};
use crate::encoding::meta::{Body, Header, Type, encode_collection};
use crate::error::{Error, ErrorKind, Result};
use crate::types::txn::{DATA, Record, Tx, Walk};

/// The index of a new list's first element.
const MIDDLE: u64 = 1 << 63;

impl Tx<'_> {
    /// The elements `skip..skip + take` of the list of this record, counted and shown from
    /// the front or, `backward`, from the back.
    pub(crate) fn list_elements(
        &self,
        key: &[u8],
        record: &Record,
        (skip, take): (u64, u64),
        backward: bool,
    ) -> Result<Walk> {
        let Body::Span { version, head, tail } = self.body(key, record)? else {
            return Err(Error::new(ErrorKind::Corrupt, "no list where one belongs"));
        };
        let prefix = prefix(self.space(), key, version);
        let (first, end) = if backward {
            let end = tail.saturating_sub(skip).max(head);
            (end.saturating_sub(take).max(head), end)
        } else {
            let first = head.saturating_add(skip).min(tail);
            (first, first.saturating_add(take).min(tail))
        };
        let (lower, upper) =
            (row_key(&prefix, &first.to_be_bytes()), row_key(&prefix, &end.to_be_bytes()));
        self.rows(DATA, &lower, Some(&upper), backward)
    }

    /// Gives the key these elements, whatever it was; none at all: deletes it.
    pub(crate) fn put_elements(&mut self, key: &[u8], elements: Vec<Bytes>) -> Result<()> {
        self.store().limits().check_key(key)?;
        if elements.is_empty() {
            if self.record(key)?.is_some() {
                self.delete_record(key);
            }
            return Ok(());
        }
        let version = self.new_version();
        let prefix = prefix(self.space(), key, version);
        let mut tail = MIDDLE;
        for element in elements {
            self.store().limits().check_value(&element)?;
            self.put_row(DATA, &row_key(&prefix, &tail.to_be_bytes()), element);
            tail += 1;
        }
        let header = Header { kind: Type::List, expire_ms: 0 };
        let body = Body::Span { version, head: MIDDLE, tail };
        self.put_record(key, encode_collection(header, body))
    }
}
