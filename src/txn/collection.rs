//! A hash, set or sorted set in memory: what its record says, and what has changed since.

use crate::encoding::keys::{Prefix, Space, prefix};
use crate::encoding::meta::{Body, Header, encode_members, encode_packed, is_packed};
use crate::encoding::packed::Packed;
use crate::encoding::tombstones::TombstoneStats;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::errors::malformed;
use crate::txn::record::Record;

/// A hash, set or sorted set that exists or is being made.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    pub(crate) key: Vec<u8>,
    pub(crate) header: Header,
    pub(crate) form: Form,
    /// The length of the rows' prefix, 0 if there are no rows: asked for each member of a walk.
    prefix_len: usize,
    /// The record in the store is out of date.
    pub(crate) changed: bool,
    /// The key has a record, with the expiry of the header.
    pub(crate) is_recorded: bool,
}

/// Where the members of a collection are stored.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// In the record itself.
    Packed(Packed),
    /// In rows of the data tree, and for a sorted set of the score tree.
    Rows(RowForm),
}

impl Form {
    fn prefix_len(&self) -> usize {
        match self {
            Self::Packed(_) => 0,
            Self::Rows(rows) => rows.prefix_len,
        }
    }
}

/// What a record says of members that have rows.
#[derive(Debug)]
pub(crate) struct RowForm {
    pub(crate) version: u64,
    /// The number of members.
    pub(crate) size: u64,
    pub(crate) tombstones: TombstoneStats,
    /// What every row key begins with.
    pub(crate) prefix: Prefix,
    /// Its length. Asking the prefix itself branches on where its bytes are.
    prefix_len: usize,
    /// All rows are pending writes of the transaction that made the collection.
    pub(crate) is_new: bool,
}

impl Clone for RowForm {
    /// Not derived: a `SmallVec` clones itself byte by byte.
    fn clone(&self) -> Self {
        let (tombstones, prefix) = (self.tombstones.clone(), Prefix::from_slice(&self.prefix));
        Self { tombstones, prefix, ..*self }
    }
}

impl RowForm {
    /// A form without members under a version that no record names yet.
    pub(crate) fn new(space: Space, key: &[u8], version: u64) -> Self {
        let prefix = prefix(space, key, version);
        let (prefix_len, tombstones) = (prefix.len(), TombstoneStats::default());
        Self { version, size: 0, tombstones, prefix, prefix_len, is_new: true }
    }

    /// The part of a row key after the prefix.
    pub(crate) fn sub_key<'k>(&self, row: &'k [u8]) -> &'k [u8] {
        row.get(self.prefix_len..).unwrap_or_default()
    }
}

impl Collection {
    /// Makes a collection that has no record yet.
    pub(crate) fn new(key: &[u8], header: Header, form: Form) -> Self {
        let prefix_len = form.prefix_len();
        Self { key: key.to_vec(), header, form, prefix_len, changed: false, is_recorded: false }
    }

    /// Changes the form, so that the record has to be written.
    pub(crate) fn change_form(&mut self, form: Form) {
        self.prefix_len = form.prefix_len();
        (self.form, self.changed) = (form, true);
    }

    /// Decodes the record of `key`, which is not that of a list or string.
    pub(crate) fn decode(space: Space, key: &[u8], record: Record) -> Result<Self> {
        let header = record.header;
        let form = if is_packed(&record.bytes) {
            Form::Packed(Packed::decode(record.bytes).map_err(|why| malformed(key, why))?)
        } else {
            match record.body(key)? {
                Body::Members { version, size, tombstones } => {
                    let new = RowForm::new(space, key, version);
                    Form::Rows(RowForm { size, tombstones, is_new: false, ..new })
                }
                _ => return Err(Error::new(ErrorKind::Corrupt, "a list where none belongs")),
            }
        };
        Ok(Self { is_recorded: true, ..Self::new(key, header, form) })
    }

    /// Encodes the record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match &self.form {
            Form::Packed(packed) => encode_packed(self.header, packed),
            Form::Rows(rows) => {
                encode_members(self.header, rows.version, rows.size, &rows.tombstones)
            }
        }
    }

    /// The number of members.
    pub(crate) fn len(&self) -> u64 {
        match &self.form {
            Form::Packed(packed) => packed.size(),
            Form::Rows(rows) => rows.size,
        }
    }

    /// Whether the members are in the record.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.form, Form::Packed(_))
    }

    /// The row form, if the members have rows.
    pub(crate) fn rows(&self) -> Option<&RowForm> {
        match &self.form {
            Form::Packed(_) => None,
            Form::Rows(rows) => Some(rows),
        }
    }

    /// What the rows begin with, in the data and the score tree; empty if there are no rows.
    pub(crate) fn prefix(&self) -> &[u8] {
        self.rows().map_or(&[], |rows| &rows.prefix)
    }

    /// The part of a row key after the prefix: the member, in the data tree.
    pub(crate) fn sub_key<'k>(&self, row: &'k [u8]) -> &'k [u8] {
        row.get(self.prefix_len..).unwrap_or_default()
    }

    /// About how many rows were removed since the collection was last rewritten.
    pub(crate) fn removed_rows(&self) -> u64 {
        self.rows().map_or(0, |rows| rows.tombstones.removed())
    }

    /// The tombstone statistics for a change, if there are rows; the record will be written.
    pub(crate) fn tombstones_mut(&mut self) -> Option<&mut TombstoneStats> {
        match &mut self.form {
            Form::Packed(_) => None,
            Form::Rows(rows) => {
                self.changed = true;
                Some(&mut rows.tombstones)
            }
        }
    }

    /// The error for rows that are missing, or that are more than the record counts.
    pub(crate) fn miscounted(&self) -> Error {
        let shown = String::from_utf8_lossy(self.key.get(..64).unwrap_or(&self.key));
        let message = format!("the key {shown:?} does not have its {} members", self.len());
        Error::new(ErrorKind::Corrupt, message)
    }
}
