//! A summary of the collections that a table's rows belong to: all of them, or a sample by bytes,
//! small enough for the table's properties.
//!
//! ```text
//! all u8 | count varint | entry * count
//! entry = prefix length varint | prefix | lowest u64 | highest u64 | bytes varint
//! ```
//!
//! An entry stands for one version of one collection: the prefix that its row keys share. With
//! `all` = 1 every row belongs to one of the entries, and `bytes` counts the rows of the entry.
//! With 0 there were too many collections: each entry then stands for a stretch of the table,
//! `bytes` long, in which it has rows. `lowest` and `highest` are the first eight bytes of the
//! first and last known sub key of the entry, as a big-endian number: the indexes of a list.
//!
//! There are at most [`MOST`] entries with [`PREFIX_BYTES`] of prefixes together, ascending. Rows
//! with a prefix that is too long are in no entry.

use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};

/// The name of the property.
pub(crate) const PROPERTY: &[u8] = b"groups";
/// The largest number of entries.
pub(crate) const MOST: usize = 64;
/// The most bytes of all prefixes together.
pub(crate) const PREFIX_BYTES: usize = 16 << 10;
/// The longest prefix of an entry.
const LONGEST_PREFIX: usize = 4 << 10;

/// One collection of a table, or a stretch of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SummaryEntry {
    /// The prefix of the rows: `[space][esc(user key)][version]`.
    pub(crate) prefix: Vec<u8>,
    /// The first eight bytes of the first known sub key.
    pub(crate) lowest: u64,
    /// The first eight bytes of the last known sub key.
    pub(crate) highest: u64,
    /// The bytes of keys and values that the entry stands for.
    pub(crate) bytes: u64,
}

impl SummaryEntry {
    /// Joins two neighbours into one entry, that of the heavier one.
    fn joined(self, next: Self) -> Self {
        let bytes = self.bytes.saturating_add(next.bytes);
        Self { bytes, ..if next.bytes > self.bytes { next } else { self } }
    }
}

/// The collections of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectionSummary {
    /// Whether every row belongs to one of the entries.
    pub(crate) is_complete: bool,
    /// The entries, ascending by prefix.
    pub(crate) entries: Vec<SummaryEntry>,
}

impl CollectionSummary {
    /// Encodes the summary.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_complete)];
        put_varint(&mut out, self.entries.len() as u64);
        for entry in &self.entries {
            put_bytes(&mut out, &entry.prefix);
            put_u64(&mut out, entry.lowest);
            put_u64(&mut out, entry.highest);
            put_varint(&mut out, entry.bytes);
        }
        out
    }

    /// Decodes a summary; `None` if the bytes are malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let is_complete = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let count = reader.varint()?;
        if count > MOST as u64 {
            return None;
        }
        let mut entries: Vec<SummaryEntry> = Vec::new();
        for _ in 0..count {
            let prefix = reader.bytes()?.to_vec();
            let (lowest, highest, bytes) = (reader.u64()?, reader.u64()?, reader.varint()?);
            let ascends = entries.last().is_none_or(|last| last.prefix < prefix);
            if !ascends || lowest > highest {
                return None;
            }
            entries.push(SummaryEntry { prefix, lowest, highest, bytes });
        }
        reader.is_empty().then_some(Self { is_complete, entries })
    }
}

/// Builds the summary of a table while its rows are written in order.
#[derive(Debug)]
pub(crate) struct SummaryBuilder {
    found: CollectionSummary,
    prefix_bytes: usize,
    /// The bytes of all rows so far.
    bytes: u64,
    /// The minimum length of a stretch, once the summary is a sample.
    stretch: u64,
}

impl Default for SummaryBuilder {
    fn default() -> Self {
        let found = CollectionSummary { is_complete: true, entries: Vec::new() };
        Self { found, prefix_bytes: 0, bytes: 0, stretch: 0 }
    }
}

impl SummaryBuilder {
    /// Adds a row with this many bytes of key and value.
    pub(crate) fn add(&mut self, prefix: &[u8], sub_key: &[u8], bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if prefix.len() > LONGEST_PREFIX {
            self.found.is_complete = false;
            return;
        }
        let number = head(sub_key);
        match self.found.entries.last_mut() {
            Some(last) if last.prefix == prefix => {
                last.highest = number;
                last.bytes = last.bytes.saturating_add(bytes);
            }
            Some(last) if !self.found.is_complete && last.bytes < self.stretch => {
                last.bytes = last.bytes.saturating_add(bytes);
            }
            _ => self.begin(SummaryEntry {
                prefix: prefix.to_vec(),
                lowest: number,
                highest: number,
                bytes,
            }),
        }
    }

    /// Adds an entry of the table that is no row.
    pub(crate) fn add_unknown(&mut self) {
        self.found.is_complete = false;
    }

    fn begin(&mut self, entry: SummaryEntry) {
        self.prefix_bytes += entry.prefix.len();
        self.found.entries.push(entry);
        while self.found.entries.len() > MOST || self.prefix_bytes > PREFIX_BYTES {
            self.thin();
        }
    }

    /// Joins every two neighbours into one entry.
    fn thin(&mut self) {
        let mut entries = std::mem::take(&mut self.found.entries).into_iter();
        let mut thinned = Vec::with_capacity(MOST);
        while let Some(entry) = entries.next() {
            thinned.push(match entries.next() {
                Some(next) => entry.joined(next),
                None => entry,
            });
        }
        self.prefix_bytes = thinned.iter().map(|entry| entry.prefix.len()).sum();
        self.stretch = self.bytes / (thinned.len() as u64).max(1);
        self.found = CollectionSummary { is_complete: false, entries: thinned };
    }

    /// The summary of the rows added so far.
    pub(crate) fn finish(&self) -> &CollectionSummary {
        &self.found
    }
}

/// The first eight bytes as a number, padded with zeros.
fn head(sub_key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(sub_key) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn summarize(rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>, u64)>) -> CollectionSummary {
        let mut builder = SummaryBuilder::default();
        for (prefix, sub_key, bytes) in rows {
            builder.add(&prefix, &sub_key, bytes);
        }
        builder.finish().clone()
    }

    #[test]
    fn the_stored_form_is_as_drawn() {
        let index = |n: u64| n.to_be_bytes().to_vec();
        let entries = summarize([
            (b"a".to_vec(), index(7), 100),
            (b"a".to_vec(), index(9), 100),
            (b"bc".to_vec(), b"\x01".to_vec(), 3),
        ]);
        let mut drawn = vec![1, 2, 1, b'a', 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 200, 1];
        drawn.extend([2, b'b', b'c', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        assert_eq!(entries.encode(), drawn);
        assert_eq!(CollectionSummary::decode(&drawn), Some(entries));
    }

    #[test]
    fn what_no_version_writes_is_refused() {
        let entry = |prefix: u8| [&[1, prefix][..], &[0; 16], &[5]].concat();
        let with = |all, entries: &[u8]| {
            let parts: Vec<u8> = entries.iter().flat_map(|prefix| entry(*prefix)).collect();
            CollectionSummary::decode(
                &[&[all, u8::try_from(entries.len()).unwrap()][..], &parts].concat(),
            )
        };
        assert!(with(0, &[3, 4]).is_some() && with(1, &[]).is_some());
        assert_eq!(with(2, &[3, 4]), None, "neither all nor a sample");
        assert_eq!(with(1, &[4, 3]), None, "not ascending");
        assert_eq!(with(1, &(1..=65).collect::<Vec<_>>()), None, "too many");
        assert_eq!(CollectionSummary::decode(&[1]), None, "too short");
        assert_eq!(CollectionSummary::decode(&[1, 0, 0]), None, "too long");
        assert_eq!(CollectionSummary::decode(&[1, 0xff, 0xff, 3]), None, "a claim");
    }

    #[test]
    fn sixty_four_groups_are_all_listed_and_one_more_makes_a_sample() {
        let row = |n: u8| (vec![n], Vec::new(), 10);
        let entries = summarize((0..64).map(row));
        assert!(entries.is_complete && entries.entries.len() == 64);
        let entries = summarize((0..65).map(row));
        assert!(!entries.is_complete && entries.entries.len() == 33);
    }

    #[test]
    fn long_prefixes_are_bounded_and_the_longest_left_out() {
        let row = |n: u8| (vec![n; 1000], Vec::new(), 10);
        let entries = summarize((0..64).map(row));
        assert!(!entries.is_complete && !entries.entries.is_empty());
        let bytes: usize = entries.entries.iter().map(|entry| entry.prefix.len()).sum();
        assert!(bytes <= PREFIX_BYTES);
        let entries = summarize([(vec![1; LONGEST_PREFIX + 1], Vec::new(), 10)]);
        assert_eq!(entries, CollectionSummary { is_complete: false, entries: Vec::new() });
    }

    /// Whatever the sizes of collections, the sample says roughly how many bytes some of them have.
    #[test]
    fn a_sample_weighs_groups_by_their_bytes() {
        let shapes: [fn(u32) -> u32; 3] =
            [|_| 1, |n| if n % 100 == 7 { 500 } else { 1 }, |n| n % 40];
        for rows_of in shapes {
            let mut rows = Vec::new();
            for entry in 0..5000u32 {
                for _ in 0..rows_of(entry) {
                    rows.push((
                        entry.to_be_bytes().to_vec(),
                        Vec::new(),
                        20 + u64::from(entry % 7),
                    ));
                }
            }
            let is_dead = |prefix: &[u8]| prefix[2..] < [9u8, 0][..];
            let sum = |dead: bool| -> u64 {
                let of = rows.iter().filter(|(prefix, ..)| !dead || is_dead(prefix));
                of.map(|(_, _, bytes)| bytes).sum()
            };
            let entries = summarize(rows.iter().cloned()).entries;
            let dead = entries.iter().filter(|entry| is_dead(&entry.prefix));
            let estimate = dead.map(|entry| entry.bytes).sum::<u64>() as f64 / sum(false) as f64;
            let truth = sum(true) as f64 / sum(false) as f64;
            assert!((estimate - truth).abs() < 0.1, "{estimate} for {truth}");
        }
    }

    proptest! {
        #[test]
        fn every_row_is_in_a_group_or_the_list_is_a_sample(
            rows in prop::collection::btree_set((0u8..90, 0u64..1000), 0..300),
        ) {
            let entries = summarize(
                rows.iter().map(|(key, index)| (vec![*key], index.to_be_bytes().to_vec(), 7)),
            );
            prop_assert_eq!(CollectionSummary::decode(&entries.encode()), Some(entries.clone()));
            prop_assert!(entries.entries.len() <= MOST);
            let bytes: u64 = entries.entries.iter().map(|entry| entry.bytes).sum();
            prop_assert_eq!(bytes, 7 * rows.len() as u64);
            let within = |key: u8, index: u64| entries.entries.iter().any(|entry| {
                entry.prefix == [key] && (entry.lowest..=entry.highest).contains(&index)
            });
            prop_assert!(!entries.is_complete || rows.iter().all(|(key, index)| within(*key, *index)));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = CollectionSummary::decode(&bytes);
        }
    }
}
