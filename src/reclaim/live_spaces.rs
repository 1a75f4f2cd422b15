//! Which spaces a reader can still reach.
//!
//! A space that no database number maps to any more is dead for good: ids are never reused.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use crate::encoding::keys::{SPACE_BYTES, Space};
use crate::engine::{FilterJob, IterOptions};
use crate::error::Result;
use crate::keyspace::spaces::{Spaces, assignment_in, record_of_next};
use crate::keyspace::trees::META;

/// The spaces that readers at certain sequences can reach.
#[derive(Debug)]
pub(super) struct LiveSpaces {
    /// Spaces that a record maps a database to.
    named: HashSet<Space>,
    /// Whether a database was ever emptied: before that no space is dead.
    ever_emptied: bool,
    /// Databases that have a record at every sequence: their default space is dead unless a record
    /// names it.
    moved: HashSet<u32>,
}

impl LiveSpaces {
    /// Reads the records at all sequences of the job. `in_use` is the mapping in force: a change
    /// takes effect there only after its record is visible, and commands read the old space until
    /// then.
    pub(super) fn read(job: &FilterJob, in_use: Option<&Spaces>) -> Result<Self> {
        let mut named = HashSet::new();
        if job.get(META, &record_of_next(), job.current())?.is_none() {
            // Nothing was ever emptied, as in most stores: skip the scan of the memtables.
            return Ok(Self { named, ever_emptied: false, moved: HashSet::new() });
        }
        let mut times_moved: HashMap<u32, usize> = HashMap::new();
        let sequences = job.sequences();
        for sequence in &sequences {
            let reserved = IterOptions {
                lower: Some(Bytes::copy_from_slice(&Space::RESERVED.to_bytes())),
                upper: Some(Bytes::copy_from_slice(&Space::of_database(0).to_bytes())),
                ..IterOptions::default()
            };
            let mut records = job.iter(META, *sequence, reserved)?;
            records.seek_to_first()?;
            while records.valid() {
                if let Some((number, space)) = assignment_in(records.key(), records.value())? {
                    *times_moved.entry(number).or_insert(0) += 1;
                    named.insert(space);
                }
                records.next()?;
            }
        }
        for number in 0..in_use.map_or(0, Spaces::count) {
            if let Some(spaces) = in_use {
                named.insert(spaces.of(number)?);
            }
        }
        times_moved.retain(|_, times| *times == sequences.len());
        Ok(Self { named, ever_emptied: true, moved: times_moved.into_keys().collect() })
    }

    /// Whether some reader can reach the space.
    pub(super) fn is_alive(&self, space: Space) -> bool {
        // The database whose default space this is.
        let number = (space < Space::FIRST_FRESH).then(|| space.id().wrapping_sub(1));
        !self.ever_emptied
            || space == Space::RESERVED
            || number.is_some_and(|number| !self.moved.contains(&number))
            || self.named.contains(&space)
    }

    /// The reachable spaces from `first` to `last`, as ranges of neighbours; `None` if no space
    /// ever died.
    pub(super) fn alive_between(&self, first: Space, last: Space) -> Option<Vec<(Space, Space)>> {
        if !self.ever_emptied {
            return None;
        }
        let of_numbers = first.id()..=last.id().min(Space::FIRST_FRESH.id());
        let named = self.named.iter().map(|space| space.id());
        let mut alive: Vec<u32> =
            of_numbers.chain(named).filter(|id| self.is_alive(Space::from_id(*id))).collect();
        alive.retain(|id| (first.id()..=last.id()).contains(id));
        alive.sort_unstable();
        alive.dedup();
        let runs = alive.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        let ends =
            |run: &[u32]| Some((Space::from_id(*run.first()?), Space::from_id(*run.last()?)));
        Some(runs.filter_map(ends).collect())
    }

    /// Whether some reader can reach the space that a key begins with. Keys that are not ours count
    /// as reachable.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        let space = key.first_chunk::<SPACE_BYTES>().map(|id| u32::from_be_bytes(*id));
        space.is_none_or(|id| self.is_alive(Space::from_id(id)))
    }
}
