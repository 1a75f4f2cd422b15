//! Byte strings with an id, which numeric cursors refer to.
//!
//! A landmark belongs to no scan: whoever needs the same place uses the same landmark. `spacing` says
//! how many rows must lie between two of them, so that their number follows the amount of data and
//! not the number of scans.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an entry costs beside its bytes.
const ENTRY_BYTES: usize = 128;
/// Below this many bytes, landmarks may stand anywhere.
const FREE_BYTES: usize = 64 << 10;
/// The spacing doubles with every so many bytes.
const STEP_BYTES: usize = 2 << 20;
const FIRST_SPACING: u64 = 64;
/// Above this many bytes, landmarks that nobody has used for `KEPT` are dropped.
const LEAN_BYTES: usize = 1 << 20;
const KEPT: Duration = Duration::from_secs(3600);

#[derive(Debug)]
struct Landmark {
    bytes: Arc<[u8]>,
    turn: u64,
    used: Instant,
}

/// Landmarks of at most `most_bytes`. The newest is kept in any case.
#[derive(Debug)]
pub(super) struct Landmarks {
    by_id: HashMap<u32, Landmark>,
    by_bytes: BTreeMap<Arc<[u8]>, u32>,
    /// Least recently used first.
    by_turn: BTreeMap<u64, u32>,
    turns: u64,
    bytes: usize,
    most_bytes: usize,
}

impl Landmarks {
    pub(super) fn new(most_bytes: usize) -> Self {
        let (by_id, by_bytes, by_turn) = (HashMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { by_id, by_bytes, by_turn, turns: 0, bytes: 0, most_bytes }
    }

    /// The bytes of a landmark, which is in use from now on.
    pub(super) fn get(&mut self, id: u32, now: Instant) -> Option<Arc<[u8]>> {
        let landmark = self.by_id.get_mut(&id)?;
        self.by_turn.remove(&landmark.turn);
        self.turns += 1;
        (landmark.turn, landmark.used) = (self.turns, now);
        self.by_turn.insert(self.turns, id);
        Some(Arc::clone(&landmark.bytes))
    }

    /// The last landmark at or before these bytes.
    pub(super) fn at_or_before(&self, bytes: &[u8]) -> Option<(u32, &[u8])> {
        let range = (std::ops::Bound::Unbounded, std::ops::Bound::Included(bytes));
        self.by_bytes.range::<[u8], _>(range).next_back().map(|(bytes, id)| (*id, &bytes[..]))
    }

    /// Whether there is a landmark after these bytes.
    pub(super) fn any_after(&self, bytes: &[u8]) -> bool {
        self.by_bytes.last_key_value().is_some_and(|(last, _)| last[..] > *bytes)
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The number of rows that must lie between a new landmark and its neighbours.
    pub(super) fn spacing(&self) -> u64 {
        match self.bytes {
            ..FREE_BYTES => 0,
            bytes => FIRST_SPACING << (bytes / STEP_BYTES).min(32),
        }
    }

    /// Adds a landmark under an id that is free; drops old ones if there are too many.
    pub(super) fn add(&mut self, id: u32, bytes: &[u8], now: Instant) {
        let bytes: Arc<[u8]> = bytes.into();
        self.turns += 1;
        self.bytes += bytes.len() + ENTRY_BYTES;
        self.by_turn.insert(self.turns, id);
        self.by_bytes.insert(Arc::clone(&bytes), id);
        self.by_id.insert(id, Landmark { bytes, turn: self.turns, used: now });
        while self.by_id.len() > 1 && self.has_one_too_many(now) {
            self.drop_oldest();
        }
    }

    fn has_one_too_many(&self, now: Instant) -> bool {
        let oldest = self.by_turn.first_key_value().and_then(|(_, id)| self.by_id.get(id));
        let unused = oldest.is_some_and(|oldest| now.duration_since(oldest.used) > KEPT);
        self.bytes > self.most_bytes || (self.bytes > LEAN_BYTES && unused)
    }

    fn drop_oldest(&mut self) {
        let oldest = self.by_turn.pop_first().and_then(|(_, id)| self.by_id.remove(&id));
        if let Some(oldest) = oldest {
            self.by_bytes.remove(&oldest.bytes);
            self.bytes -= oldest.bytes.len() + ENTRY_BYTES;
        }
    }

    /// The landmarks, most recently used first.
    pub(super) fn newest(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let ids = self.by_turn.values().rev();
        ids.filter_map(|id| self.by_id.get(id).map(|landmark| (*id, &landmark.bytes[..])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: u32) -> Vec<u8> {
        format!("{n:072}").into_bytes()
    }

    #[test]
    fn landmarks_are_found_by_id_and_by_place() {
        let (mut table, now) = (Landmarks::new(1 << 20), Instant::now());
        table.add(7, b"b", now);
        table.add(8, b"d", now);
        assert_eq!(table.get(7, now).as_deref(), Some(&b"b"[..]));
        assert_eq!((table.get(9, now), table.contains(8), table.contains(9)), (None, true, false));
        assert_eq!(table.at_or_before(b"a"), None);
        assert_eq!(table.at_or_before(b"b"), Some((7, &b"b"[..])));
        assert_eq!(table.at_or_before(b"cc"), Some((7, &b"b"[..])));
        assert!(table.any_after(b"c") && !table.any_after(b"d"));
        assert_eq!(table.newest().map(|(id, _)| id).collect::<Vec<_>>(), [7, 8]);
    }

    #[test]
    fn the_more_there_are_the_farther_apart_new_ones_stand() {
        let (mut table, now) = (Landmarks::new(24 << 20), Instant::now());
        let mut capacity = 0;
        let mut n = 0;
        let mut spacings = Vec::new();
        while table.by_id.len() == n as usize {
            let spacing = table.spacing();
            if spacings.last() != Some(&spacing) {
                spacings.push(spacing);
            }
            capacity += spacing;
            table.add(n, &name(n), now);
            n += 1;
        }
        assert_eq!((spacings.len(), spacings[0], spacings[1], spacings[12]), (13, 0, 64, 131_072));
        assert!(table.bytes <= 24 << 20);
        assert!(capacity > 2_000_000_000, "{capacity} rows before one is dropped");
    }

    #[test]
    fn only_what_is_long_unused_is_dropped_before_the_limit() {
        let (mut table, then) = (Landmarks::new(24 << 20), Instant::now());
        (0..6000).for_each(|n| table.add(n, &name(n), then));
        let later = then + KEPT + Duration::from_secs(1);
        table.get(17, later);
        table.add(6000, &name(6000), later);
        assert!(table.bytes <= LEAN_BYTES && table.bytes > LEAN_BYTES - 300);
        assert!(table.contains(17) && table.contains(6000) && !table.contains(0));
        assert_eq!(table.by_id.len(), table.by_bytes.len());
        assert_eq!(table.by_id.len(), table.by_turn.len());
    }

    #[test]
    fn at_the_limit_the_least_recently_used_goes_but_never_the_newest() {
        let (mut table, now) = (Landmarks::new(1000), Instant::now());
        (0..5).for_each(|n| table.add(n, &name(n), now));
        table.get(0, now);
        table.add(5, &name(5), now);
        assert!(table.contains(0) && table.contains(5) && !table.contains(1));
        table.add(6, &[1; 5000], now);
        assert_eq!((table.by_id.len(), table.contains(6)), (1, true));
    }
}
