//! Random members of a collection, for HRANDFIELD, SRANDMEMBER, SPOP and ZRANDMEMBER.
//!
//! A packed collection, one of up to [`COUNTED`] members, or one of which a third or more is asked
//! for, is counted off from its first member: every member is exactly as likely as any other. A
//! larger one draws rows from the engine's runs and blocks (`engine::Sampler`): every member is
//! equally likely, except those that share a block with more than four times as many others as
//! usual in their table, which are less likely by that factor.
//!
//! Pending members of the transaction are chosen in proportion to their number; rows with pending
//! writes are rejected when they are drawn from the store.
//!
//! If rows cannot be drawn, because nearly all stored ones are old versions or tombstones
//! ([`DRAWS`] in vain, fewer if there are few members), up to [`COUNTED_OTHERWISE`] members are
//! counted off. With more members, the trie of their bytes is descended:
//!
//! 1. At each fork choose one of the next bytes that occur, all alike, until at most [`LEAF`]
//!    members share the bytes chosen; choose one of them, all alike. At a fork of more than
//!    [`WAYS`] any byte between the least and the greatest is chosen, and of those that occur the
//!    next one taken. The probability `p` of ending at this member is known.
//! 2. Keep it with probability `min(1, 1 / (2 n p))`, n being the number of members; else begin
//!    again, up to [`TRIALS`] times, and then choose among what was found in proportion to `1 / p`.
//!
//! The bias: a member exceeds its fair chance only because others have less, and those are the
//! members with `p < 1 / (2 n)`. Numbered names, hashes and random bytes fork so evenly that there
//! are hardly any. Names that fork very unevenly (each a prefix of the next, say) reach the limit
//! of trials, and the early ones are chosen too often. A fork costs up to [`WAYS`] seeks, and is
//! remembered during a call.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

use bytes::Bytes;

use crate::encoding::keys::after_prefix;
use crate::engine::{self, CacheFill};
use crate::error::{Error, ErrorKind, Result};
use crate::io::splitmix::SplitMix64;
use crate::keyspace::trees::DATA;
use crate::txn::collection::Collection;
use crate::txn::{Tx, Walk};
use crate::types::number::out_of_range;

/// The most members of a collection that is always counted off.
pub(crate) const COUNTED: u64 = 64;
/// The most members of a collection that is counted off where rows cannot be drawn.
const COUNTED_OTHERWISE: u64 = 4096;
/// The most members of a leaf: they are counted off.
const LEAF: u64 = 64;
/// The most branches of a fork that is read as a whole.
const WAYS: usize = 16;
/// The number of failed draws in a row after which rows are no longer drawn.
const DRAWS: u64 = 1024;
/// The number of trials before one of the tried members is taken.
const TRIALS: usize = 64;
/// The most repetitions: the reply is built in memory.
const MOST_REPEATED: u64 = 1 << 24;

/// How many members to choose, and whether one may come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This many different members, all if there are fewer.
    Different(u64),
    /// This many members, each chosen from all.
    Repeated(u64),
}

impl Choice {
    fn count(self) -> u64 {
        match self {
            Self::Different(count) | Self::Repeated(count) => count,
        }
    }

    /// Converts the count of a command: a negative one allows repetitions.
    pub(crate) fn of_count(count: i64) -> Self {
        match u64::try_from(count) {
            Ok(count) => Self::Different(count),
            Err(_) => Self::Repeated(count.unsigned_abs()),
        }
    }
}

/// A member and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sampled {
    pub(crate) member: Bytes,
    pub(crate) value: Bytes,
}

impl Tx<'_> {
    /// Chooses random members. Different ones may come in byte order, repeated ones come in random
    /// order.
    pub(crate) fn sample(&self, from: &Collection, choice: Choice) -> Result<Vec<Sampled>> {
        let mut sampler = Sampler::new(self, from);
        let few = from.is_packed() || from.len() <= COUNTED;
        let counts = few || choice.count() >= from.len() / 3;
        if !counts {
            sampler.look_at_rows()?;
        }
        match choice {
            _ if from.len() == 0 => Ok(Vec::new()),
            Choice::Different(wanted) if counts => sampler.select(wanted),
            Choice::Different(wanted) => sampler.different(wanted),
            Choice::Repeated(wanted) if wanted > MOST_REPEATED => Err(out_of_range("")),
            Choice::Repeated(wanted) if counts => sampler.pick_ranks(wanted),
            Choice::Repeated(wanted) => sampler.repeated(wanted),
        }
    }

    /// Chooses one random member, if there is any.
    pub(crate) fn sample_one(&self, from: &Collection) -> Result<Option<Sampled>> {
        Ok(self.sample(from, Choice::Different(1))?.pop())
    }
}

/// The members with a common prefix.
#[derive(Clone, Debug)]
enum Node {
    /// So few that they are counted off.
    Leaf(u64),
    /// They continue with different bytes after `stem`, which is the prefix or longer; `None` if
    /// the stem itself is a member.
    Fork { stem: Vec<u8>, ways: Vec<Option<u8>> },
    /// They continue with many different bytes after `stem`, from `first` to `last`.
    WideFork { stem: Vec<u8>, first: Option<u8>, last: u8 },
}

/// A branch of a fork and its probability: a byte, or none for the member that ends there.
type Way = (Option<u8>, f64);

struct Sampler<'a, 's> {
    tx: &'a Tx<'s>,
    from: &'a Collection,
    random: SplitMix64,
    /// Draws rows from the store, as long as that succeeds.
    rows: Option<engine::Sampler>,
    /// Pending members of the transaction.
    added: Vec<(&'a [u8], &'a Bytes)>,
    nodes: HashMap<Vec<u8>, Node>,
}

impl<'a, 's> Sampler<'a, 's> {
    fn new(tx: &'a Tx<'s>, from: &'a Collection) -> Self {
        // Every RandomState is keyed differently, from the operating system's randomness.
        let random = SplitMix64::new(RandomState::new().build_hasher().finish());
        Self { tx, from, random, rows: None, added: Vec::new(), nodes: HashMap::new() }
    }

    /// Prepares for drawing rows.
    fn look_at_rows(&mut self) -> Result<()> {
        let (first, end) = (self.from.prefix(), after_prefix(self.from.prefix()));
        let written = self.tx.pending_rows(DATA, first, end.as_deref());
        self.added = written.filter_map(|(row, value)| Some((row, value?))).collect();
        self.rows = Some(self.tx.row_sampler(DATA, first, end.as_deref(), CacheFill::Fill)?);
        Ok(())
    }

    fn sampled(&self, walk: &Walk) -> Sampled {
        let member = Bytes::copy_from_slice(self.from.sub_key(walk.key()));
        Sampled { member, value: walk.value_bytes() }
    }

    /// Takes each member with the probability that the number still wanted has among those left.
    fn select(&mut self, wanted: u64) -> Result<Vec<Sampled>> {
        let mut left = self.from.len();
        let mut wanted = wanted.min(left);
        let mut chosen = Vec::new();
        let mut walk = self.from.walk(self.tx)?;
        while wanted > 0 && walk.advance()? {
            if self.random.below(left) < wanted {
                chosen.push(self.sampled(&walk));
                wanted -= 1;
            }
            left = left.saturating_sub(1);
        }
        Ok(chosen)
    }

    /// Chooses ranks first, then looks them up in one walk.
    fn pick_ranks(&mut self, wanted: u64) -> Result<Vec<Sampled>> {
        let ranks: Vec<u64> = (0..wanted).map(|_| self.random.below(self.from.len())).collect();
        let mut ascending = ranks.clone();
        ascending.sort_unstable();
        ascending.dedup();
        let mut members = HashMap::with_capacity(ascending.len());
        let mut walk = self.from.walk(self.tx)?;
        let (mut next, mut rank) = (ascending.into_iter().peekable(), 0);
        while next.peek().is_some() && walk.advance()? {
            if next.next_if_eq(&rank).is_some() {
                members.insert(rank, self.sampled(&walk));
            }
            rank += 1;
        }
        Ok(ranks.iter().filter_map(|rank| members.get(rank).cloned()).collect())
    }

    /// Draws until there are enough different members. Where members fork so unevenly that some are
    /// hardly ever drawn, all are counted off.
    fn different(&mut self, wanted: u64) -> Result<Vec<Sampled>> {
        let mut seen = HashSet::new();
        let mut chosen = Vec::new();
        for _ in 0..wanted.saturating_mul(16) {
            let Some(drawn) = self.draw()? else { break };
            if seen.insert(drawn.member.clone()) {
                chosen.push(drawn);
            }
            if seen.len() as u64 >= wanted {
                return Ok(chosen);
            }
        }
        self.select(wanted)
    }

    /// Draws this many members, and counts off those that cannot be drawn.
    fn repeated(&mut self, wanted: u64) -> Result<Vec<Sampled>> {
        let mut chosen = Vec::new();
        for done in 0..wanted {
            let Some(drawn) = self.draw()? else {
                chosen.extend(self.pick_ranks(wanted - done)?);
                break;
            };
            chosen.push(drawn);
        }
        Ok(chosen)
    }

    /// Draws one member; `None` if there are few enough to count them off.
    fn draw(&mut self) -> Result<Option<Sampled>> {
        if let Some(rows) = &self.rows {
            if self.random.below(self.from.len()) < self.added.len() as u64 {
                return Ok(self.draw_added());
            }
            // Counting off a few is fast, too.
            let few = self.from.len() <= COUNTED_OTHERWISE;
            let draws = if few { (self.from.len() / 4).max(16) } else { DRAWS };
            for _ in 0..draws {
                if let Some((row, value)) = rows.draw(&mut |below| self.random.below(below))?
                    && !self.tx.is_pending(DATA, &row)
                {
                    let member = Bytes::copy_from_slice(self.from.sub_key(&row));
                    return Ok(Some(Sampled { member, value }));
                }
            }
            self.rows = None;
        }
        if self.from.len() <= COUNTED_OTHERWISE {
            return Ok(None);
        }
        self.descend_fairly().map(Some)
    }

    /// Draws one of the pending members.
    fn draw_added(&mut self) -> Option<Sampled> {
        let at = usize::try_from(self.random.below(self.added.len() as u64)).ok()?;
        let (row, value) = self.added.get(at)?;
        let member = Bytes::copy_from_slice(self.from.sub_key(row));
        Some(Sampled { member, value: (*value).clone() })
    }

    /// Chooses a member fairly: step 2 of the algorithm above.
    fn descend_fairly(&mut self) -> Result<Sampled> {
        let fair = 1.0 / (2.0 * self.from.len() as f64);
        let (mut kept, mut weight) = (None, 0.0);
        for _ in 0..TRIALS {
            let (found, probability) = self.descend()?;
            let Some(found) = found else { continue };
            if self.chance() * probability < fair {
                return Ok(found);
            }
            weight += probability.recip();
            if self.chance() * weight * probability < 1.0 {
                kept = Some(found);
            }
        }
        kept.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "a collection has fewer members than its size")
        })
    }

    /// A number in `[0, 1)`.
    fn chance(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        self.random.below(STEPS) as f64 / STEPS as f64
    }

    /// Descends to a member, with the probability of ending there: step 1 of the algorithm above.
    fn descend(&mut self) -> Result<(Option<Sampled>, f64)> {
        let (mut prefix, mut probability) = (Vec::new(), 1.0);
        loop {
            let (stem, (way, chance)) = match self.node(&prefix)? {
                Node::Leaf(count) => {
                    let steps = self.random.below(count);
                    let found = self.member_after(&prefix, steps)?;
                    return Ok((found, probability / count.max(1) as f64));
                }
                Node::Fork { stem, ways } => (stem, self.choose(&ways)),
                Node::WideFork { stem, first, last } => {
                    let way = self.choose_wide(&stem, first, last)?;
                    (stem, way)
                }
            };
            prefix = stem;
            probability *= chance;
            match way {
                Some(byte) => prefix.push(byte),
                None => return Ok((self.member_after(&prefix, 0)?, probability)),
            }
        }
    }

    fn choose(&mut self, ways: &[Option<u8>]) -> Way {
        let at = usize::try_from(self.random.below(ways.len() as u64)).unwrap_or(0);
        (ways.get(at).copied().flatten(), 1.0 / ways.len().max(1) as f64)
    }

    /// Chooses any byte, then the next that occurs: it is as likely as the bytes since the one
    /// before it.
    fn choose_wide(&mut self, stem: &[u8], first: Option<u8>, last: u8) -> Result<Way> {
        // Position 0 stands for the stem, if that is a member, and byte b for position b + 1.
        let place = |way: Option<u8>| way.map_or(0, |byte| u64::from(byte) + 1);
        let places = place(Some(last)) - place(first) + 1;
        let wanted = place(first) + self.random.below(places);
        let mut from = stem.to_vec();
        from.extend(wanted.checked_sub(1).and_then(|byte| u8::try_from(byte).ok()));
        let found = self.way_at(stem, &from, false)?.unwrap_or(Some(last));
        from.truncate(stem.len());
        from.extend(found);
        let before = if found == first { None } else { self.way_at(stem, &from, true)? };
        let gap = before.map_or(1, |before| place(found).saturating_sub(place(before)));
        Ok((found, gap as f64 / places as f64))
    }

    /// The byte after `stem` in the first member from `from` on, or in the last one before `from`.
    fn way_at(&self, stem: &[u8], from: &[u8], backward: bool) -> Result<Option<Option<u8>>> {
        let mut walk = self.from.walk_from(self.tx, from, backward)?;
        let found = walk.advance()?;
        let rest = self.from.sub_key(walk.key()).strip_prefix(stem).filter(|_| found);
        Ok(rest.map(|rest| rest.first().copied()))
    }

    fn member_after(&self, prefix: &[u8], steps: u64) -> Result<Option<Sampled>> {
        let mut walk = self.from.walk_from(self.tx, prefix, false)?;
        for _ in 0..=steps {
            if !walk.advance()? {
                return Ok(None);
            }
        }
        Ok(Some(self.sampled(&walk)))
    }

    fn node(&mut self, prefix: &[u8]) -> Result<Node> {
        if let Some(node) = self.nodes.get(prefix) {
            return Ok(node.clone());
        }
        let node = self.read_node(prefix)?;
        if let Entry::Vacant(place) = self.nodes.entry(prefix.to_vec()) {
            place.insert(node.clone());
        }
        Ok(node)
    }

    fn read_node(&self, prefix: &[u8]) -> Result<Node> {
        let mut walk = self.from.walk_from(self.tx, prefix, false)?;
        let mut first = Vec::new();
        for count in 0..=LEAF {
            if !walk.advance()? || !self.from.sub_key(walk.key()).starts_with(prefix) {
                return Ok(Node::Leaf(count));
            }
            if count == 0 {
                first = self.from.sub_key(walk.key()).to_vec();
            }
        }
        let end = after_prefix(prefix).unwrap_or_default();
        let mut last = self.from.walk_from(self.tx, &end, true)?;
        last.advance()?;
        let last = self.from.sub_key(last.key());
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let greatest = last.get(shared).copied();
        first.truncate(shared);
        let ways = self.read_ways(&first)?;
        Ok(match (greatest, ways.first()) {
            (Some(last), Some(way)) if ways.len() > WAYS => {
                Node::WideFork { stem: first, first: *way, last }
            }
            _ => Node::Fork { stem: first, ways },
        })
    }

    /// The bytes after `stem` in members, up to one more than [`WAYS`].
    fn read_ways(&self, stem: &[u8]) -> Result<Vec<Option<u8>>> {
        let mut ways = Vec::new();
        let mut from = stem.to_vec();
        while ways.len() <= WAYS
            && let Some(way) = self.way_at(stem, &from, false)?
        {
            ways.push(way);
            from.truncate(stem.len());
            match way.map_or(Some(0), |byte| byte.checked_add(1)) {
                Some(next) => from.push(next),
                None => break,
            }
        }
        Ok(ways)
    }
}

#[cfg(test)]
mod tests;
