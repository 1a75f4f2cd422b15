//! The three trees of a store and their names.

use crate::engine::TreeId;

/// Holds one record for each user key.
pub(crate) const META: TreeId = TreeId(0);
/// Holds fields, members and elements.
pub(crate) const DATA: TreeId = TreeId(1);
/// Holds the members of sorted sets in score order.
pub(crate) const SCORE: TreeId = TreeId(2);
/// The names of the trees, in the order of their ids.
pub(crate) const TREES: [&str; 3] = ["meta", "data", "score"];
