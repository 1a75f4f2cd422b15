//! Iterators over keys of a shared store: of this process, or walks that the holder keeps.
//!
//! The holder sends a page when the last one is used up, and nothing ahead of that.

use std::collections::VecDeque;
use std::sync::Arc;

use super::keeper::{Keeper, Kept};
use super::store::{Seat, SharedStore};
use crate::commands::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::remote::{Line, LineFailure, Unanswered};
use crate::server::{entries_of, words_of};
use crate::types::{KeyEntry, KeyIter, KeyRange, chunk_of_keys};

/// The most entries of a page, and the bytes after which it ends.
const PAGE_ITEMS: &[u8] = b"512";
const PAGE_BYTES: &[u8] = b"131072";

/// An iterator over the keys of a shared store, made by [`SharedStore::iter`]. If the process that
/// holds the store ends, it fails with [`ErrorKind::Io`], and does so on every further call.
///
/// ```
/// use lsmkv::types::KeyRange;
/// use lsmkv::{Options, SharedStore};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let store = SharedStore::open(dir.path(), &Options::default())?;
/// store.command(&[b"MSET", b"a", b"1", b"b", b"2"])?;
/// let mut keys = store.iter(KeyRange { reverse: true, ..KeyRange::default() })?;
/// assert_eq!(keys.next()?.map(|entry| entry.key).as_deref(), Some(&b"b"[..]));
/// # store.close()?;
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedIter {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Here(Box<KeyIter>),
    There(Walk),
}

/// A walk that the holder keeps.
#[derive(Debug)]
struct Walk {
    keeper: Arc<Keeper>,
    /// Its number, as a word.
    number: String,
    page: VecDeque<KeyEntry>,
    end: Option<Result<()>>,
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.keeper.free_walk(self.number.as_bytes());
    }
}

impl SharedStore {
    /// Iterates over the keys of a range that exist now, in order. Later changes are not seen.
    pub fn iter(&self, mut range: KeyRange) -> Result<SharedIter> {
        self.run(|seat| match seat {
            // Whatever comes of it ends the search for the holder.
            Seat::Here(db) => match db.iter(std::mem::take(&mut range)) {
                Ok(keys) => Ok(SharedIter::here(keys)),
                Err(error) => Err(Unanswered::Failed(error)),
            },
            Seat::There(remote) => {
                let keeper = Keeper::open(self, remote, None)?;
                let number = keeper.first(|line| SharedIter::begin(line, &range))?;
                Ok(SharedIter::there(keeper, number))
            }
        })
    }
}

impl SharedIter {
    pub(super) fn here(keys: KeyIter) -> Self {
        Self { place: Place::Here(Box::new(keys)) }
    }

    /// An iterator over a walk that [`SharedIter::begin`] has begun.
    pub(super) fn there(keeper: Arc<Keeper>, number: String) -> Self {
        let walk = Walk { keeper, number, page: VecDeque::new(), end: None };
        Self { place: Place::There(walk) }
    }

    /// Begins a walk at the holder and returns its number.
    pub(super) fn begin(
        line: &mut Line,
        range: &KeyRange,
    ) -> std::result::Result<String, LineFailure> {
        let words = words_of(range);
        let mut argv: Vec<&[u8]> = vec![b"LSMKV.SHARED", b"KEYS"];
        argv.extend(words.iter().map(Vec::as_slice));
        match line.begin(&argv)? {
            Reply::Int(number) => Ok(number.to_string()),
            other => Err(LineFailure::Replied(unexpected(&other))),
        }
    }

    /// The next key; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it keeps failing, as KeyIter::next does")]
    pub fn next(&mut self) -> Result<Option<KeyEntry>> {
        match &mut self.place {
            Place::Here(keys) => KeyIter::next(keys),
            Place::There(walk) => walk.next(),
        }
    }

    /// Up to `max_items` keys, at least one; ends early once keys and values reach `max_bytes`.
    /// Empty at the end.
    pub fn next_chunk(&mut self, max_items: usize, max_bytes: usize) -> Result<Vec<KeyEntry>> {
        match &mut self.place {
            Place::Here(keys) => KeyIter::next_chunk(keys, max_items, max_bytes),
            Place::There(walk) => chunk_of_keys(max_items, max_bytes, || walk.next()),
        }
    }
}

impl Walk {
    fn next(&mut self) -> Result<Option<KeyEntry>> {
        self.keeper.store().check_open()?;
        while self.page.is_empty() && self.end.is_none() {
            match self.fetch() {
                Ok(Some(page)) => self.page = page.into(),
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        match (self.page.pop_front(), &self.end) {
            (None, Some(Err(error))) => Err(error.clone()),
            (entry, _) => Ok(entry),
        }
    }

    /// The next page, which may be empty; `None` at the end.
    fn fetch(&self) -> Result<Option<Vec<KeyEntry>>> {
        let number = self.number.as_bytes();
        let argv: [&[u8]; 5] = [b"LSMKV.SHARED", b"NEXT", number, PAGE_ITEMS, PAGE_BYTES];
        let page = self.keeper.with(Kept::Walk, |line| line.ask(&argv, None))?;
        if matches!(page, Reply::Nil) {
            return Ok(None);
        }
        let none = || Error::new(ErrorKind::Io, "the holder sent no page of keys");
        entries_of(page).map(Some).ok_or_else(none)
    }
}

fn unexpected(reply: &Reply) -> Error {
    Error::new(ErrorKind::Io, format!("the holder replied {reply:?} where a number belongs"))
}
