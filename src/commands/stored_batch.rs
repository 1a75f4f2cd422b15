//! A batch that another process runs: its commands are stored here, and sent as bytes.
//!
//! Bytes: whether the batch is strict (1 or 0), and for each command its priority, the number of its
//! words, and for each word its length and its bytes. Numbers have 32 bits, low byte first.

use super::batch::{Batch, writing_command};
use super::dispatch::keys_of;
use super::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Db;

/// Write commands for a store that another process holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredBatch {
    strict: bool,
    priority: i32,
    commands: Vec<(i32, Vec<Vec<u8>>)>,
}

impl StoredBatch {
    pub(crate) fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// The entry of a command that a batch takes.
    pub(crate) fn entry_of(argv: &[&[u8]]) -> Result<&'static Entry> {
        writing_command(argv)
    }

    /// Stores a command whose words are within the limits of the store.
    pub(crate) fn store(&mut self, argv: &[&[u8]]) {
        self.commands.push((self.priority, argv.iter().map(|word| word.to_vec()).collect()));
    }

    /// The keys of a command.
    pub(crate) fn keys<'a>(entry: &Entry, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
        keys_of(entry, argv).into_vec()
    }

    pub(crate) fn set_priority(&mut self, priority: i32) {
        self.priority = priority;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Removes all commands.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.priority = 0;
    }

    /// The batch for a database of this process.
    pub(crate) fn batch_of(&self, db: &Db) -> Result<Batch> {
        let mut batch = if self.strict { db.batch().strict() } else { db.batch() };
        for (priority, words) in &self.commands {
            batch.priority(*priority);
            let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            batch.command(&argv)?;
        }
        Ok(batch)
    }

    /// The bytes that are sent. Fails for what 32 bits cannot count.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let number = |length: usize| {
            let too_long = |_| Error::new(ErrorKind::TooLarge, "a word of a batch is too long");
            u32::try_from(length).map(u32::to_le_bytes).map_err(too_long)
        };
        let mut bytes = vec![u8::from(self.strict)];
        for (priority, words) in &self.commands {
            bytes.extend(priority.to_le_bytes());
            bytes.extend(number(words.len())?);
            for word in words {
                bytes.extend(number(word.len())?);
                bytes.extend_from_slice(word);
            }
        }
        Ok(bytes)
    }

    /// Reads what [`StoredBatch::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::new(ErrorKind::Invalid, "the bytes are no batch");
        let (strict, mut rest) = bytes.split_first().ok_or_else(damaged)?;
        let mut batch = Self::new(*strict == 1);
        while !rest.is_empty() {
            let priority = i32::from_le_bytes(number_of(&mut rest).ok_or_else(damaged)?);
            let count = u32::from_le_bytes(number_of(&mut rest).ok_or_else(damaged)?);
            let mut words = Vec::new();
            for _ in 0..count {
                let length = u32::from_le_bytes(number_of(&mut rest).ok_or_else(damaged)?);
                let length = usize::try_from(length).map_err(|_| damaged())?;
                let (word, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
                words.push(word.to_vec());
                rest = after;
            }
            batch.commands.push((priority, words));
        }
        Ok(batch)
    }
}

fn number_of(rest: &mut &[u8]) -> Option<[u8; 4]> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reads_back_as_it_was_and_damage_is_refused() {
        let mut batch = StoredBatch::new(true);
        batch.store(&[b"SET", b"k", b""]);
        batch.set_priority(-7);
        batch.store(&[b"DEL", b"a b"]);
        let bytes = batch.to_bytes().unwrap();
        let read = StoredBatch::from_bytes(&bytes).unwrap();
        assert!(read.strict);
        assert_eq!(read.commands, batch.commands);
        let whole = |end: usize| StoredBatch::from_bytes(&bytes[..end]).is_ok();
        let cuts: Vec<usize> = (0..=bytes.len()).filter(|end| whole(*end)).collect();
        assert_eq!(cuts, [1, 1 + 8 + (4 + 3) + (4 + 1) + 4, bytes.len()]);
        assert!(StoredBatch::from_bytes(&[0, 0, 0, 0, 0, 255, 255, 255, 255]).is_err());
    }
}
