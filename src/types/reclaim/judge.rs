//! How much of a table could go, judged by its properties: the same rules as the filters', applied
//! to what a table says of its records and rows.
//!
//! - A table of records is not needed, but as a cover of older ones, if each has an expiry and all
//!   have passed for every present and future observer. If all are of dead spaces it is not needed
//!   at all. Otherwise the histogram of expiries tells the waste.
//! - A table of rows is not needed if it lists all its collections and every one is dead for each
//!   of its sequences. Otherwise the waste is the part that dead collections have of those listed,
//!   each looked up in the meta tree, no block of the table itself.

use super::expiries::histogram_of;
use super::gather::groups_of;
use super::owners::Owners;
use super::spaces::LiveSpaces;
use crate::encoding::groups::Group;
use crate::encoding::keys::{after_prefix, meta_key, split_meta_key, split_row_key};
use crate::engine::{FilterJob, Needed, Sequence, Suspect, Waste};
use crate::error::Result;
use crate::types::times::Times;

/// Judges a table of the meta tree.
pub(super) fn records(
    times: &Times,
    job: &FilterJob,
    table: &Suspect<'_>,
    live: &LiveSpaces,
) -> Result<Waste> {
    let unreachable = match table.properties().max_sequence <= job.current() {
        true => in_dead_spaces(table, live)?,
        false => 0,
    };
    if unreachable >= table.size() {
        return Ok(Waste { bytes: table.size(), needed: Needed::Never });
    }
    let expired = expired(times, table);
    Ok(Waste { bytes: expired.bytes.saturating_add(unreachable).min(table.size()), ..expired })
}

fn expired(times: &Times, table: &Suspect<'_>) -> Waste {
    let properties = table.properties();
    let histogram = histogram_of(properties);
    let Some(histogram) = histogram.filter(|it| it.any_between(0, times.now())) else {
        return Waste::default();
    };
    let through = times.expire();
    // Deletes are entries without an expiry: with one among them it is not all.
    if histogram.all_expired(properties.entries, through) {
        return Waste { bytes: table.size(), needed: Needed::AsCover };
    }
    let bytes = table.share(histogram.expired(through).bytes);
    Waste { bytes, needed: Needed::Perhaps }
}

/// Roughly the bytes of a table of records in spaces no one can look into; all of its size if that
/// is certain.
fn in_dead_spaces(table: &Suspect<'_>, live: &LiveSpaces) -> Result<u64> {
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
    // Spaces of a few records may fall between two index entries: never all of the table.
    Ok(table.size().saturating_sub(reachable.max(1)))
}

/// Judges a table of the data or score tree.
pub(super) fn rows(job: &FilterJob, table: &Suspect<'_>, live: &LiveSpaces) -> Result<Waste> {
    let properties = table.properties();
    let Some(listed) = groups_of(properties) else { return Ok(Waste::default()) };
    if properties.max_sequence > job.current() {
        return Ok(Waste::default());
    }
    let mut collections =
        Collections { job, live, owners: Owners::sparse(job), since: properties.min_sequence };
    let mut dead = 0u64;
    let mut alive = !listed.all;
    for group in &listed.groups {
        let reachable = collections.reachable(group)?;
        alive |= reachable > 0;
        dead = dead.saturating_add(group.bytes.saturating_sub(reachable));
    }
    if !alive {
        return Ok(Waste { bytes: table.size(), needed: Needed::Never });
    }
    Ok(Waste { bytes: table.share(dead), needed: Needed::Perhaps })
}

struct Collections<'a> {
    job: &'a FilterJob,
    live: &'a LiveSpaces,
    owners: Owners,
    /// No row of the table is older.
    since: Sequence,
}

impl Collections<'_> {
    /// How many of the bytes that a group stands for some reader may reach: 0 only if none of its
    /// rows, whichever of the table's sequences they have.
    fn reachable(&mut self, group: &Group) -> Result<u64> {
        let Some(row) = split_row_key(&group.prefix) else { return Ok(group.bytes.max(1)) };
        if self.job.pinned.reserved.binary_search(&row.version).is_ok() {
            return Ok(group.bytes.max(1));
        }
        if !self.live.holds(&group.prefix) {
            return Ok(0);
        }
        self.owners.turn_to(&meta_key(row.space, &row.user_key));
        let indexes = (group.lowest, group.highest);
        let named = self.owners.share(row.version, indexes, self.since)?;
        let all = u128::from(group.highest - group.lowest) + 1;
        let share = (u128::from(group.bytes) * named).div_ceil(all);
        Ok(u64::try_from(share).unwrap_or(group.bytes).max(u64::from(named > 0)))
    }
}
