//! A store that is read beside its writer moves on to what the writer has committed by now.
//!
//! Readers take the view first and the sequence number then (`view`). Here the sequence number is
//! published first. So a reader has the old view with either number, and reads the old commits of
//! old memtables or, where the memtables stayed the same, all of either number; or it has the new
//! view with the new number. The new view with the old number would miss what the writer's
//! compactions have dropped: they know nothing of readers here. For the same reason snapshots keep
//! their view.

use std::sync::Arc;

use crate::engine::entry::Sequence;
use crate::engine::handle::Engine;
use crate::engine::log_tail::LogTail;
use crate::engine::reader::Reader;
use crate::engine::view::View;
use crate::error::Result;
use crate::sync::MutexGuard;

impl Engine {
    /// Whether the store was opened beside a writer, so that [`Engine::refresh`] can move it on.
    pub fn is_beside_writer(&self) -> bool {
        self.core.fs.is_beside_writer()
    }

    /// Reads what the writer has committed by now. Nobody sees it before it is published. `None` if
    /// there is nothing new, or if the store holds its lock and nobody else writes to it.
    ///
    /// The writer goes on meanwhile. An error of the kinds `Corrupt` or `Io` may come from that: the
    /// caller tries again.
    pub fn refresh(&self) -> Result<Option<Refresh<'_>>> {
        self.core.check_open()?;
        let mut guard = self.core.tail.lock();
        let Some(tail) = &mut *guard else { return Ok(None) };
        let view = self.core.read_anew(tail)?;
        let sequence = tail.last_sequence;
        let known = Arc::ptr_eq(&view, &self.core.view.load_full());
        if known && sequence == self.core.sequences.visible() {
            return Ok(None);
        }
        Ok(Some(Refresh { engine: self, view, sequence, _one_at_a_time: guard }))
    }
}

/// What a writer has committed by now, not yet seen by readers.
#[derive(Debug)]
pub struct Refresh<'e> {
    engine: &'e Engine,
    view: Arc<View>,
    sequence: Sequence,
    _one_at_a_time: MutexGuard<'e, Option<LogTail>>,
}

impl Refresh<'_> {
    /// A reader of the new state.
    pub fn reader(&self) -> Reader {
        Reader::at(Arc::clone(&self.view), self.sequence)
    }

    /// Makes the new state visible to everybody who reads from now on.
    pub fn publish(self) {
        let core = &self.engine.core;
        let old = core.view.load_full();
        if !Arc::ptr_eq(&old.active, &self.view.active) {
            old.active.end_at(core.sequences.visible());
        }
        core.committer.note_every_tree(self.sequence);
        core.sequences.move_to(self.sequence);
        if !Arc::ptr_eq(&old, &self.view) {
            core.view.change(|_| View::clone(&self.view));
        }
    }
}
