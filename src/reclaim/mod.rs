//! Reclaiming space: what compactions of the three trees may drop, and the cleaner of expired keys.
//!
//! - `filters`: the engine's way in; `record_filter`, `row_filter`: the filters of the trees;
//! - `owners`: which records name a row; `live_spaces`: which spaces a reader can still reach;
//! - `expiries`, `summaries`: what each table notes about its records and rows;
//! - `garbage`: how much of a table is garbage, estimated from these notes;
//! - `cleaner`: deletes expired keys.

pub(crate) mod cleaner;
pub(crate) mod expiries;
pub(crate) mod filters;
mod garbage;
mod live_spaces;
mod owners;
mod record_filter;
mod row_filter;
mod summaries;
#[cfg(test)]
mod tests;
