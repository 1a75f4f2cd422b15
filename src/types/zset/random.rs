//! ZRANDMEMBER.
//!
//! Up to 4,096 members every member is as likely as any other. Beyond that they are found by
//! seeking to a random place between the first and the last member and walking on a few: a member
//! after a wide gap is then more likely than one in a crowd. Samples of a quarter or more of all
//! members are taken in one walk along them, and are fair whatever the size.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use bytes::Bytes;

use super::Scored;
use super::rows::{ZSet, stored_score};
use super::span::Span;
use crate::error::Result;
use crate::types::db::commands;
use crate::types::txn::Tx;

/// The most members that are all read for a fair choice.
const FAIR: u64 = 4096;
/// How far a seek walks on.
const STEPS: u64 = 64;

commands! {
    /// ZRANDMEMBER: a member by chance.
    read fn zrandmember(key: &[u8]) -> Option<Bytes>;
    /// ZRANDMEMBER with a count: so many different members by chance, all if there are fewer; of
    /// a negative count that many that may repeat.
    read fn zrandmember_count(key: &[u8], count: i64) -> Vec<(Bytes, f64)>;
}

/// Random numbers.
struct Chance {
    keys: RandomState,
    drawn: u64,
}

impl Chance {
    fn new() -> Self {
        Self { keys: RandomState::new(), drawn: 0 }
    }

    /// A number below `bound`, which is not 0. The bias is below 2^-32 for any size of a set.
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        self.keys.hash_one(self.drawn).checked_rem(bound).unwrap_or(0)
    }
}

impl Tx<'_> {
    pub(crate) fn zrandmember(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let members = self.zrandmember_count(key, -1)?;
        Ok(members.into_iter().next().map(|(member, _)| member))
    }

    pub(crate) fn zrandmember_count(&self, key: &[u8], count: i64) -> Result<Scored> {
        let Some(zset) = self.zset(key)? else { return Ok(Scored::new()) };
        let (chance, wanted) = (&mut Chance::new(), count.unsigned_abs());
        if count < 0 {
            return self.repeating(&zset, wanted, chance);
        }
        if wanted == 0 {
            return Ok(Scored::new());
        }
        if zset.len() > FAIR && wanted < zset.len() / 4 {
            return self.different(&zset, wanted, chance);
        }
        self.fair_sample(&zset, wanted, chance)
    }

    /// `wanted` members that may repeat.
    fn repeating(&self, zset: &ZSet, wanted: u64, chance: &mut Chance) -> Result<Scored> {
        let mut chosen = Scored::new();
        if zset.len() > FAIR {
            for _ in 0..wanted {
                chosen.push(self.sought(zset, chance)?);
            }
            return Ok(chosen);
        }
        if wanted == 1 {
            let rank = i64::try_from(chance.below(zset.len())).unwrap_or(0);
            return self.members_at(zset, rank, rank, false, true);
        }
        let members = zset.walk(self, &Span::all(), false)?.collect(self, u64::MAX, true)?;
        for _ in 0..wanted {
            let index = usize::try_from(chance.below(members.len() as u64)).unwrap_or(0);
            chosen.extend(members.get(index).cloned());
        }
        Ok(chosen)
    }

    /// `wanted` different members of very many, or a few less than that.
    fn different(&self, zset: &ZSet, wanted: u64, chance: &mut Chance) -> Result<Scored> {
        let (mut chosen, mut seen) = (Scored::new(), HashSet::new());
        let mut misses = 0;
        while (chosen.len() as u64) < wanted {
            let (member, score) = self.sought(zset, chance)?;
            if seen.insert(member.clone()) {
                chosen.push((member, score));
            } else {
                misses += 1;
            }
            // So unevenly spread that seeks keep finding the same ones.
            if misses > wanted + STEPS {
                return self.fair_sample(zset, wanted, chance);
            }
        }
        Ok(chosen)
    }

    /// `wanted` different members, all subsets alike, in the order of scores: each member in turn
    /// is taken with the odds of those still wanted among those still to come.
    fn fair_sample(&self, zset: &ZSet, wanted: u64, chance: &mut Chance) -> Result<Scored> {
        let mut chosen = Scored::new();
        let (mut left, mut wanted) = (zset.len(), wanted.min(zset.len()));
        let mut walk = zset.walk(self, &Span::all(), false)?;
        while wanted > 0 && left > 0 {
            if chance.below(left) < wanted {
                chosen.append(&mut walk.collect(self, 1, true)?);
                wanted -= 1;
            } else {
                walk.skip(1)?;
            }
            left -= 1;
        }
        Ok(chosen)
    }

    /// A member near a random place.
    fn sought(&self, zset: &ZSet, chance: &mut Chance) -> Result<(Bytes, f64)> {
        let rows = zset.rows();
        let end_of = |backward| -> Result<Vec<u8>> {
            let mut walk = rows.walk_from(self, b"", backward)?;
            walk.advance()?;
            Ok(rows.sub_key(walk.key()).to_vec())
        };
        let place = place_between(&end_of(false)?, &end_of(true)?, chance);
        let mut walk = rows.walk_from(self, &place, false)?;
        for _ in 0..=chance.below(STEPS) {
            if !walk.advance()? {
                walk = rows.walk(self)?;
                walk.advance()?;
            }
        }
        let member = Bytes::copy_from_slice(rows.sub_key(walk.key()));
        Ok((member, stored_score(walk.value())?))
    }
}

/// A random byte string from `first` to `last`.
fn place_between(first: &[u8], last: &[u8], chance: &mut Chance) -> Vec<u8> {
    let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let number = |member: &[u8], filler: u8| {
        let mut bytes = [filler; 8];
        for (to, from) in bytes.iter_mut().zip(member.iter().skip(same)) {
            *to = *from;
        }
        u64::from_be_bytes(bytes)
    };
    let (least, most) = (number(first, 0), number(last, 0xff));
    let place = least.saturating_add(chance.below(most.saturating_sub(least).saturating_add(1)));
    [first.get(..same).unwrap_or_default(), &place.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::types::{Db, ZAdd};

    fn of_size(size: u32) -> Db {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let members: Vec<_> = (0..size).map(|n| (f64::from(n), format!("m{n:06}"))).collect();
        let members: Vec<_> = members.iter().map(|(s, m)| (*s, m.as_bytes())).collect();
        db.zadd(b"z", &members, ZAdd::default()).unwrap();
        db
    }

    #[test]
    fn a_positive_count_gives_different_members_with_their_scores() {
        for size in [10, 5000] {
            let db = of_size(size);
            for count in [1, 5, 10, 2000, 4999, 5000, 9000] {
                let sample = db.zrandmember_count(b"z", count).unwrap();
                let expected = (count as usize).min(size as usize);
                let different: HashSet<_> = sample.iter().map(|(member, _)| member).collect();
                assert_eq!((sample.len(), different.len()), (expected, expected), "of {size}");
                for (member, score) in &sample {
                    assert_eq!(db.zscore(b"z", member).unwrap(), Some(*score));
                }
            }
        }
    }

    #[test]
    fn a_negative_count_gives_that_many_however_few_there_are() {
        for size in [1, 3, 5000] {
            assert_eq!(of_size(size).zrandmember_count(b"z", -20).unwrap().len(), 20);
        }
    }

    #[test]
    fn every_member_is_chosen_sooner_or_later() {
        let db = of_size(8);
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            seen.insert(db.zrandmember(b"z").unwrap().unwrap());
        }
        assert_eq!(seen.len(), 8);
    }

    #[test]
    fn choices_among_many_are_spread_over_all_of_them() {
        let db = of_size(5000);
        let sample = db.zrandmember_count(b"z", -400).unwrap();
        let in_upper_half = sample.iter().filter(|(_, score)| *score >= 2500.0).count();
        assert!((100..300).contains(&in_upper_half), "{in_upper_half} of 400");
    }

    #[test]
    fn a_key_that_does_not_exist_has_no_member() {
        let db = of_size(1);
        assert_eq!(db.zrandmember(b"none").unwrap(), None);
        assert_eq!(db.zrandmember_count(b"none", -3).unwrap(), []);
        assert_eq!(db.zrandmember_count(b"z", 0).unwrap(), []);
    }
}
