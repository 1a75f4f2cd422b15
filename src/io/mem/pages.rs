//! The bytes of a file as copy-on-write pages. Copying a file or a whole file system copies
//! references. A page that was never written is absent and reads as zeros.
//!
//! Invariants: there are as many pages as `len` needs, and the bytes of the last page after `len`
//! are zero.

use std::ops::Range;
use std::sync::Arc;

const PAGE_SIZE: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    len: u64,
    pages: Vec<Option<Arc<[u8; PAGE_SIZE]>>>,
}

impl Pages {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset` up to the end of the file, and returns the number of bytes read.
    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> usize {
        let available = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(available);
        let mut rest = buf.get_mut(..len).unwrap_or_default();
        let mut at = offset;
        while !rest.is_empty() {
            let (page, within) = locate(at);
            let (piece, later) = rest.split_at_mut(rest.len().min(PAGE_SIZE - within));
            match self.pages.get(page).and_then(Option::as_ref) {
                Some(bytes) => {
                    let source = bytes.get(within..within + piece.len()).unwrap_or_default();
                    piece.copy_from_slice(source);
                }
                None => piece.fill(0),
            }
            at += piece.len() as u64;
            rest = later;
        }
        len
    }

    /// Writes all of `buf`, and extends the file if necessary.
    pub(super) fn write_at(&mut self, buf: &[u8], offset: u64) {
        self.grow_to(offset + buf.len() as u64);
        let (mut rest, mut at) = (buf, offset);
        while !rest.is_empty() {
            let (page, within) = locate(at);
            let (piece, later) = rest.split_at(rest.len().min(PAGE_SIZE - within));
            if let Some(bytes) = self.page_mut(page).get_mut(within..within + piece.len()) {
                bytes.copy_from_slice(piece);
            }
            at += piece.len() as u64;
            rest = later;
        }
    }

    /// Truncates the file, or extends it with zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        self.pages.resize(page_count(len), None);
        let shrinks = len < self.len;
        self.len = len;
        let (last, within) = locate(len);
        if shrinks && self.pages.get(last).is_some_and(Option::is_some) {
            self.page_mut(last).get_mut(within..).unwrap_or_default().fill(0);
        }
    }

    /// Zeros the first `len` bytes.
    pub(super) fn discard_front(&mut self, len: u64) {
        let (last, within) = locate(len.min(self.len));
        self.pages.iter_mut().take(last).for_each(|page| *page = None);
        if self.pages.get(last).is_some_and(Option::is_some) {
            self.page_mut(last).get_mut(..within).unwrap_or_default().fill(0);
        }
    }

    pub(super) fn grow_to(&mut self, len: u64) {
        if len > self.len {
            self.set_len(len);
        }
    }

    /// Shares the pages that hold the bytes of `range` with `other`, and takes its length.
    pub(super) fn share(&mut self, other: &Pages, range: Range<u64>) {
        self.len = other.len;
        self.pages.resize(other.pages.len(), None);
        let (first, last) = (locate(range.start).0, page_count(range.end).min(other.pages.len()));
        let mine = self.pages.get_mut(first..last).unwrap_or_default();
        let theirs = other.pages.get(first..last).unwrap_or_default();
        mine.clone_from_slice(theirs);
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.len).unwrap_or(0)];
        self.read_at(&mut bytes, 0);
        bytes
    }

    /// The bytes of a page, to write to. The page is created if it does not exist.
    fn page_mut(&mut self, page: usize) -> &mut [u8] {
        while self.pages.len() <= page {
            self.pages.push(None);
        }
        match self.pages.get_mut(page) {
            Some(slot) => {
                let page = slot.get_or_insert_with(|| Arc::new([0; PAGE_SIZE]));
                Arc::make_mut(page).as_mut_slice()
            }
            None => &mut [],
        }
    }
}

/// The page of a byte, and its offset in the page.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below the page size")]
fn locate(offset: u64) -> (usize, usize) {
    let page = offset / PAGE_SIZE as u64;
    (usize::try_from(page).unwrap_or(usize::MAX), (offset % PAGE_SIZE as u64) as usize)
}

fn page_count(len: u64) -> usize {
    usize::try_from(len.div_ceil(PAGE_SIZE as u64)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain vector, with a copy taken halfway that must not change any more.
        #[test]
        fn pages_are_a_growable_vector(
            ops in prop::collection::vec((0u64..20_000, 0usize..9_000, any::<u8>()), 1..20)
        ) {
            let (mut pages, mut model) = (Pages::default(), Vec::new());
            let mut copy = None;
            for (i, &(offset, len, fill)) in ops.iter().enumerate() {
                let at = usize::try_from(offset).unwrap();
                if fill % 5 == 0 {
                    pages.set_len(offset);
                    model.resize(at, 0);
                } else {
                    pages.write_at(&vec![fill; len], offset);
                    model.resize(model.len().max(at + len), 0);
                    model[at..at + len].fill(fill);
                }
                if i == ops.len() / 2 {
                    copy = Some((pages.clone(), model.clone()));
                }
            }
            prop_assert_eq!(pages.to_vec(), model);
            let (pages, model) = copy.unwrap();
            prop_assert_eq!(pages.to_vec(), model);
        }
    }

    #[test]
    fn a_read_ends_where_the_file_does() {
        let mut pages = Pages::default();
        pages.write_at(&[7; 5000], 0);
        let mut buf = [0; 10];
        assert_eq!(pages.read_at(&mut buf, 4995), 5);
        assert_eq!(buf, [7, 7, 7, 7, 7, 0, 0, 0, 0, 0]);
        assert_eq!(pages.read_at(&mut buf, 5000), 0);
        assert_eq!(pages.read_at(&mut buf, u64::MAX), 0);
    }

    #[test]
    fn what_is_cut_off_reads_as_zeros_after_the_file_grows_again() {
        let mut pages = Pages::default();
        pages.write_at(&[9; 100], 0);
        pages.set_len(50);
        pages.set_len(100);
        assert_eq!(pages.to_vec(), [[9; 50], [0; 50]].concat());
    }
}
