//! Sorted sets: members in the order of their scores, those of one score in the order of their
//! bytes.
//!
//! - `rows`: the two rows of a member, and walks along the scores;
//! - `span`: what part of the score rows a range by score or by member is;
//! - `show`: the members of a range, one after the other;
//! - `text`: scores and bounds as commands write them;
//! - `add`, `read`, `range`, `remove`, `combine`, `random`: the commands.

mod add;
mod combine;
mod random;
mod range;
mod read;
mod remove;
pub(crate) mod rows;
mod show;
mod span;
pub(crate) mod text;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

pub use add::ZAdd;
pub use combine::{Aggregate, Combine};
pub use range::{By, ZRange};
pub use remove::End;

pub(crate) use show::Viewer;

pub(crate) use combine::{Inputs, Operation, needs_a_key, not_a_weight};

use bytes::Bytes;

/// Members with their scores.
pub(crate) type Scored = Vec<(Bytes, f64)>;
