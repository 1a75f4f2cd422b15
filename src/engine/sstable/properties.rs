//! The properties of a table, which can be read without its data blocks.
//!
//! ```text
//! properties = entries | tombstones | key bytes | value bytes | smallest sequence
//!              | largest sequence | data blocks            (varints)
//!              | smallest key | largest key                (length varint, bytes)
//!              | count varint | (name, value) * count      (length varint, bytes, each)
//!              | features varint                           (only if there are features)
//!              | hash seed u64                             (with feature 1)
//!              | sum of the weights i64                    (with feature 2)
//! ```
//!
//! A feature is something that a reader must know. A table with a feature that this code does not
//! know is refused. Tables of format 1 have none.

use super::format::Malformed;
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag, bound};
use crate::engine::hash::HashSeed;
use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};

/// The feature of tables whose filter and blocks use a seeded hash.
const HASH_SEED: u64 = 1;

/// The feature of tables with entries that have a weight.
const COUNTED: u64 = 2;
/// All features that this code knows.
const KNOWN_FEATURES: u64 = HASH_SEED | COUNTED;

/// Sees every entry of a table that is being written, and adds properties at the end.
pub trait Collector: Send {
    /// Called for each entry, in order.
    fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]);
    /// Called once, after all entries. Returns the names and values to store in the table.
    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)>;
}

/// Creates the property collectors for the tables of a tree.
pub trait CollectorFactory: Send + Sync + std::fmt::Debug {
    /// The collectors for one new table.
    fn collectors(&self) -> Vec<Box<dyn Collector>>;
}

/// The properties of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Number of entries, all versions and tombstones counted.
    pub entries: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// Bytes of all user keys, before prefix compression.
    pub key_bytes: u64,
    /// Bytes of all values, before compression.
    pub value_bytes: u64,
    /// Smallest sequence number.
    pub min_sequence: Sequence,
    /// Largest sequence number.
    pub max_sequence: Sequence,
    /// Number of data blocks.
    pub blocks: u64,
    /// The bound of the smallest user key.
    pub smallest: Vec<u8>,
    /// The bound of the largest user key.
    pub largest: Vec<u8>,
    /// Names and values from the collectors, in the order they were returned.
    pub collected: Vec<(Vec<u8>, Vec<u8>)>,
    /// Seed of the hash that the filter and the blocks use.
    pub hash_seed: HashSeed,
    /// The sum of the weights of all entries; `None` if none has one.
    pub weight: Option<i64>,
    /// Features that this code does not know. Such a table cannot be read.
    pub(super) unknown_features: u64,
}

impl Properties {
    /// The properties of a table without entries.
    pub(super) fn empty(hash_seed: HashSeed) -> Self {
        Self {
            entries: 0,
            tombstones: 0,
            key_bytes: 0,
            value_bytes: 0,
            min_sequence: MAX_SEQUENCE,
            max_sequence: 0,
            blocks: 0,
            smallest: Vec::new(),
            largest: Vec::new(),
            collected: Vec::new(),
            hash_seed,
            weight: None,
            unknown_features: 0,
        }
    }

    /// Counts an entry. The caller sets the smallest and largest keys.
    pub(super) fn count(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        self.entries += 1;
        self.tombstones += u64::from(tag.is_delete());
        self.key_bytes += key.len() as u64;
        self.value_bytes += value.len() as u64;
        self.min_sequence = self.min_sequence.min(tag.sequence());
        self.max_sequence = self.max_sequence.max(tag.sequence());
        if tag.weight() != 0 {
            *self.weight.get_or_insert(0) += tag.weight();
        }
    }

    /// Counts an entry with another weight than before.
    pub(super) fn reweigh(&mut self, before: Tag, now: Tag) {
        if before != now {
            *self.weight.get_or_insert(0) += now.weight() - before.weight();
        }
    }

    /// Whether a reader must know more than format 1.
    pub(super) fn has_features(&self) -> bool {
        self.features() != 0
    }

    fn features(&self) -> u64 {
        let seeded = if self.hash_seed == HashSeed::NONE { 0 } else { HASH_SEED };
        seeded | if self.weight.is_some() { COUNTED } else { 0 }
    }

    /// The value that a collector stored under `name`.
    pub fn collected(&self, name: &[u8]) -> Option<&[u8]> {
        self.collected.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_slice())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in self.numbers() {
            put_varint(&mut out, number);
        }
        put_bytes(&mut out, &self.smallest);
        put_bytes(&mut out, &self.largest);
        put_varint(&mut out, self.collected.len() as u64);
        for (name, value) in &self.collected {
            put_bytes(&mut out, name);
            put_bytes(&mut out, value);
        }
        if self.has_features() {
            put_varint(&mut out, self.features());
        }
        if self.hash_seed != HashSeed::NONE {
            put_u64(&mut out, self.hash_seed.raw());
        }
        if let Some(weight) = self.weight {
            put_u64(&mut out, weight.cast_unsigned());
        }
        out
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let properties =
            Self::take(&mut Reader::new(payload)).ok_or(Malformed("properties are not valid"))?;
        let sound = properties.entries > 0
            && properties.tombstones <= properties.entries
            && properties.blocks <= properties.entries
            && properties.min_sequence <= properties.max_sequence
            && properties.max_sequence <= MAX_SEQUENCE
            && properties.smallest <= properties.largest;
        if sound { Ok(properties) } else { Err(Malformed("properties contradict each other")) }
    }

    fn numbers(&self) -> [u64; 7] {
        [
            self.entries,
            self.tombstones,
            self.key_bytes,
            self.value_bytes,
            self.min_sequence,
            self.max_sequence,
            self.blocks,
        ]
    }

    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        let mut properties = Self {
            entries: reader.varint()?,
            tombstones: reader.varint()?,
            key_bytes: reader.varint()?,
            value_bytes: reader.varint()?,
            min_sequence: reader.varint()?,
            max_sequence: reader.varint()?,
            blocks: reader.varint()?,
            // Tables of format 1 have the whole keys.
            smallest: bound(reader.bytes()?).to_vec(),
            largest: bound(reader.bytes()?).to_vec(),
            collected: Vec::new(),
            hash_seed: HashSeed::NONE,
            weight: None,
            unknown_features: 0,
        };
        for _ in 0..reader.varint()? {
            let (name, value) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
            properties.collected.push((name, value));
        }
        if !reader.is_empty() {
            let features = reader.varint()?;
            properties.unknown_features = features & !KNOWN_FEATURES;
            if features & HASH_SEED != 0 {
                properties.hash_seed = HashSeed::from_raw(reader.u64()?);
            }
            if properties.unknown_features != 0 {
                return Some(properties);
            }
            if features & COUNTED != 0 {
                properties.weight = Some(reader.u64()?.cast_signed());
            }
            // Nothing is written of a table without features or with a seed of zero.
            (properties.features() == features && features != 0).then_some(())?;
        }
        reader.is_empty().then_some(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        Properties {
            entries: 300,
            tombstones: 7,
            key_bytes: 1 << 40,
            value_bytes: 5,
            min_sequence: 1,
            max_sequence: MAX_SEQUENCE,
            blocks: 3,
            smallest: b"".to_vec(),
            largest: b"zz".to_vec(),
            collected: vec![(b"expiry".to_vec(), vec![0, 1]), (b"empty".to_vec(), vec![])],
            hash_seed: HashSeed::NONE,
            weight: None,
            unknown_features: 0,
        }
    }

    #[test]
    fn properties_read_back() {
        let read = Properties::decode(&properties().encode()).unwrap();
        assert_eq!(read, properties());
        assert_eq!(read.collected(b"expiry"), Some(&[0, 1][..]));
        assert_eq!(read.collected(b"other"), None);
    }

    #[test]
    fn a_seed_reads_back_and_an_unknown_feature_is_told() {
        let seeded = Properties { hash_seed: HashSeed::from_raw(77), ..properties() };
        assert_eq!(Properties::decode(&seeded.encode()).unwrap(), seeded);
        for weight in [0, 1, -3, i64::MAX] {
            for table in [&seeded, &properties()] {
                let counted = Properties { weight: Some(weight), ..table.clone() };
                assert_eq!(Properties::decode(&counted.encode()).unwrap(), counted);
            }
        }
        let mut bytes = properties().encode();
        put_varint(&mut bytes, 8 | HASH_SEED);
        put_u64(&mut bytes, 77);
        bytes.extend_from_slice(b"whatever that feature needs");
        assert_eq!(Properties::decode(&bytes).unwrap().unknown_features, 8);
    }

    #[test]
    fn every_cut_and_every_addition_is_refused() {
        let bytes = properties().encode();
        for length in 0..bytes.len() {
            assert!(Properties::decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Properties::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_huge_claim_allocates_nothing() {
        let mut bytes = properties().encode();
        bytes.truncate(bytes.len() - 16);
        put_varint(&mut bytes, u64::MAX);
        assert!(Properties::decode(&bytes).is_err());
    }
}
