//! Space that comes back: what compactions of the three trees may let go.
//!
//! - `meta`: records that have expired, and those of dead spaces;
//! - `rows`: rows that no record names any more, for any reader; `owners`: which records those are;
//! - `spaces`: which spaces some database number stands for;
//! - `expiries`: when the records of a table expire;
//! - `gather`: which collections the rows of a table belong to;
//! - `judge`: by these, how much of a table could go, and whether all of it can go unread.
//!
//! All run in the engine's compaction threads, one filter for each compaction.

mod expiries;
mod gather;
mod judge;
mod meta;
mod owners;
mod rows;
mod spaces;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) use expiries::histogram_of;

use crate::engine::{Filter, FilterFactory, FilterJob, Suspect, TreeConfig, Waste};
use crate::error::Result;
use crate::types::spaces::Spaces;
use crate::types::times::Times;
use crate::types::txn::{DATA, META, SCORE, TREES};

/// What the filters of all compactions share.
#[derive(Debug)]
pub(crate) struct Reclaim {
    times: Arc<Times>,
    /// The mapping commands use, once the store is open.
    spaces: OnceLock<Arc<Spaces>>,
    rows: AtomicU64,
    records: AtomicU64,
    /// Runs once, when the next compaction or judgement of rows has captured its moments.
    #[cfg(test)]
    meanwhile: Meanwhile,
}

/// What happens while a compaction runs, in a test.
#[cfg(test)]
#[derive(Default)]
struct Meanwhile(parking_lot::Mutex<Option<Box<dyn FnOnce() + Send>>>);

#[cfg(test)]
impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

/// What filters have let go since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Rows of the data and score trees, deletes among them.
    pub(crate) rows: u64,
    /// Records of the meta tree.
    pub(crate) records: u64,
}

impl Reclaim {
    pub(crate) fn new(times: Arc<Times>) -> Self {
        Self {
            times,
            spaces: OnceLock::new(),
            rows: AtomicU64::new(0),
            records: AtomicU64::new(0),
            #[cfg(test)]
            meanwhile: Meanwhile::default(),
        }
    }

    /// The trees of a store, with the filters that give their space back.
    pub(crate) fn trees(self: &Arc<Self>) -> Vec<TreeConfig> {
        let [mut meta, mut data, mut score] = TREES.map(TreeConfig::named);
        for tree in [&mut meta, &mut data, &mut score] {
            tree.filter = Some(Arc::new(Filters(Arc::clone(self))) as Arc<dyn FilterFactory>);
        }
        meta.collectors = Some(Arc::new(expiries::Expiries));
        data.collectors = Some(Arc::new(gather::Gather));
        score.collectors = Some(Arc::new(gather::Gather));
        vec![meta, data, score]
    }

    /// From now on commands find spaces by this mapping.
    pub(crate) fn follow(&self, spaces: &Arc<Spaces>) {
        // A second call would name the same mapping.
        let _ = self.spaces.set(Arc::clone(spaces));
    }

    pub(crate) fn removed(&self) -> Removed {
        let (rows, records) = (&self.rows, &self.records);
        Removed { rows: rows.load(Ordering::Relaxed), records: records.load(Ordering::Relaxed) }
    }

    /// The spaces that readers at the moments of the job can look into.
    fn live_spaces(&self, job: &FilterJob) -> Result<spaces::LiveSpaces> {
        #[cfg(test)]
        if job.tree == DATA {
            let happens = self.meanwhile.0.lock().take();
            happens.into_iter().for_each(|happens| happens());
        }
        spaces::LiveSpaces::read(job, self.spaces.get().map(Arc::as_ref))
    }

    fn count(&self, removed: Removed) {
        self.rows.fetch_add(removed.rows, Ordering::Relaxed);
        self.records.fetch_add(removed.records, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Filters(Arc<Reclaim>);

impl FilterFactory for Filters {
    fn filter(&self, job: &FilterJob) -> Result<Option<Box<dyn Filter>>> {
        let live = self.0.live_spaces(job)?;
        Ok(match job.tree {
            META => Some(Box::new(meta::MetaFilter::new(&self.0, job, live))),
            DATA | SCORE => Some(Box::new(rows::RowFilter::new(&self.0, job, live))),
            _ => None,
        })
    }

    fn judge(&self, job: &FilterJob, table: &Suspect<'_>) -> Result<Waste> {
        let live = self.0.live_spaces(job)?;
        match job.tree {
            META => judge::records(&self.0.times, job, table, &live),
            DATA | SCORE => judge::rows(job, table, &live),
            _ => Ok(Waste::default()),
        }
    }
}
