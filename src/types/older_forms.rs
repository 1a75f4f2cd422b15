//! Values in the forms of earlier versions, and how they get today's form.
//!
//! A store that an earlier version has written holds collections whose rows are not counted
//! (`ranks`), and large strings that are whole in their records. Both answer alike, but in a time
//! that grows with their size. Every RENAME and COPY gives them today's form; [`Store::rewrite_older`]
//! does it for all keys. Each key is rewritten in a commit of its own, under its lock, so this can be
//! interrupted at any time, and the next call goes on with what is left.
//!
//! Transactions that have read such a key conflict: their pending rows have the old version.

use bytes::Bytes;

use crate::encoding::keys::{Space, after_prefix, meta_key, split_meta_key};
use crate::encoding::meta::{Header, Type};
use crate::engine::{CacheFill, IterOptions, Sequence};
use crate::error::{ErrorKind, Result};
use crate::keyspace::trees::META;
use crate::txn::execution::ChangeTracking;
use crate::txn::store::Store;
use crate::txn::{Record, Tx};

/// The number of records walked before the reader is renewed, so that files and memtables are not
/// kept for long.
const STRETCH: usize = 65_536;
/// The number of keys to rewrite that are remembered at a time.
const BATCH: usize = 256;
/// What `Engine::counted_from` is of a store that has counted from the beginning.
const FROM_THE_BEGINNING: Sequence = 1;

/// Some keys in older forms.
struct Older {
    keys: Vec<Vec<u8>>,
    /// The meta key at which the walk continues; `None` at the end.
    next: Option<Vec<u8>>,
}

impl Store {
    /// Writes all values in older forms again in today's form, and returns their number. Ends early
    /// if space runs short. A store that was created by this version has none.
    pub(crate) fn rewrite_older(&self) -> Result<u64> {
        if self.counted_from() <= FROM_THE_BEGINNING {
            return Ok(0);
        }
        let mut rewritten = 0;
        for database in 0..self.spaces().count() {
            let space = self.spaces().of(database)?;
            let mut next = Some(meta_key(space, b"").to_vec());
            while let Some(from) = next {
                let older = self.find_older(space, &from)?;
                for key in &older.keys {
                    if self.engine().is_short_of_space() {
                        return Ok(rewritten);
                    }
                    rewritten += u64::from(self.rewrite_key(database, key)?);
                }
                next = older.next;
            }
        }
        Ok(rewritten)
    }

    /// Finds up to a batch of keys whose values are in older forms.
    fn find_older(&self, space: Space, from: &[u8]) -> Result<Older> {
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(from)),
            upper: after_prefix(&space.to_bytes()).map(Bytes::from),
            cache_fill: CacheFill::Skip,
        };
        let mut records = self.engine().reader()?.iter(META, options)?;
        let (mut keys, mut seen) = (Vec::new(), 0);
        records.seek_to_first()?;
        while records.valid() {
            if keys.len() >= BATCH || seen >= STRETCH {
                return Ok(Older { keys, next: Some(records.key().to_vec()) });
            }
            seen += 1;
            if let Some((_, key)) = split_meta_key(records.key())
                && self.is_older(key, records.value())
            {
                keys.push(key.to_vec());
            }
            records.next()?;
        }
        Ok(Older { keys, next: None })
    }

    /// Whether the record of a key is one of an older form. A damaged one is not: it stays as it is.
    fn is_older(&self, key: &[u8], record: &[u8]) -> bool {
        let Ok(header) = Header::decode(record) else { return false };
        let record = Record { header, bytes: Bytes::copy_from_slice(record) };
        match header.kind {
            Type::String => record
                .whole_value()
                .is_ok_and(|value| value.len() as u64 > self.strings().inline_bytes),
            Type::List => false,
            Type::Hash | Type::Set | Type::ZSet => record.body(key).is_ok_and(|body| {
                body.version().is_some_and(|version| version < self.counted_from())
            }),
        }
    }

    /// Gives a key today's form; whether it had an older one. A key that is longer than the limits
    /// now allow stays as it is.
    fn rewrite_key(&self, database: u32, key: &[u8]) -> Result<bool> {
        let done = self.write(database, &[key], ChangeTracking::Noted, |tx| tx.rewrite_older(key));
        match done {
            Ok((rewritten, _)) => Ok(rewritten),
            Err(error) if error.kind() == ErrorKind::TooLarge => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Tx<'_> {
    /// Writes the value of a key again if it is in an older form; whether it was.
    fn rewrite_older(&mut self, key: &[u8]) -> Result<bool> {
        // Looked at again, now that no one else can write the key.
        let Some(record) = self.record(key)? else { return Ok(false) };
        let is_older = self.store().is_older(key, &record.bytes);
        if is_older {
            self.write_copy(key, &record, self.database(), key)?;
        }
        Ok(is_older)
    }
}
