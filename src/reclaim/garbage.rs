//! Estimates how much of a table is garbage, from the table's properties. The rules are those of
//! the filters.
//!
//! - A table of records is needed only to shadow older ones if every record has an expiry that has
//!   passed for every present and future reader. It is not needed at all if all of its records are
//!   in dead spaces. Otherwise the histogram of expiries gives the amount of garbage.
//! - A table of rows is not needed if its summary is complete and every collection in it is dead at
//!   each of the table's sequences. Otherwise the garbage is the share of dead collections in the
//!   summary. Each collection is looked up in the meta tree; no block of the table is read.

use crate::encoding::collection_summary::SummaryEntry;
use crate::encoding::keys::{after_prefix, meta_key, split_meta_key, split_row_key};
use crate::engine::{FilterJob, Garbage, Sequence, TableNeed, TableStats};
use crate::error::Result;
use crate::keyspace::read_clock::ReadClock;
use crate::reclaim::expiries::histogram_of;
use crate::reclaim::live_spaces::LiveSpaces;
use crate::reclaim::owners::Owners;
use crate::reclaim::summaries::summary_of;

/// Estimates the garbage in a table of the meta tree.
pub(super) fn in_records(
    times: &ReadClock,
    job: &FilterJob,
    table: &TableStats<'_>,
    live: &LiveSpaces,
) -> Result<Garbage> {
    let unreachable = match table.properties().max_sequence <= job.current() {
        true => in_dead_spaces(table, live)?,
        false => 0,
    };
    if unreachable >= table.size() {
        return Ok(Garbage { bytes: table.size(), need: TableNeed::Unneeded });
    }
    let expired = expired(times, table);
    Ok(Garbage { bytes: expired.bytes.saturating_add(unreachable).min(table.size()), ..expired })
}

fn expired(times: &ReadClock, table: &TableStats<'_>) -> Garbage {
    let properties = table.properties();
    let histogram = histogram_of(properties);
    let Some(histogram) = histogram.filter(|it| it.any_between(0, times.now())) else {
        return Garbage::default();
    };
    let through = times.expire();
    // Tombstones are entries without an expiry: with one among them not all entries have expired.
    if histogram.all_expired(properties.entries, through) {
        return Garbage { bytes: table.size(), need: TableNeed::ShadowsOlder };
    }
    let bytes = table.share(histogram.expired(through).bytes);
    Garbage { bytes, need: TableNeed::MayBeRead }
}

/// Roughly the bytes of records in spaces that no reader can reach; the size of the whole table
/// only if that is certain.
fn in_dead_spaces(table: &TableStats<'_>, live: &LiveSpaces) -> Result<u64> {
    let properties = table.properties();
    let ends = (split_meta_key(&properties.smallest), split_meta_key(&properties.largest));
    let (Some((first, _)), Some((last, _))) = ends else { return Ok(0) };
    let Some(alive) = live.alive_between(first, last) else { return Ok(0) };
    if alive.is_empty() || first == last {
        return Ok(if alive.is_empty() { table.size() } else { 0 });
    }
    let mut reachable = 0;
    for (from, to) in alive {
        let end = after_prefix(&to.to_bytes());
        reachable += table.bytes_between(&meta_key(from, b""), end.as_deref())?;
    }
    // Spaces with few records may fall between two index entries: never count the whole table.
    Ok(table.size().saturating_sub(reachable.max(1)))
}

/// Estimates the garbage in a table of the data or score tree.
pub(super) fn in_rows(
    job: &FilterJob,
    table: &TableStats<'_>,
    live: &LiveSpaces,
) -> Result<Garbage> {
    let properties = table.properties();
    let Some(listed) = summary_of(properties) else { return Ok(Garbage::default()) };
    if properties.max_sequence > job.current() {
        return Ok(Garbage::default());
    }
    let mut collections =
        Collections { job, live, owners: Owners::sparse(job), since: properties.min_sequence };
    let mut dead = 0u64;
    let mut alive = !listed.is_complete;
    for entry in &listed.entries {
        let reachable = collections.reachable(entry)?;
        alive |= reachable > 0;
        dead = dead.saturating_add(entry.bytes.saturating_sub(reachable));
    }
    if !alive {
        return Ok(Garbage { bytes: table.size(), need: TableNeed::Unneeded });
    }
    Ok(Garbage { bytes: table.share(dead), need: TableNeed::MayBeRead })
}

struct Collections<'a> {
    job: &'a FilterJob,
    live: &'a LiveSpaces,
    owners: Owners,
    /// The lowest sequence in the table.
    since: Sequence,
}

impl Collections<'_> {
    /// How many bytes of a summarized collection some reader may reach; 0 only if none of its rows
    /// can be reached at any of the table's sequences.
    fn reachable(&mut self, entry: &SummaryEntry) -> Result<u64> {
        let Some(row) = split_row_key(&entry.prefix) else { return Ok(entry.bytes.max(1)) };
        if self.job.pinned.reserved.binary_search(&row.version).is_ok() {
            return Ok(entry.bytes.max(1));
        }
        if !self.live.holds(&entry.prefix) {
            return Ok(0);
        }
        self.owners.turn_to(&meta_key(row.space, &row.user_key));
        let indexes = (entry.lowest, entry.highest);
        let named = self.owners.share(row.version, indexes, self.since)?;
        let all = u128::from(entry.highest - entry.lowest) + 1;
        let share = (u128::from(entry.bytes) * named).div_ceil(all);
        Ok(u64::try_from(share).unwrap_or(entry.bytes).max(u64::from(named > 0)))
    }
}
