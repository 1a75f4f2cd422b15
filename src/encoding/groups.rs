//! Which collections the rows of a table belong to: all of them, or a sample of its bytes, small
//! enough to stand in its properties.
//!
//! ```text
//! all u8 | count varint | group * count
//! group = prefix length varint | prefix | lowest u64 | highest u64 | bytes varint
//! ```
//!
//! A group is what the rows of one version of one collection have in common, their keys up to the
//! sub key. With `all` = 1 every row is in one of the groups, and `bytes` are those of its rows.
//! With 0 there were too many: each group then stands for a stretch of the table, `bytes` long,
//! in which it has rows. `lowest` and `highest` are the first eight bytes of the first and last
//! sub key that is known of the group, as a big-endian number: the indexes of a list.
//!
//! At most [`MOST`] groups with prefixes of [`PREFIX_BYTES`] together, ascending. What belongs to
//! a prefix that is too long stands in no group.

use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};

/// The name of the property.
pub const PROPERTY: &[u8] = b"groups";
/// The most groups that are listed.
pub const MOST: usize = 64;
/// The most bytes of all prefixes.
pub const PREFIX_BYTES: usize = 16 << 10;
/// A prefix longer than this is not listed.
const LONGEST_PREFIX: usize = 4 << 10;

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `[space][esc(user key)][version]`.
    pub prefix: Vec<u8>,
    /// What the first known sub key begins with.
    pub lowest: u64,
    /// What the last known sub key begins with.
    pub highest: u64,
    /// Bytes of keys and values it stands for.
    pub bytes: u64,
}

impl Group {
    /// One group that stands for two neighbours: the heavier of them.
    fn joined(self, next: Self) -> Self {
        let bytes = self.bytes.saturating_add(next.bytes);
        Self { bytes, ..if next.bytes > self.bytes { next } else { self } }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Whether every row is in one of the groups.
    pub all: bool,
    /// Ascending by prefix.
    pub groups: Vec<Group>,
}

impl Groups {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.all)];
        put_varint(&mut out, self.groups.len() as u64);
        for group in &self.groups {
            put_bytes(&mut out, &group.prefix);
            put_u64(&mut out, group.lowest);
            put_u64(&mut out, group.highest);
            put_varint(&mut out, group.bytes);
        }
        out
    }

    /// Reads the stored form; `None` if it is none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let all = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let count = reader.varint()?;
        if count > MOST as u64 {
            return None;
        }
        let mut groups: Vec<Group> = Vec::new();
        for _ in 0..count {
            let prefix = reader.bytes()?.to_vec();
            let (lowest, highest, bytes) = (reader.u64()?, reader.u64()?, reader.varint()?);
            let ascends = groups.last().is_none_or(|last| last.prefix < prefix);
            if !ascends || lowest > highest {
                return None;
            }
            groups.push(Group { prefix, lowest, highest, bytes });
        }
        reader.is_empty().then_some(Self { all, groups })
    }
}

/// Gathers the groups of a table while its rows are written, in order.
#[derive(Debug)]
pub struct Gatherer {
    found: Groups,
    prefix_bytes: usize,
    /// Bytes of all rows so far.
    bytes: u64,
    /// How long a stretch is at least, once not all groups are listed.
    stretch: u64,
}

impl Default for Gatherer {
    fn default() -> Self {
        let found = Groups { all: true, groups: Vec::new() };
        Self { found, prefix_bytes: 0, bytes: 0, stretch: 0 }
    }
}

impl Gatherer {
    /// Adds a row with so many bytes of key and value.
    pub fn add(&mut self, prefix: &[u8], sub_key: &[u8], bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if prefix.len() > LONGEST_PREFIX {
            self.found.all = false;
            return;
        }
        let number = head(sub_key);
        match self.found.groups.last_mut() {
            Some(last) if last.prefix == prefix => {
                last.highest = number;
                last.bytes = last.bytes.saturating_add(bytes);
            }
            Some(last) if !self.found.all && last.bytes < self.stretch => {
                last.bytes = last.bytes.saturating_add(bytes);
            }
            _ => self.begin(Group {
                prefix: prefix.to_vec(),
                lowest: number,
                highest: number,
                bytes,
            }),
        }
    }

    /// Adds something that is no row.
    pub fn add_unknown(&mut self) {
        self.found.all = false;
    }

    fn begin(&mut self, group: Group) {
        self.prefix_bytes += group.prefix.len();
        self.found.groups.push(group);
        while self.found.groups.len() > MOST || self.prefix_bytes > PREFIX_BYTES {
            self.thin();
        }
    }

    /// Makes one of every two groups.
    fn thin(&mut self) {
        let mut groups = std::mem::take(&mut self.found.groups).into_iter();
        let mut thinned = Vec::with_capacity(MOST);
        while let Some(group) = groups.next() {
            thinned.push(match groups.next() {
                Some(next) => group.joined(next),
                None => group,
            });
        }
        self.prefix_bytes = thinned.iter().map(|group| group.prefix.len()).sum();
        self.stretch = self.bytes / (thinned.len() as u64).max(1);
        self.found = Groups { all: false, groups: thinned };
    }

    /// What was gathered.
    pub fn finish(&self) -> &Groups {
        &self.found
    }
}

/// The first eight bytes as a number, zeros added.
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

    fn gather(rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>, u64)>) -> Groups {
        let mut gatherer = Gatherer::default();
        for (prefix, sub_key, bytes) in rows {
            gatherer.add(&prefix, &sub_key, bytes);
        }
        gatherer.finish().clone()
    }

    #[test]
    fn the_stored_form_is_as_drawn() {
        let index = |n: u64| n.to_be_bytes().to_vec();
        let groups = gather([
            (b"a".to_vec(), index(7), 100),
            (b"a".to_vec(), index(9), 100),
            (b"bc".to_vec(), b"\x01".to_vec(), 3),
        ]);
        let mut drawn = vec![1, 2, 1, b'a', 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 200, 1];
        drawn.extend([2, b'b', b'c', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        assert_eq!(groups.encode(), drawn);
        assert_eq!(Groups::decode(&drawn), Some(groups));
    }

    #[test]
    fn what_no_version_writes_is_refused() {
        let group = |prefix: u8| [&[1, prefix][..], &[0; 16], &[5]].concat();
        let with = |all, groups: &[u8]| {
            let parts: Vec<u8> = groups.iter().flat_map(|prefix| group(*prefix)).collect();
            Groups::decode(&[&[all, u8::try_from(groups.len()).unwrap()][..], &parts].concat())
        };
        assert!(with(0, &[3, 4]).is_some() && with(1, &[]).is_some());
        assert_eq!(with(2, &[3, 4]), None, "neither all nor a sample");
        assert_eq!(with(1, &[4, 3]), None, "not ascending");
        assert_eq!(with(1, &(1..=65).collect::<Vec<_>>()), None, "too many");
        assert_eq!(Groups::decode(&[1]), None, "too short");
        assert_eq!(Groups::decode(&[1, 0, 0]), None, "too long");
        assert_eq!(Groups::decode(&[1, 0xff, 0xff, 3]), None, "a claim");
    }

    #[test]
    fn sixty_four_groups_are_all_listed_and_one_more_makes_a_sample() {
        let row = |n: u8| (vec![n], Vec::new(), 10);
        let groups = gather((0..64).map(row));
        assert!(groups.all && groups.groups.len() == 64);
        let groups = gather((0..65).map(row));
        assert!(!groups.all && groups.groups.len() == 33);
    }

    #[test]
    fn long_prefixes_are_bounded_and_the_longest_left_out() {
        let row = |n: u8| (vec![n; 1000], Vec::new(), 10);
        let groups = gather((0..64).map(row));
        assert!(!groups.all && !groups.groups.is_empty());
        let bytes: usize = groups.groups.iter().map(|group| group.prefix.len()).sum();
        assert!(bytes <= PREFIX_BYTES);
        let groups = gather([(vec![1; LONGEST_PREFIX + 1], Vec::new(), 10)]);
        assert_eq!(groups, Groups { all: false, groups: Vec::new() });
    }

    /// Whatever the sizes of collections, the sample says roughly how many bytes some of them have.
    #[test]
    fn a_sample_weighs_groups_by_their_bytes() {
        let shapes: [fn(u32) -> u32; 3] =
            [|_| 1, |n| if n % 100 == 7 { 500 } else { 1 }, |n| n % 40];
        for rows_of in shapes {
            let mut rows = Vec::new();
            for group in 0..5000u32 {
                for _ in 0..rows_of(group) {
                    rows.push((
                        group.to_be_bytes().to_vec(),
                        Vec::new(),
                        20 + u64::from(group % 7),
                    ));
                }
            }
            let is_dead = |prefix: &[u8]| prefix[2..] < [9u8, 0][..];
            let sum = |dead: bool| -> u64 {
                let of = rows.iter().filter(|(prefix, ..)| !dead || is_dead(prefix));
                of.map(|(_, _, bytes)| bytes).sum()
            };
            let groups = gather(rows.iter().cloned()).groups;
            let dead = groups.iter().filter(|group| is_dead(&group.prefix));
            let estimate = dead.map(|group| group.bytes).sum::<u64>() as f64 / sum(false) as f64;
            let truth = sum(true) as f64 / sum(false) as f64;
            assert!((estimate - truth).abs() < 0.1, "{estimate} for {truth}");
        }
    }

    proptest! {
        #[test]
        fn every_row_is_in_a_group_or_the_list_is_a_sample(
            rows in prop::collection::btree_set((0u8..90, 0u64..1000), 0..300),
        ) {
            let groups = gather(
                rows.iter().map(|(key, index)| (vec![*key], index.to_be_bytes().to_vec(), 7)),
            );
            prop_assert_eq!(Groups::decode(&groups.encode()), Some(groups.clone()));
            prop_assert!(groups.groups.len() <= MOST);
            let bytes: u64 = groups.groups.iter().map(|group| group.bytes).sum();
            prop_assert_eq!(bytes, 7 * rows.len() as u64);
            let within = |key: u8, index: u64| groups.groups.iter().any(|group| {
                group.prefix == [key] && (group.lowest..=group.highest).contains(&index)
            });
            prop_assert!(!groups.all || rows.iter().all(|(key, index)| within(*key, *index)));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Groups::decode(&bytes);
        }
    }
}
