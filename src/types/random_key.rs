//! RANDOMKEY. A database that may have more than [`COUNTED`] keys draws records from the engine's
//! runs and blocks, all equally likely but for the exception described in `engine::sampler`. A
//! smaller one looks at all keys, and each is exactly as likely as any other.
//!
//! If records cannot be drawn, because writes of the transaction are pending or nearly all keys
//! have expired, the trie of the keys' bytes is descended: each fork chooses one of the next bytes
//! that occur, with equal probability, until at most [`LEAF`] keys share the prefix; one of those
//! that exist is chosen, with equal probability. A key that is a prefix of others is chosen at
//! their fork, [`LEAF`] times less likely than a branch. So numbered names, hashes and random bytes
//! have nearly equal chances; a key that shares few bytes with others has a better one.

use bytes::Bytes;

use crate::encoding::keys::{after_prefix, split_meta_key};
use crate::engine::CacheFill;
use crate::error::Result;
use crate::io::splitmix::SplitMix64;
use crate::keyspace::scan_cursors::random;
use crate::keyspace::trees::META;
use crate::txn::Tx;
use crate::types::databases::user_key;

/// The largest number of keys that are all looked at.
const COUNTED: usize = 4096;
/// The number of sampler slots from which on there are probably more keys than that.
const MANY: u64 = 4 * COUNTED as u64;
/// The number of draws, each of which may fail, before another way is taken.
const DRAWS: usize = 1024;
/// The most keys of a leaf: they are counted off.
const LEAF: usize = 64;
/// The number of descents, each of which may end where all keys have expired, before all keys are
/// walked.
const DESCENTS: usize = 32;

impl Tx<'_> {
    pub(crate) fn randomkey(&self) -> Result<Option<Bytes>> {
        if let Some(drawn) = self.draw_key()? {
            return Ok(Some(drawn));
        }
        let (chosen, all) = self.choose_live(b"", COUNTED)?;
        if all {
            return Ok(chosen);
        }
        for _ in 0..DESCENTS {
            let (prefix, most) = self.random_prefix()?;
            if let (Some(key), _) = self.choose_live(&prefix, most)? {
                return Ok(Some(key));
            }
        }
        Ok(self.choose_live(b"", usize::MAX)?.0)
    }

    /// Draws a key of a database with many records, if one is found soon.
    fn draw_key(&self) -> Result<Option<Bytes>> {
        let space = self.space().to_bytes();
        let end = after_prefix(&space);
        let records = self.row_sampler(META, &space, end.as_deref(), CacheFill::Skip)?;
        let writes_some = self.has_pending(META, &space, end.as_deref());
        if writes_some || records.slots() <= MANY {
            return Ok(None);
        }
        let mut bits = SplitMix64::new(random());
        for _ in 0..DRAWS {
            if let Some((record, value)) = records.draw(&mut |below| bits.below(below))?
                && let Some((_, key)) = split_meta_key(&record)
                && !self.header_of(key, &value)?.expired(self.now())
            {
                return Ok(Some(Bytes::copy_from_slice(key)));
            }
        }
        Ok(None)
    }

    /// Chooses one of the first `most` keys with a prefix that exist, with equal probability;
    /// whether there were no more keys than that.
    fn choose_live(&self, prefix: &[u8], most: usize) -> Result<(Option<Bytes>, bool)> {
        let mut walk = self.records(prefix, false)?;
        let (mut chosen, mut live) = (None, 0u64);
        for _ in 0..most {
            if !walk.advance()? || !user_key(&walk).starts_with(prefix) {
                return Ok((chosen, true));
            }
            if self.live_header(&walk)?.is_some() {
                live += 1;
                if random().is_multiple_of(live) {
                    chosen = Some(Bytes::copy_from_slice(user_key(&walk)));
                }
            }
        }
        Ok((chosen, false))
    }

    /// A random prefix, and the number of keys with it to choose from: those of a leaf, or the one
    /// that is the prefix.
    fn random_prefix(&self) -> Result<(Vec<u8>, usize)> {
        let mut prefix = Vec::new();
        while !self.is_leaf(&prefix)? {
            let ways = self.ways_on(&prefix)?;
            let at = usize::try_from(random() % (ways.len().max(1) as u64)).unwrap_or(0);
            match ways.get(at).copied().flatten() {
                Some(byte) => prefix.push(byte),
                // It stands beside branches to many keys each.
                None if random().is_multiple_of(LEAF as u64) => return Ok((prefix, 1)),
                None => {}
            }
        }
        Ok((prefix, LEAF))
    }

    fn is_leaf(&self, prefix: &[u8]) -> Result<bool> {
        let mut walk = self.records(prefix, false)?;
        for _ in 0..=LEAF {
            if !walk.advance()? || !user_key(&walk).starts_with(prefix) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The bytes that follow `prefix` in keys; none for the key that is the prefix.
    fn ways_on(&self, prefix: &[u8]) -> Result<Vec<Option<u8>>> {
        let mut ways = Vec::new();
        let mut from = prefix.to_vec();
        loop {
            let mut walk = self.records(&from, false)?;
            let found = walk.advance()?;
            let Some(rest) = user_key(&walk).strip_prefix(prefix).filter(|_| found) else { break };
            let way = rest.first().copied();
            ways.push(way);
            from.truncate(prefix.len());
            match way.map_or(Some(0), |byte| byte.checked_add(1)) {
                Some(next) => from.push(next),
                None => break,
            }
        }
        Ok(ways)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::options::Options;
    use crate::txn::Db;

    #[test]
    fn among_many_keys_every_part_of_them_is_chosen_from() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"key:", b"v").unwrap();
        for n in 0..6000 {
            db.set(format!("key:{n:05}").as_bytes(), b"v").unwrap();
        }
        let drawn = (0..600).map(|_| db.randomkey().unwrap().unwrap()).collect();
        // A transaction that has written a record itself descends.
        let descended = db.write(&[b"key:"], |tx| {
            tx.set(b"key:", b"w")?;
            (0..200).map(|_| Ok(tx.randomkey()?.unwrap())).collect()
        });
        for chosen in [drawn, descended.unwrap()] {
            let chosen: Vec<bytes::Bytes> = chosen;
            let different: HashSet<_> = chosen.iter().collect();
            assert!(different.len() * 3 > chosen.len() * 2, "{}", different.len());
            for thousand in 0..6 {
                let prefix = format!("key:0{thousand}");
                let count = chosen.iter().filter(|key| key.starts_with(prefix.as_bytes())).count();
                assert!(count * 30 > chosen.len(), "{count} of {} are of {prefix}", chosen.len());
            }
        }
    }
}
