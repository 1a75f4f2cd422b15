//! Walks that users hold: over keys, and over the members of one key.
//!
//! An iterator looks at one moment and one time, fixed when it is made: what is written, deleted
//! or expires meanwhile does not show. It keeps the memtables and files of that moment until it
//! has come to its end or is dropped, so no registered time and no snapshot are needed: what it
//! reads cannot be reclaimed. Made on a transaction it sees that one's writes so far.
//!
//! A failure is never an end: it comes back from every further call. So do the errors of a store
//! that was closed. Threads: an iterator may be sent to another thread, and is used by one at a
//! time.

mod keys;
mod members;

pub use keys::{KeyEntry, KeyIter, KeyRange};
pub use members::{Member, MemberIter, MemberRange};

use crate::error::{Error, Result};

/// Something that is walked, how far that has come, and what went wrong.
#[derive(Debug)]
struct Progress<W> {
    /// `None` when there is no more to come: what it held is given back.
    walk: Option<W>,
    failed: Option<Error>,
    /// Whether [`Iterator::next`] has handed the failure out.
    told: bool,
}

impl<W> Progress<W> {
    fn new(walk: Option<W>) -> Self {
        Self { walk, failed: None, told: false }
    }

    /// One step; `advance` returns nothing at the end.
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

    /// For [`Iterator`], which ends after an error: a loop that skips errors must not run for ever.
    fn tell<T>(&mut self, step: Result<Option<T>>) -> Option<Result<T>> {
        if self.told {
            return None;
        }
        self.told = step.is_err();
        step.transpose()
    }
}

/// Up to `max_items` of what `next` gives, at least one; the one that makes `max_bytes` full is
/// the last. None at the end. An error after the first is left for the next call.
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
