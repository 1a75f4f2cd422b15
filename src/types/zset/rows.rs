//! How a sorted set is stored: a row `member -> score` in the data tree, and a row
//! `score, member -> nothing` in the score tree.
//!
//! ```text
//! data    [prefix][member]            -> [score:8 LE], the bits of the double
//! score   [prefix][score:8][member]   -> nothing; the score as bytes that sort (encoding::order)
//! ```
//!
//! Each member has exactly one row in each tree, or is in the record (`packing`). Whoever writes
//! one row writes both: [`ZSet::put`], [`ZSet::remove`], `Collection::unpack`,
//! `CollectionBuilder::put_scored`, and the copies of `Tx::duplicate`. -0.0 and +0.0 are one score,
//! so the score row cannot tell them apart: the member's row keeps the sign of a zero.

use bytes::Bytes;

use super::{End, Scored};
use crate::encoding::keys::score_key;
use crate::encoding::meta::Type;
use crate::encoding::order::{score_bytes, score_from_bytes};
use crate::error::Result;
use crate::keyspace::trees::SCORE;
use crate::txn::collection::Collection;
use crate::txn::{Tx, Walk};
use crate::types::ranks::NEAR;
use crate::types::scores::{damaged, stored_score};
use crate::types::zset::span::Span;

/// A sorted set that exists or is being made.
#[derive(Clone, Debug)]
pub(super) struct ZSet {
    rows: Collection,
    /// The number of removals in the record when it was read.
    removed_before: u64,
}

/// The number of removals after which the ends of the score rows are searched: a walk from an end
/// then steps over no more tombstones than that. Fewer in the tests of this crate, see `rewrite`.
const REMOVALS_BETWEEN_LOOKS: u64 = if cfg!(test) { 2 } else { 16 };
/// One of this many score changes is counted, as this many removals: counting each would write the
/// record every time.
const CHANGES_COUNTED_AT_ONCE: u32 = 16;

impl Tx<'_> {
    /// The sorted set at `key`, if the key exists.
    pub(super) fn zset(&self, key: &[u8]) -> Result<Option<ZSet>> {
        Ok(self.collection(key, Type::ZSet)?.map(ZSet::new))
    }

    /// The sorted set at `key`, or a new empty one.
    pub(super) fn zset_or_new(&mut self, key: &[u8]) -> Result<ZSet> {
        Ok(ZSet::new(self.collection_or_new(key, Type::ZSet)?))
    }

    /// Writes the record of a sorted set that changed.
    pub(super) fn save_zset(&mut self, mut zset: ZSet) -> Result<()> {
        zset.tighten(self)?;
        self.save(zset.rows)
    }
}

impl ZSet {
    fn new(rows: Collection) -> Self {
        Self { removed_before: rows.removed_rows(), rows }
    }

    /// The number of members.
    pub(super) fn len(&self) -> u64 {
        self.rows.len()
    }

    /// The number of members for a reply.
    pub(super) fn card(&self) -> i64 {
        i64::try_from(self.len()).unwrap_or(i64::MAX)
    }

    /// The underlying collection.
    pub(super) fn rows(&self) -> &Collection {
        &self.rows
    }

    /// The score of a member.
    pub(super) fn score(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<f64>> {
        self.rows.with_value(tx, member, stored_score)?.transpose()
    }

    /// Sets the score of a member; `old` is its current score.
    pub(super) fn put(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        score: f64,
        old: Option<f64>,
    ) -> Result<()> {
        let value = Bytes::copy_from_slice(&score.to_bits().to_le_bytes());
        self.rows.put_over(tx, member, value, old.is_some())?;
        if self.rows.is_packed() {
            return Ok(());
        }
        let row = score_key(self.rows.prefix(), score, member);
        self.rows.admit_score(&row);
        if let Some(old) = old {
            self.remove_score(tx, old, member);
            if tx.store().one_in(u64::from(CHANGES_COUNTED_AT_ONCE)) {
                let tombstones = self.rows.tombstones_mut();
                tombstones.into_iter().for_each(|it| it.count_removed(CHANGES_COUNTED_AT_ONCE));
            }
        }
        // After the removal: both are one row when only the sign of a zero changes.
        self.rows.put_score(tx, &row);
        Ok(())
    }

    fn remove_score(&mut self, tx: &mut Tx<'_>, score: f64, member: &[u8]) {
        let row = score_key(self.rows.prefix(), score, member);
        self.rows.remove_score(tx, &row);
    }

    /// Searches the ends of the score rows if they may have moved and many rows were removed since
    /// the last search; not where nobody walks along the scores, so that the search would be the
    /// first walk.
    fn tighten(&mut self, tx: &Tx<'_>) -> Result<()> {
        let looks = |removed: u64| removed / REMOVALS_BETWEEN_LOOKS;
        let due = looks(self.rows.removed_rows()) > looks(self.removed_before);
        let rewritten = self.rows.needs_rewrite() && tx.has_room_to_rewrite();
        if !due || rewritten || self.len() == 0 || !tx.walk_is_cheap(SCORE) {
            return Ok(());
        }
        let Some(rows) = self.rows.rows() else { return Ok(()) };
        let (first_is_loose, end_is_loose) =
            (rows.tombstones.first_is_loose(), rows.tombstones.end_is_loose());
        if first_is_loose && let Some(first) = self.end_row(tx, false)? {
            self.is_bounded_by(End::Min, &first);
        }
        if end_is_loose && let Some(last) = self.end_row(tx, true)? {
            self.is_bounded_by(End::Max, &last);
        }
        Ok(())
    }

    /// The sub key of the first score row, or of the last one.
    fn end_row(&self, tx: &Tx<'_>, last: bool) -> Result<Option<Vec<u8>>> {
        let mut walk = self.walk(tx, &Span::all(), last)?;
        Ok(walk.advance()?.then(|| walk.sub_key().to_vec()))
    }

    /// Removes a member and returns its score.
    pub(super) fn remove(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<Option<f64>> {
        let Some(score) = self.score(tx, member)? else { return Ok(None) };
        self.remove_present(tx, member, score)?;
        Ok(Some(score))
    }

    /// Removes a member that exists with this score.
    pub(super) fn remove_present(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        score: f64,
    ) -> Result<()> {
        self.rows.remove_present(tx, member)?;
        if !self.rows.is_packed() {
            self.remove_score(tx, score, member);
        }
        Ok(())
    }

    /// Notes that the score row with this sub key is the outermost at that end.
    pub(super) fn is_bounded_by(&mut self, end: End, sub_key: &[u8]) {
        let Some(tombstones) = self.rows.tombstones_mut() else { return };
        match end {
            End::Min => tombstones.begins_at(sub_key),
            End::Max => tombstones.ends_with(sub_key),
        }
    }

    /// Walks over the members of a span, in order or backward.
    pub(super) fn walk<'z>(
        &'z self,
        tx: &Tx<'_>,
        span: &Span,
        backward: bool,
    ) -> Result<ScoreWalk<'z>> {
        let rows = self.rows.walk_scores(tx, &span.lower, span.upper.as_deref(), backward)?;
        Ok(ScoreWalk { zset: self, rows })
    }

    /// Walks over the members of a span without the first `skipped` ones; `None` if there are no
    /// more.
    pub(super) fn walk_past<'z>(
        &'z self,
        tx: &Tx<'_>,
        span: &Span,
        backward: bool,
        skipped: u64,
    ) -> Result<Option<ScoreWalk<'z>>> {
        if skipped <= NEAR || !self.rows.is_counted(tx) {
            let mut walk = self.walk(tx, span, backward)?;
            return Ok(walk.skip(skipped)?.then_some(walk));
        }
        let mut nth = skipped;
        if backward {
            let Some(others) = self.count(tx, span)?.checked_sub(1 + skipped) else {
                return Ok(None);
            };
            nth = others;
        }
        let first = self.rows.select_score(tx, &span.lower, span.upper.as_deref(), nth)?;
        let Some(first) = first else { return Ok(None) };
        self.walk(tx, &span.starting_at(&first, backward), backward).map(Some)
    }

    /// The number of members in a span.
    pub(super) fn count(&self, tx: &Tx<'_>, span: &Span) -> Result<u64> {
        if span.is_everything() {
            return Ok(self.len());
        }
        if let Some(count) = self.rows.count_scores(tx, &span.lower, span.upper.as_deref())? {
            return Ok(count);
        }
        let (mut walk, mut count) = (self.walk(tx, span, false)?, 0);
        while walk.advance()? {
            count += 1;
        }
        Ok(count)
    }

    /// The first member, or the last one.
    pub(super) fn end(&self, tx: &Tx<'_>, last: bool) -> Result<Option<(Bytes, f64)>> {
        let mut walk = self.walk(tx, &Span::all(), last)?;
        if !walk.advance()? {
            return Ok(None);
        }
        let (score, member) = walk.row()?;
        Ok(Some((Bytes::copy_from_slice(member), score)))
    }
}

/// Walks over members in score order.
#[derive(Debug)]
pub(super) struct ScoreWalk<'z> {
    zset: &'z ZSet,
    rows: Walk,
}

impl ScoreWalk<'_> {
    /// Moves to the next member; `false` when there are no more.
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.rows.advance()
    }

    /// Skips `n` members; `false` if there are fewer.
    pub(super) fn skip(&mut self, n: u64) -> Result<bool> {
        for _ in 0..n {
            if !self.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sub key of the current score row.
    pub(super) fn sub_key(&self) -> &[u8] {
        self.zset.rows.sub_key(self.rows.key())
    }

    /// The current member and its score, in which a zero has no sign.
    pub(super) fn row(&self) -> Result<(f64, &[u8])> {
        let (score, member) = self
            .sub_key()
            .split_first_chunk()
            .ok_or_else(|| damaged("a score row is too short"))?;
        Ok((score_from_bytes(*score), member))
    }

    /// The current member and its score. With `exact` a zero keeps its sign, which costs a lookup
    /// unless the members are packed.
    pub(super) fn scored(&self, tx: &Tx<'_>, exact: bool) -> Result<(f64, &[u8])> {
        let (mut score, member) = self.row()?;
        if exact && score == 0.0 {
            score = self.stored_score(tx, member)?;
        }
        Ok((score, member))
    }

    /// The stored score of a member.
    fn stored_score(&self, tx: &Tx<'_>, member: &[u8]) -> Result<f64> {
        if self.zset.rows.is_packed() {
            return stored_score(self.rows.value());
        }
        let stored = self.zset.score(tx, member)?;
        stored.ok_or_else(|| damaged("a score row has no member"))
    }

    /// Collects at most `count` members. With `exact` a zero keeps its sign.
    pub(super) fn collect(&mut self, tx: &Tx<'_>, count: u64, exact: bool) -> Result<Scored> {
        let mut members = Scored::new();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        while members.len() < count && self.advance()? {
            let (score, member) = self.scored(tx, exact)?;
            members.push((Bytes::copy_from_slice(member), score));
        }
        Ok(members)
    }
}

/// Makes the sub key of a score row, `[score:8][member]`.
pub(super) fn score_sub_key(score: f64, member: &[u8]) -> Vec<u8> {
    [&score_bytes(score), member].concat()
}
