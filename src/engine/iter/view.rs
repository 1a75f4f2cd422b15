//! Iterators over the memtables and tables of a view.

use std::sync::Arc;

use super::source::{LevelCursor, Source};
use super::tree_iter::{Iter, IterOptions};
use crate::engine::batch::TreeId;
use crate::engine::entry::Sequence;
use crate::engine::memtable::MemtableCursor;
use crate::engine::version::{LEVELS, TableFile};
use crate::engine::view::View;
use crate::error::Result;

impl View {
    /// An iterator over `tree` at `sequence`.
    pub(crate) fn iter(
        self: Arc<Self>,
        tree: TreeId,
        sequence: Sequence,
        options: IterOptions,
    ) -> Result<Iter> {
        self.iter_over(tree, sequence, options, true, &mut |_| Ok(true))
    }

    /// An iterator over part of `tree`: the memtables, if `memtables` is set, and the tables that
    /// `chosen` selects. An entry it shows may have a newer version in a part that was left out.
    pub(crate) fn iter_over(
        self: Arc<Self>,
        tree: TreeId,
        sequence: Sequence,
        options: IterOptions,
        memtables: bool,
        chosen: &mut dyn FnMut(&TableFile) -> Result<bool>,
    ) -> Result<Iter> {
        let mut sources = if memtables { self.memtable_sources(tree) } else { Vec::new() };
        sources.extend(self.table_sources(tree, &options, chosen)?);
        Ok(Iter::new(self, sources, sequence, options))
    }

    fn memtable_sources(&self, tree: TreeId) -> Vec<Source> {
        self.memtables(tree)
            .map(|memtable| Source::Memtable(MemtableCursor::new(Arc::clone(memtable))))
            .collect()
    }

    /// Cursors over the chosen tables of `tree` that may hold a key within the bounds.
    fn table_sources(
        &self,
        tree: TreeId,
        options: &IterOptions,
        chosen: &mut dyn FnMut(&TableFile) -> Result<bool>,
    ) -> Result<Vec<Source>> {
        let levels = self.levels(tree)?;
        let (lower, upper) = (options.lower.as_deref(), options.upper.as_deref());
        let within = |file: &&Arc<TableFile>| file.meta().bounds.reach_into(lower, upper);
        let mut sources = Vec::new();
        for file in levels.level(0).iter().filter(within) {
            if chosen(file)? {
                sources.push(Source::Table(file.table()?.cursor(options.cache_fill)));
            }
        }
        for level in 1..LEVELS {
            let mut files = Vec::new();
            for file in levels.level(level).iter().filter(within) {
                if chosen(file)? {
                    files.push(Arc::clone(file));
                }
            }
            if !files.is_empty() {
                sources.push(Source::Level(LevelCursor::new(files, options.cache_fill)));
            }
        }
        Ok(sources)
    }
}
