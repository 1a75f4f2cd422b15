//! How a sorted set is stored: a row `member -> score` in the data tree, and a row
//! `score, member -> nothing` in the score tree.
//!
//! ```text
//! data    [prefix][member]            -> [score:8 LE], the bits of the double
//! score   [prefix][score:8][member]   -> nothing; the score as bytes that sort (encoding::order)
//! ```
//!
//! Each member has exactly one row in each tree, or none and is in the record (`packing`). Who writes
//! one writes both: [`ZSet::put`], [`ZSet::remove`], `Collection::unpack`, `Build::put_scored`, and the
//! copies of `Tx::duplicate`. -0.0 and +0.0 are one score, so the score row cannot tell them apart:
//! the sign of a zero is beside the member.

use bytes::Bytes;

use super::{End, Scored};
use crate::encoding::keys::score_key;
use crate::encoding::meta::Type;
use crate::encoding::order::{score_bytes, score_from_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::types::collection::Collection;
use crate::types::txn::{SCORE, Tx, Walk};
use crate::types::zset::span::Span;

/// A sorted set that exists or is being made.
#[derive(Clone, Debug)]
pub(super) struct ZSet {
    rows: Collection,
    /// Removals that the record counted when it was read.
    removed_before: u64,
}

/// The ends of the score rows are looked for after this many removals: a walk from an end then
/// steps over no more removed rows than that. Fewer in the tests of this crate, see `renew`.
const REMOVALS_BETWEEN_LOOKS: u64 = if cfg!(test) { 2 } else { 16 };
/// One of this many changes of a score is counted, as this many removals: a count of each would
/// write the record every time.
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

/// The score in a row of the data tree.
pub(crate) fn stored_score(value: &[u8]) -> Result<f64> {
    let bits = <[u8; 8]>::try_from(value).map(u64::from_le_bytes);
    let score = bits.map(f64::from_bits).ok().filter(|score| !score.is_nan());
    score.ok_or_else(|| damaged("the score of a member is no number"))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a sorted set cannot be read: {what}"))
}

impl ZSet {
    fn new(rows: Collection) -> Self {
        Self { removed_before: rows.wear().removed(), rows }
    }

    /// Number of members.
    pub(super) fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Number of members, as replied.
    pub(super) fn card(&self) -> i64 {
        i64::try_from(self.len()).unwrap_or(i64::MAX)
    }

    /// The members without their order.
    pub(super) fn rows(&self) -> &Collection {
        &self.rows
    }

    /// The score of a member.
    pub(super) fn score(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<f64>> {
        self.rows.look(tx, member, stored_score)?.transpose()
    }

    /// Gives a member a score; `old` is the one it has.
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
                self.rows.wear_mut().count_removed(CHANGES_COUNTED_AT_ONCE);
            }
        }
        // After the removal: both are one row when only the sign of a zero changes.
        tx.put_row(SCORE, &row, Bytes::new());
        Ok(())
    }

    fn remove_score(&mut self, tx: &mut Tx<'_>, score: f64, member: &[u8]) {
        let row = score_key(self.rows.prefix(), score, member);
        tx.remove_row(SCORE, &row);
        self.rows.score_removed(&row);
    }

    /// Looks for the ends of the score rows if they may have moved and much was removed since the
    /// last time; but not where nobody walks along the scores, and a look would be the first.
    fn tighten(&mut self, tx: &Tx<'_>) -> Result<()> {
        let looks = |removed: u64| removed / REMOVALS_BETWEEN_LOOKS;
        let due = looks(self.rows.wear().removed()) > looks(self.removed_before);
        let renewed = self.rows.is_worn() && tx.has_room_to_renew();
        if !due || renewed || self.len() == 0 || !tx.walks_at_once(SCORE) {
            return Ok(());
        }
        if self.rows.wear().first_is_loose()
            && let Some(first) = self.end_row(tx, false)?
        {
            self.is_bounded_by(End::Min, &first);
        }
        if self.rows.wear().end_is_loose()
            && let Some(last) = self.end_row(tx, true)?
        {
            self.is_bounded_by(End::Max, &last);
        }
        Ok(())
    }

    /// The sub key of the first score row, or of the last one.
    fn end_row(&self, tx: &Tx<'_>, last: bool) -> Result<Option<Vec<u8>>> {
        let mut walk = self.walk(tx, &Span::all(), last)?;
        Ok(walk.advance()?.then(|| walk.sub_key().to_vec()))
    }

    /// Removes a member; the score it had.
    pub(super) fn remove(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<Option<f64>> {
        let Some(score) = self.score(tx, member)? else { return Ok(None) };
        self.remove_present(tx, member, score)?;
        Ok(Some(score))
    }

    /// Removes a member that is there with this score.
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

    /// The score row with this sub key is the outermost at that end.
    pub(super) fn is_bounded_by(&mut self, end: End, sub_key: &[u8]) {
        match end {
            _ if self.rows.is_packed() => {}
            End::Min => self.rows.wear_mut().begins_at(sub_key),
            End::Max => self.rows.wear_mut().ends_with(sub_key),
        }
    }

    /// The members of a span, in order or backward.
    pub(super) fn walk<'z>(
        &'z self,
        tx: &Tx<'_>,
        span: &Span,
        backward: bool,
    ) -> Result<ScoreWalk<'z>> {
        let rows = self.rows.walk_scores(tx, &span.lower, span.upper.as_deref(), backward)?;
        Ok(ScoreWalk { zset: self, rows })
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

/// Members along their scores.
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

    /// Moves on `n` members; `false` when there are fewer.
    pub(super) fn skip(&mut self, n: u64) -> Result<bool> {
        for _ in 0..n {
            if !self.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sub key of the score row.
    pub(super) fn sub_key(&self) -> &[u8] {
        self.zset.rows.sub_key(self.rows.key())
    }

    /// The member and its score, in which a zero has no sign.
    pub(super) fn row(&self) -> Result<(f64, &[u8])> {
        let (score, member) = self
            .sub_key()
            .split_first_chunk()
            .ok_or_else(|| damaged("a score row is too short"))?;
        Ok((score_from_bytes(*score), member))
    }

    /// The member and its score. `exact`: a zero with its sign, which costs a look-up unless the
    /// members are in the record.
    pub(super) fn scored(&self, tx: &Tx<'_>, exact: bool) -> Result<(f64, &[u8])> {
        let (mut score, member) = self.row()?;
        if exact && score == 0.0 {
            score = self.stored_score(tx, member)?;
        }
        Ok((score, member))
    }

    /// The score that is beside the member.
    fn stored_score(&self, tx: &Tx<'_>, member: &[u8]) -> Result<f64> {
        if self.zset.rows.is_packed() {
            return stored_score(self.rows.value());
        }
        let stored = self.zset.score(tx, member)?;
        stored.ok_or_else(|| damaged("a score row has no member"))
    }

    /// The next members, at most `count`. `exact`: see [`ScoreWalk::scored`].
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

/// `[score:8][member]`, the sub key of a score row.
pub(super) fn score_sub_key(score: f64, member: &[u8]) -> Vec<u8> {
    [&score_bytes(score), member].concat()
}
