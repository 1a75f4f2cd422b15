//! Readers whose users decide how long they hold them.
//!
//! A memtable that is in tables goes when its last reader goes, and an iterator may be held for hours.
//! While such memtables take more than one full set does, a reader that is to be held has the memtables
//! flushed first, and then holds tables alone. So iterators that are opened beside writes keep a few
//! memtables in memory, however many they are.

use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::handle::Engine;
use crate::engine::reader::{Reader, Snapshot};
use crate::engine::view::View;
use crate::engine::write_stall::fullest_level0;
use crate::error::Result;

impl Core {
    /// Whether a lasting reader should hold tables alone: readers hold more memory than a full set of
    /// memtables beside those of the view, and a flush now would not end in the stop of writers.
    fn should_flush_for_readers(&self) -> bool {
        if self.held.bytes() <= self.limits.write_buffer || self.space.is_full() {
            return false;
        }
        let view = self.view.load();
        view.immutable.len() < self.limits.immutable_sets
            && fullest_level0(&view) < self.limits.level0_slow
    }
}

impl Engine {
    /// A reader at the newest commit whose user decides how long he holds it.
    pub fn lasting_reader(&self) -> Result<Reader> {
        match self.core.should_flush_for_readers() {
            true => self.snapshot()?.lasting_reader(),
            false => self.reader(),
        }
    }
}

impl Snapshot {
    /// A reader of the snapshot whose user decides how long he holds it. It outlives the snapshot.
    pub fn lasting_reader(&self) -> Result<Reader> {
        if self.core.should_flush_for_readers() {
            // Without space, or beside a writer, the reader holds the memtables.
            let _ = self.core.flush_memtables();
        }
        let reader = self.reader()?;
        let view = Arc::new(reader.view.as_of(self.sequence()));
        Ok(Reader::at(view, self.sequence()))
    }
}

impl View {
    /// This view for readers at `sequence`, without the memtables that hold later commits only.
    fn as_of(&self, sequence: Sequence) -> Self {
        let mut sets = self.memtable_sets().filter(|set| set.begins_after < sequence).cloned();
        let active = sets.next();
        let active =
            active.unwrap_or_else(|| Arc::new(self.active.successor(0, self.active.log_start)));
        let immutable = sets.collect();
        Self { active, immutable, version: self.version.clone(), gets: Arc::clone(&self.gets) }
    }
}
