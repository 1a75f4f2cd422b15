//! ZRANDMEMBER: members that are drawn by chance, with or without repeats.

use bytes::Bytes;

use super::Scored;
use super::span::Span;
use crate::error::Result;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::random_members::Choice;
use crate::types::scores::stored_score;

commands! {
    /// ZRANDMEMBER: a random member. All are equally likely.
    read fn zrandmember(key: &[u8]) -> Option<Bytes>;
    /// ZRANDMEMBER with a count: that many different random members with their scores, all if there
    /// are fewer. A negative count returns that many, with repetitions.
    read fn zrandmember_count(key: &[u8], count: i64) -> Vec<(Bytes, f64)>;
}

impl Tx<'_> {
    pub(crate) fn zrandmember(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let Some(zset) = self.zset(key)? else { return Ok(None) };
        Ok(self.sample_one(zset.rows())?.map(|sampled| sampled.member))
    }

    pub(crate) fn zrandmember_count(&self, key: &[u8], count: i64) -> Result<Scored> {
        let Some(zset) = self.zset(key)? else { return Ok(Scored::new()) };
        // All members come in score order, as in the reference.
        if count >= zset.card() {
            return zset.walk(self, &Span::all(), false)?.collect(self, u64::MAX, true);
        }
        let sampled = self.sample(zset.rows(), Choice::of_count(count))?;
        sampled.into_iter().map(|one| Ok((one.member, stored_score(&one.value)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::options::Options;
    use crate::txn::Db;
    use crate::types::ZAdd;

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
