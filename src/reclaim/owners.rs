//! Which rows the records of a user key name, at every sequence that a reader may use.
//!
//! The data and score trees sort by user key as the meta tree does, so a compaction of rows walks
//! along the meta tree: a merge join. There is a lane for each sequence, newest first, and a lane
//! is asked only if the newer ones did not answer the question: rows that are alive now, which is
//! nearly all, ask one. A lane looks into the memtables by hash, which leaves them unsorted, and
//! walks along the tables. Beyond [`WALKS`] sequences lanes look records up instead of walking, so
//! that memory stays bounded.

use bytes::Bytes;

use crate::encoding::chunked::{Chunks, is_chunked};
use crate::encoding::meta::{Body, Header, Type, is_packed};
use crate::engine::{FilterJob, FlushPoint, Iter, Sequence};
use crate::error::Result;
use crate::keyspace::trees::META;

/// The number of lanes that keep an iterator.
const WALKS: usize = 8;
/// The number of steps that an iterator takes before it seeks instead.
const STEPS: usize = 16;

/// The rows that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// No rows.
    Nothing,
    /// All rows of a version.
    Members(u64),
    /// The rows of a version with these indexes.
    Span(u64, u64, u64),
    /// A record that cannot be decoded: it may name any row.
    Unknown,
}

impl Named {
    fn by(record: &[u8]) -> Self {
        let Ok(Header { kind, .. }) = Header::decode(record) else { return Self::Unknown };
        if kind == Type::String && is_chunked(record) {
            let chunks = Chunks::decode(record);
            return chunks.map_or(Self::Unknown, |chunks| Self::Members(chunks.version));
        }
        if kind == Type::String || is_packed(record) {
            return Self::Nothing;
        }
        match Body::decode(kind, record) {
            Ok(Body::Members { version, .. }) => Self::Members(version),
            Ok(Body::Span { version, head, tail }) => Self::Span(version, head, tail),
            Ok(Body::Packed(_)) => Self::Nothing,
            Err(_) => Self::Unknown,
        }
    }

    /// How many of the indexes from `lowest` to `highest` of a version the record names; all or
    /// none if it is no list.
    fn share(self, version: u64, lowest: u64, highest: u64) -> u128 {
        let all = u128::from(highest.saturating_sub(lowest)) + 1;
        match self {
            Self::Members(named) if named == version => all,
            Self::Span(named, head, tail) if named == version => {
                let end = u128::from(tail).min(u128::from(highest) + 1);
                end.saturating_sub(u128::from(head.max(lowest)))
            }
            Self::Unknown => all,
            Self::Nothing | Self::Members(_) | Self::Span(..) => 0,
        }
    }

    fn holds(self, version: u64, sub_key: &[u8]) -> bool {
        match self {
            Self::Nothing => false,
            Self::Members(named) => named == version,
            Self::Span(named, head, tail) => {
                let index = <[u8; 8]>::try_from(sub_key).map(u64::from_be_bytes);
                named == version && index.is_ok_and(|index| (head..tail).contains(&index))
            }
            Self::Unknown => true,
        }
    }
}

/// The meta tree at one sequence.
struct Lane {
    sequence: Sequence,
    walks: bool,
    /// An iterator over the tables, at or after the last key asked about, and what was in tables when
    /// it was made.
    iter: Option<(FlushPoint, Iter)>,
}

impl Lane {
    /// The rows that the record of `key` names. Keys must ascend.
    fn ask(&mut self, job: &FilterJob, key: &[u8]) -> Result<Named> {
        let found = |record: Option<Bytes>| record.map_or(Named::Nothing, |it| Named::by(&it));
        if !self.walks {
            return job.get(META, key, self.sequence).map(found);
        }
        let (point, known) = job.recent(META, key, self.sequence)?;
        if let Some(known) = known {
            return Ok(found(known));
        }
        let iter = match &mut self.iter {
            Some((made_at, iter)) if *made_at == point => iter,
            // Memtables became tables since, and the iterator does not have those.
            old => {
                let (made_at, mut iter) = job.iter_tables(META, self.sequence)?;
                iter.seek(key)?;
                &mut old.insert((made_at, iter)).1
            }
        };
        for _ in 0..STEPS {
            if !iter.valid() || iter.key() >= key {
                break;
            }
            iter.next()?;
        }
        if iter.valid() && iter.key() < key {
            iter.seek(key)?;
        }
        let here = iter.valid() && iter.key() == key;
        Ok(if here { Named::by(iter.value()) } else { Named::Nothing })
    }
}

/// Answers which rows of a user key some reader can reach.
pub(super) struct Owners {
    job: FilterJob,
    /// The lanes, newest first.
    lanes: Vec<Lane>,
    key: Vec<u8>,
    /// The number of lanes that have been asked about `key`.
    asked: usize,
    /// Their answers, newest first, each at the newest sequence for which it holds.
    named: Vec<(Sequence, Named)>,
}

impl Owners {
    /// For the rows of many user keys in ascending order.
    pub(super) fn new(job: &FilterJob) -> Self {
        Self::walking(job, WALKS)
    }

    /// For a few user keys that lie far apart, in any order: lanes look records up.
    pub(super) fn sparse(job: &FilterJob) -> Self {
        Self::walking(job, 0)
    }

    fn walking(job: &FilterJob, walks: usize) -> Self {
        let sequences = job.sequences().into_iter().rev().enumerate();
        let lane = |(at, sequence)| Lane { sequence, walks: at < walks, iter: None };
        Self {
            lanes: sequences.map(lane).collect(),
            job: job.clone(),
            key: Vec::new(),
            asked: 0,
            named: Vec::new(),
        }
    }

    /// Moves to the user key of this meta key. Keys must ascend.
    pub(super) fn turn_to(&mut self, meta_key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(meta_key);
        self.asked = 0;
        self.named.clear();
    }

    /// Whether a reader at or after `since` finds a record that names the row.
    pub(super) fn hold(&mut self, version: u64, sub_key: &[u8], since: Sequence) -> Result<bool> {
        let mut known = self.named.iter().take_while(|(sequence, _)| *sequence >= since);
        if known.any(|(_, named)| named.holds(version, sub_key)) {
            return Ok(true);
        }
        while let Some(named) = self.ask_next(since)? {
            if named.holds(version, sub_key) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// An upper bound of how many indexes from `lowest` to `highest` of a version readers at or
    /// after `since` can reach: what two of them reach counts twice. 0 only if none reaches any.
    pub(super) fn share(
        &mut self,
        version: u64,
        (lowest, highest): (u64, u64),
        since: Sequence,
    ) -> Result<u128> {
        let all = u128::from(highest.saturating_sub(lowest)) + 1;
        let (mut sum, mut counted) = (0u128, 0);
        // Nearly all rows are alive, and the newest lane says so: no other is asked.
        while sum < all {
            match self.named.get(counted).copied().filter(|(sequence, _)| *sequence >= since) {
                Some((_, named)) => {
                    sum = sum.saturating_add(named.share(version, lowest, highest));
                    counted += 1;
                }
                None if self.ask_next(since)?.is_none() => break,
                None => {}
            }
        }
        Ok(sum.min(all))
    }

    /// Asks the next lane at or after `since`; `None` if there is none.
    fn ask_next(&mut self, since: Sequence) -> Result<Option<Named>> {
        let next = self.lanes.get_mut(self.asked).filter(|lane| lane.sequence >= since);
        let Some(lane) = next else { return Ok(None) };
        let named = lane.ask(&self.job, &self.key)?;
        let sequence = lane.sequence;
        self.asked += 1;
        let news = self.named.last().is_none_or(|(_, last)| *last != named);
        if named != Named::Nothing && news {
            self.named.push((sequence, named));
        }
        Ok(Some(named))
    }
}
