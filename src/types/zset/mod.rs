//! Sorted sets: members in score order, members of equal score in byte order.
//!
//! - `rows`: the two rows of a member, and walks along the scores;
//! - `span`, `lex_span`: the score rows that a range by score or by member covers;
//! - `range_output`: the members of a range, written to a sink;
//! - `text`: scores and bounds as commands write them;
//! - `add`, `read`, `range`, `remove`, `combine`, `random`: the commands.

mod add;
mod combine;
mod lex_span;
mod random;
mod range;
mod range_output;
mod read;
mod remove;
pub(crate) mod rows;
mod span;
pub(crate) mod text;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

pub use add::ZAdd;
pub use combine::{Aggregate, Combine};
pub use range::{By, ZRange};

pub(crate) use range_output::ScoredSink;

pub(crate) use combine::{Inputs, Operation, needs_a_key, not_a_weight};

use bytes::Bytes;

/// Members with their scores.
pub(crate) type Scored = Vec<(Bytes, f64)>;

/// An end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The members with the least scores.
    Min,
    /// The members with the greatest scores.
    Max,
}
