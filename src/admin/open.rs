//! Opening a store.

use std::path::Path;
use std::sync::Arc;

use crate::admin::beside;
use crate::engine::{Engine, EngineConfig, FileSystem, MemFs, RealFs};
use crate::error::{Error, ErrorKind, Result};
use crate::io::clock::{Clock, RealClock};
use crate::keyspace::cleaner_state::CleanerState;
use crate::keyspace::limits::Limits;
use crate::keyspace::packing::PackingLimits;
use crate::keyspace::read_clock::ReadClock;
use crate::keyspace::scan_cursors::ScanCursors;
use crate::keyspace::script_limits::ScriptLimits;
use crate::keyspace::spaces::Spaces;
use crate::keyspace::string_layout::StringLayout;
use crate::options::Options;
use crate::reclaim::cleaner;
use crate::reclaim::filters::Reclaim;
use crate::txn::Db;
use crate::txn::store::{Store, StoreParts};

/// The log's reserve for a full disk is as large as a segment, but never larger than this.
const MOST_SPARE_BYTES: u64 = 1 << 20;

impl Db {
    /// Opens the store in directory `path`, or an empty one in memory for `:memory:`.
    ///
    /// With [`Options::read_only`], a store that another process or handle has open is read beside
    /// it, without its lock, as of this moment. [`Db::refresh`] then moves on.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        if options.shared {
            let text = "a Db belongs to this process: open a shared store as lsmkv::SharedStore";
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let clock = Arc::new(RealClock);
        if path.as_os_str() == ":memory:" {
            let fs = Arc::new(MemFs::untracked());
            return Self::open_on(fs, Path::new("/memory"), options, clock);
        }
        Self::open_on(Arc::new(RealFs), path, options, clock)
    }

    /// Opens the store in directory `path` to read it as of this moment, without a lock, whether or
    /// not another process has it open. [`Db::refresh`] moves on.
    ///
    /// [`Db::open`] with [`Options::read_only`] does the same if the store is open elsewhere. If it
    /// is not, it takes the lock, and a writer is refused until it is closed.
    pub fn open_beside(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
        let clock: Arc<dyn Clock> = Arc::new(RealClock);
        open_without_lock(&fs, path.as_ref(), options, &clock)
    }

    /// Opens the store in directory `dir` of any file system, with any clock.
    pub fn open_on(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        if !options.read_only {
            return open_once(fs, dir, options, clock);
        }
        match open_once(Arc::clone(&fs), dir, options.clone(), Arc::clone(&clock)) {
            Err(error) if error.kind() == ErrorKind::Busy => {
                open_without_lock(&fs, dir, &options, &clock)
            }
            opened => opened,
        }
    }
}

fn open_without_lock(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: &Options,
    clock: &Arc<dyn Clock>,
) -> Result<Db> {
    beside::opened(fs, options, |fs, options| open_once(fs, dir, options, Arc::clone(clock)))
}

/// Opens a store, and takes its lock if `fs` has locks.
fn open_once(
    fs: Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<Db> {
    let events = options.notify_keyspace_events.clone();
    let store = Arc::new(open_store(fs, dir, options, clock)?);
    cleaner::start(&store)?;
    let db = Db::new(store);
    db.set_keyspace_events(&events)?;
    Ok(db)
}

fn open_store(
    fs: Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<Store> {
    options.validate()?;
    let limits = Limits { key: options.max_key_bytes, value: options.max_value_bytes };
    let (sync, databases) = (options.sync, options.databases);
    let txn_max_bytes = usize::try_from(options.txn_max_bytes).unwrap_or(usize::MAX);
    let spare_bytes = usize::try_from(options.log_segment_bytes.min(MOST_SPARE_BYTES) / 4);
    let spare_bytes = spare_bytes.unwrap_or(0);
    let scripts = ScriptLimits::new(&options);
    let packing = PackingLimits::new(&options, spare_bytes);
    let strings = StringLayout::new(&options);
    let clock = Arc::new(ReadClock::new(clock));
    let reclaim = Arc::new(Reclaim::new(Arc::clone(&clock)));
    let cleaner = CleanerState::new(&options);
    let trees = reclaim.trees();
    let engine = Engine::open(fs, dir, EngineConfig { options: limits.widen(options), trees })?;
    let spaces = Arc::new(Spaces::load(&engine.reader()?, databases)?);
    reclaim.follow(&spaces);
    let cursors = ScanCursors::load(&engine)?;
    let removed = Arc::clone(reclaim.removed());
    Ok(Store::new(StoreParts {
        engine,
        clock,
        spaces,
        removed,
        cleaner,
        limits,
        packing,
        strings,
        cursors,
        sync,
        txn_max_bytes,
        scripts,
        spare_bytes,
    }))
}
