//! The compaction filters of the three trees, as the engine asks for them: one filter for each
//! compaction, and an estimate of the garbage in each table.
//!
//! All of it runs in the engine's compaction threads.

use std::sync::{Arc, OnceLock};

use crate::engine::{Filter, FilterFactory, FilterJob, Garbage, TableStats, TreeConfig};
use crate::error::Result;
use crate::keyspace::read_clock::ReadClock;
use crate::keyspace::reclaimed::RemovedTotals;
use crate::keyspace::spaces::Spaces;
use crate::keyspace::trees::{DATA, META, SCORE, TREES};
use crate::reclaim::expiries::ExpiryCollectors;
use crate::reclaim::garbage;
use crate::reclaim::live_spaces::LiveSpaces;
use crate::reclaim::record_filter::RecordFilter;
use crate::reclaim::row_filter::RowFilter;
use crate::reclaim::summaries::SummaryCollectors;

/// What the filters of all compactions share.
#[derive(Debug)]
pub(crate) struct Reclaim {
    times: Arc<ReadClock>,
    /// The mapping of databases that commands use, once the store is open.
    spaces: OnceLock<Arc<Spaces>>,
    removed: Arc<RemovedTotals>,
}

impl Reclaim {
    pub(crate) fn new(times: Arc<ReadClock>) -> Self {
        Self { times, spaces: OnceLock::new(), removed: Arc::default() }
    }

    /// The trees of a store with their filters and collectors.
    pub(crate) fn trees(self: &Arc<Self>) -> Vec<TreeConfig> {
        let [mut meta, mut data, mut score] = TREES.map(TreeConfig::named);
        for tree in [&mut meta, &mut data, &mut score] {
            tree.filter = Some(Arc::new(Filters(Arc::clone(self))) as Arc<dyn FilterFactory>);
        }
        meta.collectors = Some(Arc::new(ExpiryCollectors));
        data.collectors = Some(Arc::new(SummaryCollectors));
        score.collectors = Some(Arc::new(SummaryCollectors));
        vec![meta, data, score]
    }

    /// Sets the mapping of databases that commands use.
    pub(crate) fn follow(&self, spaces: &Arc<Spaces>) {
        // A second call would name the same mapping.
        let _ = self.spaces.set(Arc::clone(spaces));
    }

    /// What the filters have removed so far.
    pub(crate) fn removed(&self) -> &Arc<RemovedTotals> {
        &self.removed
    }

    /// The spaces that readers at the sequences of the job can reach.
    fn live_spaces(&self, job: &FilterJob) -> Result<LiveSpaces> {
        #[cfg(test)]
        if job.tree == DATA {
            self.removed.run_interlude();
        }
        LiveSpaces::read(job, self.spaces.get().map(Arc::as_ref))
    }
}

#[derive(Debug)]
struct Filters(Arc<Reclaim>);

impl FilterFactory for Filters {
    fn filter(&self, job: &FilterJob) -> Result<Option<Box<dyn Filter>>> {
        let live = self.0.live_spaces(job)?;
        Ok(match job.tree {
            META => {
                Some(Box::new(RecordFilter::new(&self.0.removed, self.0.times.expire(), job, live)))
            }
            DATA | SCORE => Some(Box::new(RowFilter::new(&self.0.removed, job, live))),
            _ => None,
        })
    }

    fn estimate_garbage(&self, job: &FilterJob, table: &TableStats<'_>) -> Result<Garbage> {
        let live = self.0.live_spaces(job)?;
        match job.tree {
            META => garbage::in_records(&self.0.times, job, table, &live),
            DATA | SCORE => garbage::in_rows(job, table, &live),
            _ => Ok(Garbage::default()),
        }
    }
}
