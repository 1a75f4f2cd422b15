//! Compaction: the `picker` plans the next step, `merge` carries it out through the filter of the
//! tree, and `output` writes the new tables. `crate::engine::compactor` ties these together.

pub mod filter;
pub mod merge;
pub mod output;
pub mod picker;
pub mod plan;
pub mod rate;
pub mod visibility;

pub use filter::{Decision, Filter, FilterFactory, FilterJob};
pub use plan::{Plan, Reason};
