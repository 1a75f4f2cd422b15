//! How many bytes of the tables are shadowed: tombstones, and entries that newer ones hide from
//! every reader. Only a merge knows; this looks at a few entries.
//!
//! The points are spread evenly over the bytes of a tree's tables, also if only the first ones are
//! looked at (multiples of the golden ratio). So the estimate is within a few percent of the bytes,
//! and 0 if nothing is shadowed. The look leaves no trace in caches and counters.

use std::ops::Range;
use std::sync::Arc;

use crate::engine::compaction::FilterJob;
use crate::engine::version::TableFile;
use crate::error::Result;
use crate::sync::Instant;

/// Number of blocks to look at: at least, and at most.
const BLOCKS: Range<u64> = 32..256;

/// Number of entries to look at in each block.
const ENTRIES: u32 = 8;

/// 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Estimates the shadowed bytes in the tables of the job's tree. After `deadline` few more blocks
/// are looked at.
pub(crate) fn shadowed_bytes(job: &FilterJob, deadline: Instant) -> Result<u64> {
    let view = job.view();
    let levels = view.version.trees.get(job.tree.index());
    let files: Vec<_> = levels.into_iter().flat_map(|levels| levels.files()).collect();
    let total: u64 = files.iter().map(|file| file.meta().size).sum();
    let sequences = job.sequences();
    let (mut looked, mut shadowed) = (0u64, 0u64);
    for point in 0..BLOCKS.end {
        if point >= BLOCKS.start && Instant::now() > deadline {
            break;
        }
        let part = (point + 1).wrapping_mul(STEP);
        let Some((file, part)) = place(&files, total, part) else { continue };
        for (key, tag) in file.table()?.peek_entries(part, ENTRIES)? {
            looked += 1;
            let newest = |sequence: &_| view.peek_newest(job.tree, &key, *sequence);
            let live = tag.sequence() > job.current()
                || !tag.is_delete()
                    && any(sequences.iter().map(newest), |found| found == Some(tag))?;
            shadowed += u64::from(!live);
        }
    }
    Ok(of(total, shadowed, looked))
}

fn any<T>(
    mut results: impl Iterator<Item = Result<T>>,
    mut matches: impl FnMut(T) -> bool,
) -> Result<bool> {
    results.try_fold(false, |found, result| Ok(found || matches(result?)))
}

/// The file at a part of all bytes, and the part of that file. A part is a fraction of 2^64.
fn place<'f>(
    files: &[&'f Arc<TableFile>],
    total: u64,
    part: u64,
) -> Option<(&'f Arc<TableFile>, u64)> {
    let mut at = of(total, part, u64::MAX);
    for file in files {
        let size = file.meta().size;
        if at < size {
            return Some((file, of(u64::MAX, at, size)));
        }
        at -= size;
    }
    None
}

/// The share `part / whole` of `amount`.
fn of(amount: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
