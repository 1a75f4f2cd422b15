//! MEMORY USAGE: an estimate of the bytes that a key takes.
//!
//! Redis answers how much memory a value occupies. Here it is how many bytes the key and its value
//! take in the store before compression, with what the engine adds to each entry. Of a collection
//! some members are looked at, and their average stands for the rest.

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::string::chunks::{ChunkedString, StringValue};

/// What the engine adds to an entry: sequence, lengths, version, place in an index.
const ENTRY_BYTES: u64 = 32;

commands! {
    /// MEMORY USAGE: roughly the bytes that a key takes in the store. Of a collection `samples`
    /// members are looked at, 0 for all.
    read fn memory_usage(key: &[u8], samples: u64) -> Option<u64>;
}

impl Tx<'_> {
    pub(crate) fn memory_usage(&self, key: &[u8], samples: u64) -> Result<Option<u64>> {
        let Some(record) = self.record(key)? else { return Ok(None) };
        let own = (key.len() + record.bytes.len()) as u64 + ENTRY_BYTES;
        let most = if samples == 0 { u64::MAX } else { samples };
        let (seen, bytes, len) = match record.header.kind {
            Type::String => match self.string(key)? {
                Some(StringValue::Chunked(string)) => self.chunk_sample(&string, most)?,
                _ => return Ok(Some(own)),
            },
            Type::List => self.list_sample(key, most)?,
            kind => {
                let Some(collection) = self.collection(key, kind)? else { return Ok(Some(own)) };
                if collection.is_packed() {
                    return Ok(Some(own));
                }
                let (mut seen, mut bytes) = (0, 0);
                let mut walk = collection.walk(self)?;
                while seen < most && walk.advance()? {
                    seen += 1;
                    bytes += (walk.key().len() + walk.value().len()) as u64 + ENTRY_BYTES;
                }
                // A sorted set has a second row for each member, by score.
                let rows = if kind == Type::ZSet { 2 } else { 1 };
                (seen, bytes.saturating_mul(rows), collection.len())
            }
        };
        let rest = u128::from(bytes) * u128::from(len) / u128::from(seen.max(1));
        Ok(Some(own.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX))))
    }

    /// The number and the bytes of the first rows, and the number of rows.
    fn chunk_sample(&self, string: &ChunkedString, most: u64) -> Result<(u64, u64, u64)> {
        let (mut seen, mut bytes) = (0, 0);
        string.each_row(self, 0..string.chunks.len, |_, row| {
            seen += 1;
            bytes += row.len() as u64 + ENTRY_BYTES;
            Ok(seen < most)
        })?;
        Ok((seen, bytes, string.chunks.rows))
    }

    /// The number and the bytes of the first elements, and the length of the list.
    fn list_sample(&self, key: &[u8], most: u64) -> Result<(u64, u64, u64)> {
        let Some(mut walk) = self.elements_between(key, 0, -1)? else { return Ok((0, 0, 0)) };
        let (len, mut seen, mut bytes) = (walk.len(), 0, 0);
        while seen < most && walk.advance()? {
            seen += 1;
            bytes += walk.element().len() as u64 + ENTRY_BYTES;
        }
        Ok((seen, bytes, len))
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Options;
    use crate::txn::Db;
    use crate::types::testing::unpacked;

    #[test]
    fn the_estimate_is_near_the_bytes_that_were_given() {
        for options in [Options::default(), unpacked()] {
            let db = Db::open(":memory:", options).unwrap();
            let usage = |key: &[u8], samples| db.memory_usage(key, samples).unwrap();
            assert_eq!(usage(b"none", 5), None);
            db.set(b"s", &[b'x'; 1000]).unwrap();
            assert!((1000..1100).contains(&usage(b"s", 5).unwrap()));
            let given: Vec<Vec<u8>> = (0..500).map(|n| format!("{n:0100}").into_bytes()).collect();
            for item in &given {
                db.rpush(b"l", &[item]).unwrap();
                db.sadd(b"c", &[item]).unwrap();
                db.hset(b"h", &[(item, item)]).unwrap();
            }
            for (key, least) in [(b"l", 50_000), (b"c", 50_000), (b"h", 100_000)] {
                for samples in [0, 5] {
                    let found = usage(key, samples).unwrap();
                    assert!((least..least * 2).contains(&found), "{key:?} {samples}: {found}");
                }
            }
        }
    }
}
