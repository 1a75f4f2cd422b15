//! Counting and selection by position: how many keys of a range are set, and which is the nth.
//!
//! Both answer for *counted* keys: keys of which every write told whether the key was set
//! ([`Batch::put_absent`], [`Batch::delete_present`]), from the first write on. A caller asks only
//! for ranges whose keys are all counted ([`Engine::counted_from`]).
//!
//! [`Batch::put_absent`]: crate::engine::Batch::put_absent
//! [`Batch::delete_present`]: crate::engine::Batch::delete_present
//! [`Engine::counted_from`]: crate::engine::Engine::counted_from

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::reader::Reader;
use crate::engine::sstable::CacheFill;
use crate::error::Result;

impl Reader {
    /// The number of keys of `tree` from `lower` on and before `upper` that are set. An empty
    /// `upper` is no bound. All keys of the range must be counted; otherwise the result has no
    /// meaning.
    pub fn count(&self, tree: TreeId, lower: &[u8], upper: &[u8]) -> Result<u64> {
        let mut iter = self.walk(tree, lower, upper)?;
        let mut count = 0;
        while iter.valid() {
            count += 1;
            iter.next()?;
        }
        Ok(count)
    }

    /// Of the keys of `tree` from `lower` on and before `upper` that are set, the one that follows
    /// `nth` others; `None` if there are no more than `nth`. An empty `upper` is no bound. All keys
    /// of the range must be counted; otherwise the result has no meaning.
    pub fn select(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: &[u8],
        nth: u64,
    ) -> Result<Option<Bytes>> {
        let mut iter = self.walk(tree, lower, upper)?;
        for _ in 0..nth {
            if !iter.valid() {
                return Ok(None);
            }
            iter.next()?;
        }
        Ok(iter.valid().then(|| Bytes::copy_from_slice(iter.key())))
    }

    fn walk(&self, tree: TreeId, lower: &[u8], upper: &[u8]) -> Result<Iter> {
        let upper = (!upper.is_empty()).then(|| Bytes::copy_from_slice(upper));
        let lower = Some(Bytes::copy_from_slice(lower));
        let mut iter =
            self.iter(tree, IterOptions { lower, upper, cache_fill: CacheFill::Fill })?;
        iter.seek_to_first()?;
        Ok(iter)
    }
}
