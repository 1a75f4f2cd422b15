//! Merges on a full disk wait for readers that hold what the merge has replaced.
//!
//! A merge in pieces takes a table of the reserve for each piece, and what the piece replaced fills the
//! reserve again. While a reader holds that, every further piece would only use up the reserve, and
//! deletes would be refused. So the merge waits a moment, for reads that end soon, and then fails; as long
//! as the reserve lacks a table, no other begins. What it has merged so far stays merged.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::engine::compaction::Plan;
use crate::engine::core::Core;
use crate::engine::files::FileNumber;
use crate::engine::held_inputs::is_held;
use crate::engine::reserve::ReserveRole;
use crate::engine::version::TableFile;
use crate::error::Result;
use crate::sync::Instant;

/// How long a merge in pieces waits for others to let go of what a piece has replaced.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Core {
    /// Whether a merge would go on at the cost of the reserve while readers hold what earlier ones have
    /// replaced.
    pub(crate) fn would_use_up_reserve(&self, plan: &Plan) -> bool {
        let uses_it = matches!(plan, Plan::Merge { .. }) && self.lacks_space_for(plan);
        uses_it && !self.space.reserve.has_all(ReserveRole::Table) && self.held_inputs.any()
    }

    /// Waits while the reserve is short of what others still hold of the inputs that a piece of a
    /// merge has replaced. Fails if that lasts and the reserve lacks a table.
    pub(crate) fn wait_for_inputs(
        &self,
        tree: usize,
        numbers: &[(usize, HashSet<FileNumber>)],
        before: Vec<Weak<TableFile>>,
    ) -> Result<()> {
        let mut replaced = self.replaced(tree, numbers, before);
        if replaced.is_empty() || self.space.reserve.is_complete() {
            return Ok(());
        }
        let since = Instant::now();
        while replaced.iter().any(is_held) && since.elapsed() < LONGEST_WAIT {
            self.stop_if_asked()?;
            crate::sync::thread::sleep(Duration::from_millis(1));
        }
        self.note_space();
        replaced.retain(is_held);
        if replaced.is_empty() || self.space.reserve.has_all(ReserveRole::Table) {
            return Ok(());
        }
        self.held_inputs.note(replaced);
        Err(self.space.full_error())
    }

    /// The files of `before` that are no longer part of the tree and that others hold.
    fn replaced(
        &self,
        tree: usize,
        numbers: &[(usize, HashSet<FileNumber>)],
        mut before: Vec<Weak<TableFile>>,
    ) -> Vec<Weak<TableFile>> {
        let present = self.present_files(tree, numbers);
        let is_present = |file: &Weak<TableFile>| {
            let mut files = present.iter().flat_map(|(_, files)| files);
            files.any(|present| std::ptr::eq(Arc::as_ptr(present), file.as_ptr()))
        };
        before.retain(|file| !is_present(file));
        drop(present);
        before.retain(is_held);
        before
    }
}
