//! Compaction: strategies decide (`pick`), one executor carries out (`merge`), a filter from above
//! takes part.

pub mod filter;
pub mod merge;
pub mod pick;
pub mod plan;
pub mod rate;
pub mod survival;
pub mod waste;
pub mod write;

pub use filter::{Decision, Filter, FilterFactory, FilterJob};
pub use plan::{Plan, Reason};
pub use waste::{Needed, Suspect, Waste};
