//! Opens a store.
//!
//! 1. take the directory lock;
//! 2. read CURRENT and the manifest it names: they tell which tables there are and where the log
//!    begins;
//! 3. replay the log into memtables, and into tables once these grow too large;
//! 4. make the replayed log durable, write a new manifest that records where the old segments end,
//!    and point CURRENT at it;
//! 5. remove obsolete files and begin a new log segment.
//!
//! An open that is refused leaves the directory as it was: what step 1 creates, it creates before
//! the first write and removes if the open fails. A read-only open performs only steps 1 to 3, and
//! writes nothing. A crash at any point leaves a store that opens
//! again.
//!
//! Beside a writer, an open takes no lock. It keeps every table open before it reads the manifest, so
//! that what the manifest names stays readable. The writer goes on meanwhile, so such an open may
//! find files that do not fit together; its caller tries again (`refresh` has more).
//!
//! A store opens even on a full disk, so that data can be deleted: its reserve is large enough for
//! tables of the replay, a new manifest and a log segment.

mod directory;
mod kept_files;
mod manifest_state;
mod new_manifest;
mod refresh;
mod replay;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::activity::Activity;
use crate::engine::background;
use crate::engine::background_work::BackgroundWork;
use crate::engine::batch::MAX_TREES;
use crate::engine::committer::Committer;
use crate::engine::compaction::rate::RateLimit;
use crate::engine::config::{EngineConfig, Limits};
use crate::engine::core::{Core, Tree};
use crate::engine::entry::Sequence;
use crate::engine::files::{FileKind, FileNumber, FileNumbers};
use crate::engine::hash::HashSeed;
use crate::engine::held_inputs::HeldInputs;
use crate::engine::memtable::HeldMemtables;
use crate::engine::memtable::MemtableSet;
use crate::engine::open_files::OpenFiles;
use crate::engine::reserve::Reserve;
use crate::engine::snapshot::Sequences;
use crate::engine::space::DiskSpace;
use crate::engine::sstable::{BlockCache, TAIL_BYTES, TableCounters};
use crate::engine::version::TableOpener;
use crate::engine::version::read_current;
use crate::engine::view::{PublishedView, View};
use crate::engine::wal::{Log, SyncFile, SyncState};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;
use crate::options::Options;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Mutex, RwLock};

pub(crate) use directory::lock_to_read;
use directory::{Claim, sync_parent};
use manifest_state::ManifestState;

/// The most tables that are opened with the store: a fraction of a millisecond.
const OPENED_TABLES: usize = 16;

/// A store that is being opened. Nothing has been written yet.
struct Opening {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    config: EngineConfig,
    limits: Limits,
    cache: Arc<BlockCache>,
    trees: Vec<Tree>,
    names: Vec<PathBuf>,
    claim: Claim,
}

/// Opens or creates the store in `dir`.
pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, config: EngineConfig) -> Result<Arc<Core>> {
    let opening = Opening::begin(fs, dir, config)?;
    let _kept = opening.keep_files()?;
    let current = read_current(&*opening.fs, &opening.dir)?;
    let options = &opening.config.options;
    let (state, sync_state) = match current {
        Some(_) if options.error_if_exists => {
            return Err(invalid(dir, "a store exists already and error_if_exists is set"));
        }
        Some(number) => {
            let sync_state = SyncFile::read(&*opening.fs, &opening.dir)?;
            (opening.manifest_reader().read(number, sync_state)?, sync_state)
        }
        None => {
            // Checked first: a store that has lost its CURRENT is damaged, not absent.
            let nothing = opening.empty_state()?;
            if !may_create(options) {
                return Err(no_store(dir, options));
            }
            sync_parent(&*opening.fs, &opening.dir)?;
            (nothing, SyncState::default())
        }
    };
    let (claim, core) = opening.replay(&state, sync_state, current)?;
    if !core.options.read_only {
        background::start(&core)?;
    }
    *core.lock.lock() = claim.keep();
    open_small_tables(&core);
    Ok(core)
}

/// Opens some of the small tables and reads their blocks: opening the file would be most of what the
/// first command that needs it costs. Failures are left to that command.
fn open_small_tables(core: &Core) {
    let view = core.view.load();
    let small = view.version.files().filter(|file| file.meta().size <= TAIL_BYTES as u64);
    small
        .take(OPENED_TABLES)
        .for_each(|file| drop(file.table().and_then(|table| table.fill_cache())));
}

fn may_create(options: &Options) -> bool {
    options.create_if_missing && !options.read_only
}

fn no_store(dir: &Path, options: &Options) -> Error {
    let why = match options.read_only {
        true => "there is no store, and read_only creates none",
        false => "there is no store and create_if_missing is off",
    };
    invalid(dir, why)
}

fn invalid(dir: &Path, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{}: {what}", dir.display()))
}

impl Opening {
    fn begin(fs: Arc<dyn FileSystem>, dir: &Path, config: EngineConfig) -> Result<Self> {
        let options = &config.options;
        if config.trees.is_empty() || config.trees.len() > MAX_TREES {
            return Err(Error::new(ErrorKind::Misuse, "a store has 1 to 64 trees"));
        }
        let may_create = may_create(options);
        if !may_create && !fs.exists(dir).map_err(|e| Error::io("look for", dir, &e))? {
            return Err(no_store(dir, options));
        }
        let claim = Claim::take(&fs, dir, may_create)?;
        let dir = claim.dir();
        let limits = Limits::of(options);
        let cache = Arc::new(BlockCache::new(limits.table_memory));
        let files = Arc::new(OpenFiles::new(Arc::clone(&fs), options.max_open_files as usize));
        let trees = config.trees.iter().map(|tree| {
            let counters = Arc::new(TableCounters::default());
            let opener = Arc::new(TableOpener {
                fs: Arc::clone(&fs),
                files: Arc::clone(&files),
                dir: dir.to_owned(),
                cache: Arc::clone(&cache),
                counters: Arc::clone(&counters),
            });
            Tree { config: tree.clone(), opener, counters }
        });
        let trees = trees.collect();
        let names = fs.list(dir).map_err(|e| Error::io("list", dir, &e))?;
        let dir = dir.to_owned();
        Ok(Self { fs, dir, limits, cache, trees, names, claim, config })
    }

    /// Performs steps 3 to 5.
    fn replay(
        mut self,
        state: &ManifestState,
        sync_state: SyncState,
        current: Option<FileNumber>,
    ) -> Result<(Claim, Arc<Core>)> {
        let next = state.next_file.max(self.number_after_all()?);
        let numbers = Arc::new(FileNumbers::starting_at(next));
        let mut core = self.core(state, numbers);
        let mut replayed = core.replay_log(state, sync_state, &mut self.claim)?;
        let last = replayed.last_sequence.max(state.last_sequence);
        core.sequences = Arc::new(Sequences::starting_after(last));
        // Set by the new manifest. A store that is only read counts nothing until then.
        let none_yet = if core.options.read_only { Sequence::MAX } else { last + 1 };
        core.counted_from = state.counted_from.unwrap_or(none_yet);
        if core.options.read_only {
            if core.fs.is_beside_writer() {
                core.begin_following(state, &replayed.recovered, last)?;
            }
            return Ok((self.claim, Arc::new(core)));
        }
        self.claim.begin_writing()?;
        core.remove(self.names.iter().filter(|name| is_temporary(name)));
        core.space.reserve.remove_unwanted(&self.names);
        core.empty_log_if_short(&mut replayed)?;
        if core.is_short_at_open() {
            core.remove_unneeded(&self.names, state, &replayed, current)?;
        }
        let written = core.write_new_manifest(state, &replayed);
        let env = written.inspect_err(|_| core.discard(&replayed.tables))?;
        core.remove_obsolete_files(&self.names);
        let refilled = core.space.reserve.refill();
        core.log = Some(Log::create(env, core.cuts())?);
        if let Err(error) = refilled.and_then(|()| core.space.reserve.refill()) {
            core.space.note_failure(&error);
        }
        core.note_space();
        Ok((self.claim, Arc::new(core)))
    }

    fn core(&mut self, state: &ManifestState, numbers: Arc<FileNumbers>) -> Core {
        let options = self.config.options.clone();
        // A store of format 1 has none yet.
        let hash_seed = state.hash_seed.unwrap_or_else(HashSeed::random);
        let segment_bytes = Reserve::segment_bytes_for(&options, self.fs.is_volatile());
        let reserve = Reserve::new(Arc::clone(&self.fs), &self.dir, &self.names, segment_bytes);
        let write_buffer = self.limits.write_buffer;
        let space = DiskSpace::new(Arc::clone(&self.fs), &self.dir, reserve, write_buffer);
        let (trees, start) = (self.trees.len(), state.log.start);
        let set = MemtableSet::new(write_buffer, trees, start, hash_seed);
        let view = View {
            active: Arc::new(set),
            immutable: Vec::new(),
            version: state.version.clone(),
            gets: Arc::default(),
        };
        Core {
            fs: Arc::clone(&self.fs),
            dir: self.dir.clone(),
            space: Arc::new(space),
            rate: RateLimit::new(options.compaction_rate_limit),
            options,
            limits: self.limits.clone(),
            hash_seed,
            counted_from: Sequence::MAX,
            trees: std::mem::take(&mut self.trees),
            numbers,
            health: Arc::default(),
            sequences: Arc::new(Sequences::starting_after(0)),
            cache: Arc::clone(&self.cache),
            activity: Activity::default(),
            log: None,
            manifest: Mutex::new(None),
            view: Arc::new(PublishedView::new(view)),
            held: HeldMemtables::default(),
            held_inputs: HeldInputs::default(),
            committer: Committer::default(),
            work: BackgroundWork::default(),
            closed: AtomicBool::new(false),
            copying: RwLock::new(()),
            lock: Mutex::default(),
            tail: Mutex::default(),
        }
    }
}

/// Whether a file was never completed. Nothing needs it, whatever the manifest says.
fn is_temporary(name: &Path) -> bool {
    FileKind::parse(name) == Some(FileKind::Temporary)
}
