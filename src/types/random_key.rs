//! RANDOMKEY. Of a database that may have more than [`COUNTED`] keys records are drawn from the
//! engine's runs and blocks, all alike but for the exception that `types::sample` tells of.
//! Otherwise, up to [`COUNTED`] keys are all looked at, and each is as likely as any other.
//!
//! Where records cannot be drawn, because the transaction has written some itself or because nearly
//! all have expired, the tree that the keys' bytes form is descended: at each fork one of the next
//! bytes that occur is chosen, all alike, until at most [`LEAF`] keys share the bytes chosen; of
//! those that exist now one is chosen, all alike. A key that others begin with is chosen where they
//! fork, [`LEAF`] times less likely than a way on. So numbered names, hashes and random bytes are
//! nearly alike in their chances; a key that shares few bytes with others has a better one.

use bytes::Bytes;

use crate::encoding::keys::{after_prefix, split_meta_key};
use crate::error::Result;
use crate::io::splitmix::SplitMix64;
use crate::types::cursors::random;
use crate::types::databases::user_key;
use crate::types::txn::{META, Tx};

/// Up to so many keys all are looked at.
const COUNTED: usize = 4096;
/// Slots of a sampler from which on there are likely to be more than that.
const MANY: u64 = 4 * COUNTED as u64;
/// Draws, each of which may meet nothing, before another way is taken.
const DRAWS: usize = 1024;
/// Keys that share a prefix are counted off up to this many.
const LEAF: usize = 64;
/// Descents, each of which may end where all have expired, before all keys are walked.
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

    /// A key of a database with many records, if it is soon found.
    fn draw_key(&self) -> Result<Option<Bytes>> {
        let space = self.space().to_bytes();
        let end = after_prefix(&space);
        let records = self.row_sampler(META, &space, end.as_deref(), false)?;
        let writes_some = self.written(META, &space, end.as_deref()).next().is_some();
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

    /// One of the first `most` keys with a prefix that exist now, all alike; whether there were no
    /// more keys than that.
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

    /// A prefix, and how many of the first keys that have it are to be chosen from: those of a
    /// leaf, or the one that is the prefix.
    fn random_prefix(&self) -> Result<(Vec<u8>, usize)> {
        let mut prefix = Vec::new();
        while !self.is_leaf(&prefix)? {
            let ways = self.ways_on(&prefix)?;
            let at = usize::try_from(random() % (ways.len().max(1) as u64)).unwrap_or(0);
            match ways.get(at).copied().flatten() {
                Some(byte) => prefix.push(byte),
                // It stands beside ways to many keys each.
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

    /// The bytes with which keys go on after `prefix`; none for the key that is the prefix.
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
    use crate::types::Db;

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
