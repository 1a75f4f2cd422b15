//! The state that all handles of one open store share.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::encoding::keys::Space;
use crate::engine::{Engine, Reader};
use crate::error::Result;
use crate::io::splitmix::SplitMix64;
use crate::keyspace::cleaner_state::CleanerState;
use crate::keyspace::key_counts::KeyCounts;
use crate::keyspace::limits::Limits;
use crate::keyspace::packing::PackingLimits;
use crate::keyspace::read_clock::ReadClock;
use crate::keyspace::reclaimed::RemovedTotals;
use crate::keyspace::scan_cursors::ScanCursors;
use crate::keyspace::script_limits::ScriptLimits;
use crate::keyspace::spaces::Spaces;
use crate::keyspace::string_layout::StringLayout;
use crate::messages::Hub;
use crate::options::SyncMode;
use crate::txn::conflicts::Conflicts;
use crate::txn::dependents::Dependents;
use crate::txn::stripes::Stripes;

/// An open store: the engine, and the tables in memory that commands share.
pub(crate) struct Store {
    parts: StoreParts,
    stripes: Stripes,
    key_counts: KeyCounts,
    conflicts: Arc<Conflicts>,
    turns: AtomicU64,
    /// What the script engine keeps for this store.
    script_state: OnceLock<Arc<dyn Any + Send + Sync>>,
    hub: Hub,
    dependents: Dependents,
    /// Whether a refresh may change what is visible.
    follows_writer: bool,
    #[cfg(test)]
    spills: crate::keyspace::spills::Spills,
    /// Versions below it are taken for those of a store that did not count yet.
    #[cfg(test)]
    uncounted_below: AtomicU64,
}

/// The parts of a store that depend on its options and files.
pub(crate) struct StoreParts {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ReadClock>,
    pub(crate) spaces: Arc<Spaces>,
    pub(crate) removed: Arc<RemovedTotals>,
    pub(crate) cleaner: CleanerState,
    pub(crate) limits: Limits,
    pub(crate) packing: PackingLimits,
    pub(crate) strings: StringLayout,
    pub(crate) cursors: ScanCursors,
    pub(crate) sync: SyncMode,
    pub(crate) txn_max_bytes: usize,
    pub(crate) spare_bytes: usize,
    pub(crate) scripts: ScriptLimits,
}

impl Store {
    pub(crate) fn new(parts: StoreParts) -> Self {
        let stripes = Stripes::new(parts.scripts.busy_after);
        let follows_writer = parts.engine.is_beside_writer();
        Self {
            parts,
            stripes,
            key_counts: KeyCounts::default(),
            conflicts: Arc::default(),
            turns: AtomicU64::new(0),
            script_state: OnceLock::new(),
            hub: Hub::default(),
            dependents: Dependents::default(),
            follows_writer,
            #[cfg(test)]
            spills: Default::default(),
            #[cfg(test)]
            uncounted_below: AtomicU64::new(0),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.parts.engine
    }

    /// The space of a database and a reader that belong together.
    #[inline]
    pub(super) fn space_and_reader(&self, database: u32) -> Result<(Space, Reader)> {
        self.space_and(database, || self.engine().reader())
    }

    /// The space of a database, and a reader that belongs together with it, which `reader` makes.
    #[inline]
    pub(super) fn space_and(
        &self,
        database: u32,
        reader: impl Fn() -> Result<Reader>,
    ) -> Result<(Space, Reader)> {
        // A refresh may change any key of a space together with the mapping, which a command that
        // changes the mapping cannot.
        let _steady = self.follows_writer.then(|| self.spaces().steady());
        loop {
            let changes = self.spaces().changes();
            let pair = (self.spaces().of(database)?, reader()?);
            // The database was emptied or swapped in between: space and reader may not belong
            // together.
            if self.spaces().changes() == changes {
                return Ok(pair);
            }
        }
    }

    /// The first version of a collection whose rows are counted.
    #[cfg(not(test))]
    #[inline]
    pub(crate) fn counted_from(&self) -> u64 {
        self.engine().counted_from()
    }

    #[cfg(test)]
    pub(crate) fn counted_from(&self) -> u64 {
        self.engine().counted_from().max(self.uncounted_below.load(Ordering::Relaxed))
    }

    /// Treats collections with smaller versions as those of a store that did not count yet.
    #[cfg(test)]
    pub(crate) fn count_from(&self, version: u64) {
        self.uncounted_below.store(version, Ordering::Relaxed);
    }

    /// True for about one of `n` calls, in an order that no caller can be in step with.
    pub(crate) fn one_in(&self, n: u64) -> bool {
        SplitMix64::new(self.turns.fetch_add(1, Ordering::Relaxed)).one_in(n)
    }

    /// A number that differs from call to call.
    pub(crate) fn random_seed(&self) -> u64 {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        SplitMix64::new(turn ^ self.clock().now().rotate_left(32)).next_u64()
    }

    /// The most bytes that a command may write beyond what it was asked to: a quarter of the log's
    /// reserve for a full disk.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.parts.spare_bytes
    }

    pub(crate) fn limits(&self) -> Limits {
        self.parts.limits
    }

    /// How large a collection may be to be stored inside its record.
    pub(crate) fn packing(&self) -> PackingLimits {
        self.parts.packing
    }

    /// Which strings are kept in chunks.
    #[inline]
    pub(crate) fn strings(&self) -> StringLayout {
        self.parts.strings
    }

    /// The mapping of database numbers to spaces.
    pub(crate) fn spaces(&self) -> &Spaces {
        &self.parts.spaces
    }

    /// The positions of scans whose cursor is a number.
    pub(crate) fn cursors(&self) -> &ScanCursors {
        &self.parts.cursors
    }

    /// The number of keys of each database, as last counted.
    pub(crate) fn key_counts(&self) -> &KeyCounts {
        &self.key_counts
    }

    pub(crate) fn clock(&self) -> &Arc<ReadClock> {
        &self.parts.clock
    }

    /// The locks of keys.
    pub(super) fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    pub(crate) fn conflicts(&self) -> &Arc<Conflicts> {
        &self.conflicts
    }

    /// Channels, key events, and calls that wait for elements.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// What a close of the store ends first.
    pub(super) fn dependents(&self) -> &Dependents {
        &self.dependents
    }

    /// The sync mode of handles that set none.
    pub(super) fn sync_mode(&self) -> SyncMode {
        self.parts.sync
    }

    /// The most bytes of pending writes that a transaction may hold.
    pub(crate) fn txn_max_bytes(&self) -> usize {
        self.parts.txn_max_bytes
    }

    /// What a script may take.
    pub(crate) fn script_limits(&self) -> ScriptLimits {
        self.parts.scripts
    }

    /// What the script engine keeps for this store. The first call makes it.
    pub(crate) fn script_state<T: Any + Send + Sync + Default>(&self) -> Option<&T> {
        self.script_state.get_or_init(|| Arc::new(T::default())).downcast_ref()
    }

    /// What compaction filters have removed.
    pub(crate) fn removed(&self) -> &RemovedTotals {
        &self.parts.removed
    }

    pub(crate) fn cleaner(&self) -> &CleanerState {
        &self.parts.cleaner
    }

    #[cfg(test)]
    pub(crate) fn spills(&self) -> &crate::keyspace::spills::Spills {
        &self.spills
    }

    /// Ends what depends on the store, stops the cleaner, flushes, and releases the directory.
    pub(crate) fn close(&self) -> Result<()> {
        self.dependents.end();
        self.hub.close();
        self.parts.cleaner.request_stop();
        // Without them scans by number start again: no reason to fail.
        let _ = self.parts.cursors.save(&self.parts.engine);
        let result = self.parts.engine.close();
        self.parts.cleaner.stop();
        result
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.parts.cleaner.stop();
    }
}
