//! The content of a file: what reads see, what is durable, and the changes between them, in order.
//!
//! Invariant: `durable` with all changes of `unsynced` applied is `current`. The cost of a read or
//! write depends on its size, and that of a sync on the size of the unsynced changes.

use bytes::Bytes;

use super::pages::Pages;

/// One change that has not been synced.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Bytes },
    Length(u64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    current: Pages,
    durable: Pages,
    unsynced: Vec<Change>,
}

impl Content {
    pub(super) fn current(&self) -> &Pages {
        &self.current
    }

    pub(super) fn durable(&self) -> &Pages {
        &self.durable
    }

    pub(super) fn unsynced(&self) -> &[Change] {
        &self.unsynced
    }

    /// Content that is durable as a whole.
    pub(super) fn settled(pages: Pages) -> Self {
        Self { durable: pages.clone(), current: pages, unsynced: Vec::new() }
    }

    pub(super) fn write_at(&mut self, buf: &[u8], offset: u64, tracked: bool) {
        self.current.write_at(buf, offset);
        if tracked {
            self.unsynced.push(Change::Write { offset, bytes: Bytes::copy_from_slice(buf) });
        }
    }

    pub(super) fn set_len(&mut self, len: u64, tracked: bool) {
        self.current.set_len(len);
        if tracked {
            self.unsynced.push(Change::Length(len));
        }
    }

    /// Zeros the first `len` bytes, current and durable.
    pub(super) fn discard_front(&mut self, len: u64) {
        self.current.discard_front(len);
        self.durable.discard_front(len.min(self.durable.len()));
        // Bytes written to the front before would come back with the next sync.
        self.sync();
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            let range = match change {
                Change::Write { offset, bytes } => offset..offset + bytes.len() as u64,
                // A truncation changes everything after it, including what was written later.
                Change::Length(len) => len..u64::MAX,
            };
            self.durable.share(&self.current, range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::splitmix::SplitMix64;

    #[test]
    fn after_a_sync_the_durable_bytes_are_the_current_ones() {
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let mut content = Content::default();
            for _ in 0..30 {
                let before = content.durable().to_vec();
                let offset = random.below(20_000);
                match random.below(4) {
                    0 => content.set_len(offset, true),
                    1 => content.sync(),
                    _ => {
                        let len = usize::try_from(random.below(6_000)).unwrap();
                        let fill = u8::try_from(random.below(256)).unwrap();
                        content.write_at(&vec![fill; len], offset, true);
                    }
                }
                if content.unsynced().is_empty() {
                    assert_eq!(content.durable().to_vec(), content.current().to_vec());
                } else {
                    assert_eq!(content.durable().to_vec(), before, "only a sync changes it");
                }
            }
        }
    }
}
