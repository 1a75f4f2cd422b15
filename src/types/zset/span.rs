//! A span of score rows, and the span that a range by score covers.

use std::ops::Bound;

use super::text::not_a_bound;
use crate::encoding::order::score_bytes;
use crate::error::Result;

/// Score rows with sub keys from `lower` to before `upper`; without `upper` to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
}

impl Span {
    /// All rows.
    pub(super) fn all() -> Self {
        Self { lower: Vec::new(), upper: None }
    }

    /// Of this span the row with this sub key and those that a walk meets after it.
    pub(super) fn starting_at(&self, sub_key: &[u8], backward: bool) -> Self {
        match backward {
            false => Self { lower: sub_key.to_vec(), upper: self.upper.clone() },
            true => Self { lower: self.lower.clone(), upper: Some([sub_key, &[0]].concat()) },
        }
    }

    /// Whether the span covers every row.
    pub(super) fn is_everything(&self) -> bool {
        let least = self.lower.as_slice() <= &score_bytes(f64::NEG_INFINITY)[..];
        let greatest = after_score(f64::INFINITY);
        least && self.upper.as_ref().is_none_or(|upper| *upper >= greatest)
    }

    /// The rows with scores within the bounds.
    pub(super) fn of_scores(min: Bound<f64>, max: Bound<f64>) -> Result<Self> {
        let is_nan = |bound: Bound<f64>| matches!(bound, Bound::Included(score) | Bound::Excluded(score) if score.is_nan());
        if is_nan(min) || is_nan(max) {
            return Err(not_a_bound());
        }
        let lower = match min {
            Bound::Included(score) => score_bytes(score).to_vec(),
            Bound::Excluded(score) => after_score(score),
            Bound::Unbounded => Vec::new(),
        };
        let upper = match max {
            Bound::Included(score) => Some(after_score(score)),
            Bound::Excluded(score) => Some(score_bytes(score).to_vec()),
            Bound::Unbounded => None,
        };
        Ok(Self { lower, upper })
    }
}

/// The sub key after every row of this score and before any of the next score: no score consists of
/// one bits only, so there is a number after each.
fn after_score(score: f64) -> Vec<u8> {
    u64::from_be_bytes(score_bytes(score)).saturating_add(1).to_be_bytes().to_vec()
}
