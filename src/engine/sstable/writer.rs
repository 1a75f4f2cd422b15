//! Writes a table from entries in internal order. One thread owns a writer.
//!
//! The caller creates the file, `finish` makes its bytes durable, and the caller makes its name
//! durable. A writer dropped without `finish` leaves a file without a footer, which no reader
//! accepts.

use std::cmp::Ordering;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::block_builder::BlockBuilder;
use super::filter;
use super::format::{FOOTER_BYTES, Footer, Handle};
use super::index::IndexBuilder;
use super::properties::{Collector, Properties};
use super::sink::Sink;
use crate::engine::entry::{Sequence, Tag, bound, compare};
use crate::engine::files::FileNumber;
use crate::engine::hash::HashSeed;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::File;
use crate::options::Compression;

/// Longest key, and longest value. Their sum and a little more must stay below 4 GiB.
const MAX_PART_BYTES: usize = 1 << 30;
/// Largest block size that takes effect, so that no block comes close to 4 GiB.
const MAX_BLOCK_BYTES: usize = 64 << 20;
/// Largest size of an entry beside key and value.
const ENTRY_OVERHEAD: usize = 8 + 5 + 5 + 4 + 2;

/// Options of a table writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// Size of a data block before compression, in bytes. A larger entry gets a block of its own.
    pub block_bytes: u32,
    /// Bloom filter bits per distinct user key; 0 for no filter.
    pub bloom_bits: u32,
    /// Compression of data blocks.
    pub compression: Compression,
    /// Seed of the hash that the filter and the blocks use.
    pub hash_seed: HashSeed,
}

/// The metadata of a finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// The file number.
    pub number: FileNumber,
    /// The exact size of the file in bytes.
    pub file_size: u64,
    /// Number of entries, all versions and tombstones counted.
    pub entries: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// The bound of the smallest user key.
    pub smallest: Vec<u8>,
    /// The bound of the largest user key.
    pub largest: Vec<u8>,
    /// Smallest sequence number.
    pub min_seq: Sequence,
    /// Largest sequence number.
    pub max_seq: Sequence,
    /// The sum of the weights of all entries.
    pub weight: i64,
    /// Bytes of all user keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
}

/// Writes one table.
pub struct TableWriter {
    sink: Sink,
    path: PathBuf,
    number: FileNumber,
    options: WriterOptions,
    collectors: Vec<Box<dyn Collector>>,
    block: BlockBuilder,
    index: IndexBuilder,
    /// Hashes of the distinct user keys, for the Bloom filter. Empty if there is none.
    hashes: Vec<u64>,
    properties: Properties,
    last_key: Vec<u8>,
    last_tag: Tag,
    last_hash: u64,
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// A writer of table `number` to `file`, which is new and empty. `path` is used in errors.
    pub fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        number: FileNumber,
        options: WriterOptions,
        collectors: Vec<Box<dyn Collector>>,
    ) -> Self {
        Self {
            sink: Sink::new(file, path.clone(), number),
            path,
            number,
            options,
            collectors,
            block: BlockBuilder::default(),
            index: IndexBuilder::default(),
            hashes: Vec::new(),
            properties: Properties::empty(options.hash_seed),
            last_key: Vec::new(),
            last_tag: Tag::newest_at(0),
            last_hash: 0,
        }
    }

    /// Says that the file is not empty: what it has beyond the table is cut off at the end.
    pub fn trim_at_end(&mut self) {
        self.sink.trim = true;
    }

    /// Adds an entry, which must sort after all entries before it.
    pub fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        self.check(key, tag, value)?;
        let first = self.properties.entries == 0;
        let new_key = first || key != self.last_key;
        if new_key {
            self.last_hash = self.options.hash_seed.hash(key);
            if self.options.bloom_bits > 0 {
                self.hashes.push(self.last_hash);
            }
        }
        let size = self.block.size() + key.len() + value.len() + ENTRY_OVERHEAD;
        if !self.block.is_empty() && size > self.block_bytes() {
            self.finish_block(Some(key))?;
        }
        let first_version = new_key || self.block.is_empty();
        self.block.add(key, self.last_hash, first_version, tag, value);
        self.index.sums.add(tag);
        self.properties.count(key, tag, value);
        if first {
            self.properties.smallest = bound(key).to_vec();
        }
        if new_key {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        self.last_tag = tag;
        self.collectors.iter_mut().for_each(|collector| collector.add(key, tag, value));
        Ok(())
    }

    /// Adds to the weight of the last entry that of an older version, which is left out.
    #[inline]
    pub fn weigh_last(&mut self, weight: i64) {
        if weight != 0 && !self.block.is_empty() {
            let tag = self.last_tag.with_weight(self.last_tag.weight() + weight);
            self.index.sums.reweigh(self.last_tag, tag);
            self.properties.reweigh(self.last_tag, tag);
            self.block.set_last_tag(tag);
            self.last_tag = tag;
        }
    }

    /// The key of the last entry; empty before the first.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Number of entries added.
    pub fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Approximate size of the file if it were finished now, without compression of the block in
    /// progress.
    pub fn estimated_size(&self) -> u64 {
        let filter = self.hashes.len() as u64 * u64::from(self.options.bloom_bits) / 8;
        let rest = self.block.size() + self.index.size();
        self.sink.position() + filter + (rest + FOOTER_BYTES) as u64
    }

    /// Writes the parts after the data, and makes the bytes of the file durable.
    pub fn finish(mut self) -> Result<TableSummary> {
        if self.block.is_empty() {
            let message = format!("{}: a table needs at least one entry", self.path.display());
            return Err(Error::new(ErrorKind::Misuse, message));
        }
        self.finish_block(None)?;
        let data_end = self.sink.position();
        let filter = match filter::build(&self.hashes, self.options.bloom_bits) {
            Some(payload) => self.sink.block(&[&payload], Compression::None)?,
            None => Handle { offset: data_end, length: 0 },
        };
        let index = self.sink.block(&[&self.index.finish()], Compression::None)?;
        self.properties.blocks = self.index.count() as u64;
        if !self.index.sums.weighs() {
            // None of those that weighed is left.
            self.properties.weight = None;
        }
        self.properties.largest = bound(&self.last_key).to_vec();
        self.properties.collected = self.collectors.iter_mut().flat_map(|c| c.finish()).collect();
        let properties = self.sink.block(&[&self.properties.encode()], Compression::None)?;
        let footer = Footer { index, filter, properties };
        let features = self.properties.has_features();
        self.sink.append(&footer.encode(self.number, self.sink.position(), features))?;
        self.sink.sync()?;
        Ok(self.summary())
    }

    fn summary(self) -> TableSummary {
        TableSummary {
            number: self.number,
            file_size: self.sink.position(),
            entries: self.properties.entries,
            tombstones: self.properties.tombstones,
            smallest: self.properties.smallest,
            largest: self.properties.largest,
            min_seq: self.properties.min_sequence,
            max_seq: self.properties.max_sequence,
            weight: self.properties.weight.unwrap_or(0),
            key_bytes: self.properties.key_bytes,
            value_bytes: self.properties.value_bytes,
        }
    }

    fn block_bytes(&self) -> usize {
        (self.options.block_bytes as usize).min(MAX_BLOCK_BYTES)
    }

    fn check(&self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        if key.len() > MAX_PART_BYTES || value.len() > MAX_PART_BYTES {
            let message = format!("{}: a key or value is over 1 GiB", self.path.display());
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let ascends = self.properties.entries == 0
            || compare(&self.last_key, self.last_tag, key, tag) == Ordering::Less;
        if ascends {
            return Ok(());
        }
        let message = format!(
            "{}: entry {} (sequence {}) is not after the one before it",
            self.path.display(),
            self.properties.entries,
            tag.sequence()
        );
        Err(Error::new(ErrorKind::Misuse, message))
    }

    /// Writes the block in progress. `next` is the first key of the next block, if there is one.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        let handle = self.sink.block(&self.block.finish(), self.options.compression)?;
        self.index.add((&self.last_key, self.last_tag), next, handle.length);
        self.block.clear();
        Ok(())
    }
}
