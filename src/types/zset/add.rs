//! ZADD, ZINCRBY.

use super::rows::ZSet;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;

/// The options of ZADD: when it sets a score, and what it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZAdd {
    /// NX: only add new members.
    pub nx: bool,
    /// XX: only change existing members.
    pub xx: bool,
    /// GT: only increase the scores of existing members.
    pub gt: bool,
    /// LT: only decrease the scores of existing members.
    pub lt: bool,
    /// CH: count changed members as well as new ones.
    pub ch: bool,
}

impl ZAdd {
    /// Fails if the options exclude each other.
    pub(crate) fn check(self) -> Result<()> {
        let text = if self.nx && self.xx {
            "ERR XX and NX options at the same time are not compatible"
        } else if (self.nx && (self.gt || self.lt)) || (self.gt && self.lt) {
            "ERR GT, LT, and/or NX options at the same time are not compatible"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Syntax, text))
    }
}

commands! {
    /// ZADD: sets the scores of members, as far as the options allow; how many are new (with `ch`:
    /// new or changed). Of a member named twice the last score counts.
    write [key] fn zadd(key: &[u8], members: &[(f64, &[u8])], options: ZAdd) -> i64;
    /// ZADD with INCR: adds to the score of a member, 0 if it is missing; the new score, or `None`
    /// if the options forbid it.
    write [key] fn zadd_incr(
        key: &[u8], increment: f64, member: &[u8], options: ZAdd,
    ) -> Option<f64>;
    /// ZINCRBY: adds to the score of a member, 0 if it is missing; the new score.
    write [key] fn zincrby(key: &[u8], increment: f64, member: &[u8]) -> f64;
}

/// What ZADD did to a member.
enum Outcome {
    Forbidden,
    Added(f64),
    Changed(f64),
    Same(f64),
}

fn not_a_number() -> Error {
    Error::new(ErrorKind::NotFloat, "ERR resulting score is not a number (NaN)")
}

impl Tx<'_> {
    pub(crate) fn zadd(
        &mut self,
        key: &[u8],
        members: &[(f64, &[u8])],
        options: ZAdd,
    ) -> Result<i64> {
        options.check()?;
        let Some(mut zset) = self.zset_to_add(key, options)? else { return Ok(0) };
        let (mut counted, mut changed) = (0, false);
        for (score, member) in members {
            match self.give_score(&mut zset, member, *score, false, options)? {
                Outcome::Added(_) => (counted, changed) = (counted + 1, true),
                Outcome::Changed(_) => {
                    (counted, changed) = (counted + i64::from(options.ch), true);
                }
                Outcome::Same(_) | Outcome::Forbidden => {}
            }
        }
        self.save_zset(zset)?;
        if changed {
            self.notify(Classes::ZSET, "zadd", key);
        }
        Ok(counted)
    }

    pub(crate) fn zadd_incr(
        &mut self,
        key: &[u8],
        increment: f64,
        member: &[u8],
        options: ZAdd,
    ) -> Result<Option<f64>> {
        options.check()?;
        let Some(mut zset) = self.zset_to_add(key, options)? else { return Ok(None) };
        let outcome = self.give_score(&mut zset, member, increment, true, options)?;
        self.save_zset(zset)?;
        if matches!(outcome, Outcome::Added(_) | Outcome::Changed(_)) {
            self.notify(Classes::ZSET, "zincr", key);
        }
        Ok(match outcome {
            Outcome::Added(score) | Outcome::Changed(score) | Outcome::Same(score) => Some(score),
            Outcome::Forbidden => None,
        })
    }

    pub(crate) fn zincrby(&mut self, key: &[u8], increment: f64, member: &[u8]) -> Result<f64> {
        let score = self.zadd_incr(key, increment, member, ZAdd::default())?;
        score.ok_or_else(not_a_number)
    }

    /// The sorted set to add to; `None` if it is missing and only existing members may change.
    fn zset_to_add(&mut self, key: &[u8], options: ZAdd) -> Result<Option<ZSet>> {
        if options.xx { self.zset(key) } else { self.zset_or_new(key).map(Some) }
    }

    fn give_score(
        &mut self,
        zset: &mut ZSet,
        member: &[u8],
        score: f64,
        increment: bool,
        options: ZAdd,
    ) -> Result<Outcome> {
        if score.is_nan() {
            return Err(not_a_number());
        }
        let Some(old) = zset.score(self, member)? else {
            if options.xx {
                return Ok(Outcome::Forbidden);
            }
            zset.put(self, member, score, None)?;
            return Ok(Outcome::Added(score));
        };
        if options.nx {
            return Ok(Outcome::Forbidden);
        }
        let score = if increment { old + score } else { score };
        if score.is_nan() {
            return Err(not_a_number());
        }
        if (options.gt && score <= old) || (options.lt && score >= old) {
            return Ok(Outcome::Forbidden);
        }
        // A zero keeps its sign: both zeros are one score.
        if score == old {
            return Ok(Outcome::Same(score));
        }
        zset.put(self, member, score, Some(old))?;
        Ok(Outcome::Changed(score))
    }
}
