//! What the records of one user key name, at each moment that some reader looks at.
//!
//! The data and score trees sort by user key as the meta tree does, so a compaction of rows walks
//! along the meta tree: a merge-join. There is a lane for each moment, newest first, and a lane is
//! asked only when the newer ones did not settle the question: rows that are alive now, which is
//! nearly all, ask one. A lane looks into the memtables by hash, which leaves them unsorted, and
//! walks along the tables; beyond [`WALKS`] moments lanes look records up instead of walking, so
//! that memory stays bounded.

use bytes::Bytes;

use crate::encoding::meta::{Body, Header, Type};
use crate::engine::{FilterJob, Iter, Sequence};
use crate::error::Result;
use crate::types::txn::META;

/// Lanes that keep an iterator.
const WALKS: usize = 8;
/// Steps an iterator takes before it rather seeks.
const STEPS: usize = 16;

/// What a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// No rows.
    Nothing,
    /// All rows of a version.
    Members(u64),
    /// The rows of a version with these indexes.
    Span(u64, u64, u64),
    /// A record that this version cannot read: any row may be its.
    Unknown,
}

impl Named {
    fn by(record: &[u8]) -> Self {
        let Ok(Header { kind, .. }) = Header::decode(record) else { return Self::Unknown };
        if kind == Type::String {
            return Self::Nothing;
        }
        match Body::decode(kind, record) {
            Ok(Body::Members { version, .. }) => Self::Members(version),
            Ok(Body::Span { version, head, tail }) => Self::Span(version, head, tail),
            Err(_) => Self::Unknown,
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

/// The meta tree at one moment.
struct Lane {
    sequence: Sequence,
    walks: bool,
    /// Over the tables, at or after the last key asked about.
    iter: Option<Iter>,
}

impl Lane {
    /// What the record of `key` names. Keys must ascend.
    fn ask(&mut self, job: &FilterJob, key: &[u8]) -> Result<Named> {
        let found = |record: Option<Bytes>| record.map_or(Named::Nothing, |it| Named::by(&it));
        if !self.walks {
            return job.get(META, key, self.sequence).map(found);
        }
        if let Some(known) = job.recent(META, key, self.sequence)? {
            return Ok(found(known));
        }
        let iter = match &mut self.iter {
            Some(iter) => iter,
            none => {
                let mut iter = job.iter_tables(META, self.sequence)?;
                iter.seek(key)?;
                none.insert(iter)
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

/// See the module's documentation.
pub(super) struct Owners {
    job: FilterJob,
    /// Newest first.
    lanes: Vec<Lane>,
    key: Vec<u8>,
    /// How many lanes have been asked about `key`.
    asked: usize,
    /// What they said, newest first, each only at the newest of the moments it holds for.
    named: Vec<(Sequence, Named)>,
}

impl Owners {
    pub(super) fn new(job: &FilterJob) -> Self {
        let moments = job.sequences().into_iter().rev().enumerate();
        let lane = |(at, sequence)| Lane { sequence, walks: at < WALKS, iter: None };
        Self {
            lanes: moments.map(lane).collect(),
            job: job.clone(),
            key: Vec::new(),
            asked: 0,
            named: Vec::new(),
        }
    }

    /// From now on it is about the user key of this meta key. Keys must ascend.
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
        while let Some(lane) = self.lanes.get_mut(self.asked)
            && lane.sequence >= since
        {
            let named = lane.ask(&self.job, &self.key)?;
            let sequence = lane.sequence;
            self.asked += 1;
            let news = self.named.last().is_none_or(|(_, last)| *last != named);
            if named != Named::Nothing && news {
                self.named.push((sequence, named));
            }
            if named.holds(version, sub_key) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
