//! Iterators that users hold, over keys and over the members of one key.
//!
//! An iterator reads at one sequence and one time, fixed when it is made: it does not see what is
//! written, deleted or expires later. It keeps the files of that sequence, and memtables, until it
//! ends or is dropped, so it needs no registered time and no snapshot: what it reads cannot be
//! reclaimed. If iterators already keep much memory, what a further one needs is flushed to files
//! first. An iterator made on a transaction sees the transaction's writes so far.
//!
//! A failure is never an end: every further call returns it again. The same goes for the error of a
//! closed store. Threads: an iterator may be sent to another thread, and only one uses it at a
//! time.

mod keys;
mod members;

#[cfg(feature = "server")]
pub(crate) use keys::chunk_of_keys;
pub use keys::{KeyEntry, KeyIter, KeyRange};
pub use members::{Member, MemberIter, MemberRange};

use crate::error::{Error, Result};

/// A walk, its progress and its failure.
#[derive(Debug)]
struct Progress<W> {
    /// `None` at the end: the walk is dropped.
    walk: Option<W>,
    failed: Option<Error>,
    /// Whether [`Iterator::next`] has returned the failure.
    told: bool,
}

impl<W> Progress<W> {
    fn new(walk: Option<W>) -> Self {
        Self { walk, failed: None, told: false }
    }

    /// Takes one step; `advance` returns `None` at the end.
    fn step<T>(&mut self, advance: impl FnOnce(&mut W) -> Result<Option<T>>) -> Result<Option<T>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let stepped = advance(walk);
        match &stepped {
            Ok(Some(_)) => {}
            Ok(None) => self.walk = None,
            Err(error) => {
                self.walk = None;
                self.failed = Some(error.clone());
            }
        }
        stepped
    }

    /// Converts a step for [`Iterator`], which ends after an error: a loop that skips errors must
    /// not run for ever.
    fn tell<T>(&mut self, step: Result<Option<T>>) -> Option<Result<T>> {
        if self.told {
            return None;
        }
        self.told = step.is_err();
        step.transpose()
    }
}

/// Collects up to `max_items` items of `next`, at least one, and stops early once they reach
/// `max_bytes`. Empty at the end. An error after the first item is left for the next call.
fn chunk<T>(
    max_items: usize,
    max_bytes: usize,
    bytes_of: impl Fn(&T) -> usize,
    mut next: impl FnMut() -> Result<Option<T>>,
) -> Result<Vec<T>> {
    let (mut items, mut bytes) = (Vec::new(), 0usize);
    while items.is_empty() || (items.len() < max_items && bytes < max_bytes) {
        match next() {
            Ok(Some(item)) => {
                bytes = bytes.saturating_add(bytes_of(&item));
                items.push(item);
            }
            Ok(None) => break,
            Err(error) if items.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    Ok(items)
}
