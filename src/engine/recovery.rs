//! Opens a store: finds what is there, replays the log, and begins a new life of it.
//!
//! 1. take the directory lock;
//! 2. read CURRENT, the manifest it names, and so the set of tables and where the log begins;
//! 3. replay the log into memtables (into tables when they grow too large);
//! 4. make what was replayed durable, write a fresh manifest that says where old segments end,
//!    point CURRENT at it;
//! 5. remove what no one needs any more, begin a new log segment.
//!
//! On a full disk a store whose process died still opens, so that something can be deleted: what
//! it had in reserve is enough for a manifest, and the old one's space for the rest.
//!
//! A crash at any point leaves a store that opens again. Opened read-only, only 1 to 3 happen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use crate::engine::background::{self, Work};
use crate::engine::batch::TreeId;
use crate::engine::cache::BlockCache;
use crate::engine::compaction::rate::RateLimit;
use crate::engine::config::{EngineConfig, Limits};
use crate::engine::core::{Core, Tree};
use crate::engine::entry::Sequence;
use crate::engine::files::{FileKind, FileNumber, FileNumbers, current_path, lock_path};
use crate::engine::install::{Manifest, apply};
use crate::engine::open_files::OpenFiles;
use crate::engine::snapshot::Sequences;
use crate::engine::sstable::TableCounters;
use crate::engine::stats::Activity;
use crate::engine::tables::TableOpener;
use crate::engine::version::{
    Edit, FileMeta, LogState, ManifestWriter, TableFile, read_current, read_manifest,
};
use crate::engine::view::{MemtableSet, Version, View};
use crate::engine::wal::{
    Cut, Log, LogEnv, LogPosition, Recovered, SyncFile, SyncState, recover, seal,
};
use crate::engine::write::{Committer, apply_batch};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};

/// Numbers beyond this are not handed out in the life of a store: counting on must not overflow.
const MAX_FILE_NUMBER: FileNumber = FileNumber::MAX >> 1;

/// What the manifest says.
#[derive(Debug, Default)]
struct Stored {
    version: Version,
    log: LogState,
    next_file: FileNumber,
    last_sequence: Sequence,
}

/// A store being opened: read, but nothing written yet.
struct Opening {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    config: EngineConfig,
    limits: Limits,
    cache: Arc<BlockCache>,
    trees: Vec<Tree>,
    names: Vec<PathBuf>,
    lock: Option<Box<dyn LockGuard>>,
}

/// Opens or creates the store in `dir`.
pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, config: EngineConfig) -> Result<Arc<Core>> {
    let opening = Opening::begin(fs, dir, config)?;
    let current = read_current(&*opening.fs, &opening.dir)?;
    let options = &opening.config.options;
    let (stored, sync_state) = match current {
        Some(_) if options.error_if_exists => {
            return Err(invalid(dir, "a store exists already and error_if_exists is set"));
        }
        Some(number) => {
            let sync_state = SyncFile::read(&*opening.fs, &opening.dir)?;
            (opening.read_stored(number, sync_state)?, sync_state)
        }
        None => {
            // First, since a store that has lost its CURRENT is damaged, not absent.
            let nothing = opening.nothing_stored()?;
            if !options.create_if_missing || options.read_only {
                return Err(invalid(dir, "there is no store and create_if_missing is off"));
            }
            sync_parent(&*opening.fs, &opening.dir)?;
            (nothing, SyncState::default())
        }
    };
    let core = opening.replay(&stored, sync_state)?;
    if !core.options.read_only {
        background::start(&core)?;
    }
    Ok(core)
}

fn invalid(dir: &Path, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{}: {what}", dir.display()))
}

impl Opening {
    fn begin(fs: Arc<dyn FileSystem>, dir: &Path, config: EngineConfig) -> Result<Self> {
        let options = &config.options;
        if config.trees.is_empty() || config.trees.len() > 64 {
            return Err(Error::new(ErrorKind::Misuse, "a store has 1 to 64 trees"));
        }
        if !fs.exists(dir).map_err(|e| Error::io("look for", dir, &e))? {
            if !options.create_if_missing || options.read_only {
                return Err(invalid(dir, "there is no store and create_if_missing is off"));
            }
            create_dir(&*fs, dir)?;
        }
        let dir = &fs.resolve(dir).map_err(|e| Error::io("look for", dir, &e))?;
        let lock = take_lock(&*fs, dir)?;
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
        Ok(Self { fs, dir, limits, cache, trees, names, lock: Some(lock), config })
    }

    /// An empty directory, or one in which a creation did not get to its end.
    fn nothing_stored(&self) -> Result<Stored> {
        for name in &self.names {
            match FileKind::parse(name) {
                Some(FileKind::Table(_) | FileKind::Log(_)) => {
                    let path = current_path(&self.dir);
                    let found = format!("it is missing, but {} is there", name.display());
                    return Err(Error::corrupt(&path, 0, found));
                }
                Some(_) => {}
                None if name.as_os_str() == "lost+found" => {}
                None => {
                    let what = format!("{} is no file of a store", name.display());
                    let error = invalid(&self.dir, &what);
                    return Err(error.wrap(ErrorKind::Incompatible, "not a store"));
                }
            }
        }
        let trees = self.trees.iter().map(|_| Arc::default()).collect();
        Ok(Stored { version: Version { trees }, next_file: 1, ..Stored::default() })
    }

    fn read_stored(&self, number: FileNumber, sync_state: SyncState) -> Result<Stored> {
        let mut stored = Stored { version: Version::default(), ..Stored::default() };
        let path = crate::engine::files::manifest_path(&self.dir, number);
        read_manifest(&*self.fs, &self.dir, number, sync_state, |payload| {
            let broken = |what: &str| Error::corrupt(&path, 0, what);
            let edit = Edit::decode(payload).ok_or_else(|| broken("a record is no edit"))?;
            self.check_trees(&edit)?;
            self.apply_stored(&mut stored, &edit).ok_or_else(|| broken("an edit does not fit"))
        })?;
        if stored.version.trees.is_empty() {
            return Err(Error::corrupt(&path, 0, "it names no trees"));
        }
        self.check_present(&stored)?;
        Ok(stored)
    }

    fn apply_stored(&self, stored: &mut Stored, edit: &Edit) -> Option<()> {
        if !edit.trees.is_empty() {
            stored.version = Version { trees: edit.trees.iter().map(|_| Arc::default()).collect() };
        }
        stored.version = apply(&stored.version, edit, &|tree, meta| {
            Some(Arc::new(TableFile::new(meta, Arc::clone(&self.trees.get(tree)?.opener))))
        })?;
        stored.next_file = edit.next_file.unwrap_or(stored.next_file);
        stored.last_sequence = edit.last_sequence.unwrap_or(stored.last_sequence);
        if let Some(log) = &edit.log {
            stored.log = log.clone();
        }
        Some(())
    }

    /// The first edit of a manifest names the trees; those after it depend on them.
    fn check_trees(&self, edit: &Edit) -> Result<()> {
        let names = self.trees.iter().map(|tree| tree.config.name.as_bytes());
        if edit.trees.is_empty() || edit.trees.iter().map(Vec::as_slice).eq(names) {
            return Ok(());
        }
        let message = format!("{}: the store was made with other trees", self.dir.display());
        Err(Error::new(ErrorKind::Incompatible, message))
    }

    /// A table that has gone is noticed now, not when someone happens to read it.
    fn check_present(&self, stored: &Stored) -> Result<()> {
        let present: std::collections::HashSet<FileNumber> = self
            .names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Table(number)) => Some(number),
                _ => None,
            })
            .collect();
        let mut files = stored.version.trees.iter().flat_map(|levels| levels.files());
        match files.find(|file| !present.contains(&file.meta().number)) {
            Some(file) => Err(Error::corrupt(&file.path(), 0, "the table is missing")),
            None => Ok(()),
        }
    }

    /// A number above that of every file in the directory.
    fn number_after_all(&self) -> Result<FileNumber> {
        let mut next = 1;
        for name in &self.names {
            let number = match FileKind::parse(name) {
                Some(FileKind::Log(n) | FileKind::Table(n) | FileKind::Manifest(n)) => n,
                // Temporaries are named by number too, but for a few.
                Some(FileKind::Temporary) => stem_number(name).unwrap_or(0),
                _ => 0,
            };
            if number > MAX_FILE_NUMBER {
                let path = self.dir.join(name);
                return Err(Error::corrupt(&path, 0, "no file of a store has such a number"));
            }
            next = next.max(number + 1);
        }
        Ok(next)
    }

    /// Steps 3 to 5.
    fn replay(mut self, stored: &Stored, sync_state: SyncState) -> Result<Arc<Core>> {
        let next = stored.next_file.max(self.number_after_all()?);
        let numbers = Arc::new(FileNumbers::starting_at(next));
        let mut core = self.core(stored, numbers);
        let replayed = core.replay_log(stored, sync_state)?;
        let last = replayed.last_sequence.max(stored.last_sequence);
        core.sequences = Arc::new(Sequences::starting_after(last));
        if core.options.read_only {
            return Ok(Arc::new(core));
        }
        // Not before: the reserve of the last life is among them, and is for this life, not for
        // the tables of the replay.
        core.remove(self.names.iter().filter(|name| is_temporary(name)));
        let begun = core.begin_life(stored, &replayed);
        let env = begun.inspect_err(|_| core.discard(&replayed.tables))?;
        core.remove_leftovers(&self.names);
        core.log = Some(Log::create(env, core.cuts())?);
        Ok(Arc::new(core))
    }

    fn core(&mut self, stored: &Stored, numbers: Arc<FileNumbers>) -> Core {
        let options = self.config.options.clone();
        let scans = vec![false; self.trees.len()];
        let set = MemtableSet::new(self.limits.write_buffer, &scans, stored.log.start);
        let view =
            View { active: Arc::new(set), frozen: Vec::new(), version: stored.version.clone() };
        Core {
            fs: Arc::clone(&self.fs),
            dir: self.dir.clone(),
            rate: RateLimit::new(options.compaction_rate_limit),
            options,
            limits: self.limits.clone(),
            trees: std::mem::take(&mut self.trees),
            numbers,
            health: Arc::default(),
            sequences: Arc::new(Sequences::starting_after(0)),
            cache: Arc::clone(&self.cache),
            activity: Activity::default(),
            log: None,
            manifest: Mutex::new(None),
            view: ArcSwap::from_pointee(view),
            publish: Mutex::new(()),
            committer: Committer::default(),
            work: Work::default(),
            closed: AtomicBool::new(false),
            copying: RwLock::new(()),
            lock: Mutex::new(self.lock.take()),
        }
    }
}

/// What replaying the log brought.
struct Replayed {
    last_sequence: Sequence,
    recovered: Recovered,
    /// Tables written because the memtables grew too large; everything before `tables_through`
    /// is in them.
    tables: Vec<(TreeId, u8, FileMeta)>,
    tables_through: LogPosition,
}

impl Replayed {
    /// Where the next recovery begins. Not in a segment of which nothing counts: that one is
    /// removed, and must not be looked for.
    fn log_start(&self) -> LogPosition {
        let start = self.tables_through;
        let holds_nothing = |cut: &Cut| *cut == (start.segment, 0);
        if self.recovered.segments.iter().any(holds_nothing) {
            return LogPosition::new(start.segment + 1, 0);
        }
        start
    }
}

impl Core {
    fn replay_log(&self, stored: &Stored, sync_state: SyncState) -> Result<Replayed> {
        let tables = stored.version.trees.iter().flat_map(|levels| levels.files());
        let mut last = tables.map(|file| file.meta().max_sequence).max().unwrap_or(0);
        let mut written = Vec::new();
        let mut through = stored.log.start;
        let mut spills = !self.options.read_only;
        let on_record = |end: LogPosition, payload: &[u8]| {
            last = last.max(apply_batch(&self.view.load(), payload)?);
            let bytes = self.view.load().active.bytes();
            if spills && bytes > self.limits.write_buffer {
                match self.spill() {
                    Ok(tables) => written.extend(tables),
                    // What the log holds was in memory before, and can be again.
                    Err(error) if error.kind() == ErrorKind::Full => {
                        spills = false;
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                }
                through = end;
                self.replace_active(end);
            }
            Ok(())
        };
        let start = stored.log.start;
        let recovered =
            recover(&*self.fs, &self.dir, start, &stored.log.cuts, sync_state, on_record)
                .inspect_err(|_| self.discard(&written))?;
        Ok(Replayed { last_sequence: last, recovered, tables: written, tables_through: through })
    }

    /// Writes the active memtables as tables.
    fn spill(&self) -> Result<Vec<(TreeId, u8, FileMeta)>> {
        let view = self.view.load_full();
        let mut all = Vec::new();
        self.or_discard(&mut all, |all| {
            for (tree, memtable) in (0u8..).zip(&view.active.trees) {
                let files = self.write_memtable(tree as usize, memtable, &[])?;
                all.extend(files.into_iter().map(|file| (TreeId(tree), 0, file)));
            }
            Ok(())
        })?;
        Ok(all)
    }

    fn replace_active(&self, log_start: LogPosition) {
        self.change_view(|old| {
            let active =
                MemtableSet::new(self.limits.write_buffer, &old.active.scanned(), log_start);
            View { active: Arc::new(active), ..old.clone() }
        });
    }

    /// Step 4. Returns what the new log needs. Nothing fails once the manifest is in force.
    fn begin_life(&mut self, stored: &Stored, replayed: &Replayed) -> Result<LogEnv> {
        let recovered = &replayed.recovered;
        seal(&*self.fs, &self.dir, &recovered.segments, recovered.synced)?;
        let version = self.version_with(&stored.version, replayed)?;
        let start = replayed.log_start();
        let cuts = recovered.segments.iter().copied().filter(|cut| cut.0 >= start.segment);
        let log = LogState { start, cuts: cuts.collect() };
        let sync_file = Arc::new(SyncFile::open(&*self.fs, &self.dir)?);
        let number = self.numbers.allocate();
        let first = self.snapshot_edit(&version, log.clone()).encode();
        let mut writer = ManifestWriter::create(
            Arc::clone(&self.fs),
            &self.dir,
            number,
            &first,
            Arc::clone(&self.health),
            Arc::clone(&sync_file),
        )?;
        writer.make_current()?;
        let env = LogEnv {
            fs: Arc::clone(&self.fs),
            dir: self.dir.clone(),
            numbers: Arc::clone(&self.numbers),
            health: Arc::clone(&self.health),
            sync_file: Arc::clone(&sync_file),
            max_segment_bytes: self.options.log_segment_bytes,
        };
        let first = first.len() as u64;
        *self.manifest.get_mut() = Some(Manifest { writer, sync_file, log, appended: 0, first });
        self.change_view(|old| View { version, ..old.clone() });
        Ok(env)
    }

    /// Where segments of earlier lives end.
    fn cuts(&self) -> Vec<Cut> {
        self.manifest.lock().as_ref().map_or_else(Vec::new, |manifest| manifest.log.cuts.clone())
    }

    fn version_with(&self, version: &Version, replayed: &Replayed) -> Result<Version> {
        let edit = Edit { added: replayed.tables.clone(), ..Edit::default() };
        apply(version, &edit, &|tree, meta| {
            Some(Arc::new(TableFile::new(meta, Arc::clone(&self.trees.get(tree)?.opener))))
        })
        .ok_or_else(|| Error::new(ErrorKind::Misuse, "replayed tables do not fit"))
    }

    /// Of step 5: what an earlier life left behind. Failures are harmless; the next open tries again.
    fn remove_leftovers(&self, names: &[PathBuf]) {
        let view = self.view.load();
        let in_use: std::collections::HashSet<FileNumber> = view
            .version
            .trees
            .iter()
            .flat_map(|levels| levels.files())
            .map(|file| file.meta().number)
            .collect();
        let manifest = self.manifest.lock();
        let Some(manifest) = manifest.as_ref() else { return };
        let needed =
            |number: &FileNumber| manifest.log.cuts.iter().any(|cut| cut.0 == *number && cut.1 > 0);
        self.remove(names.iter().filter(|name| match FileKind::parse(name) {
            Some(FileKind::Table(number)) => !in_use.contains(&number),
            Some(FileKind::Manifest(number)) => number != manifest.writer.number(),
            Some(FileKind::Log(number)) => !needed(&number),
            _ => false,
        }));
    }

    fn remove<'a>(&self, names: impl Iterator<Item = &'a PathBuf>) {
        for name in names {
            let _ = self.fs.remove(&self.dir.join(name));
        }
    }

    /// Everything into tables, nothing left in the log; for `close`. The threads have stopped.
    pub(crate) fn finish(&self) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        self.health.check()?;
        if !self.view.load().active.is_empty() {
            self.freeze(log);
        }
        while self.flush_oldest()? {}
        let start = LogPosition { segment: self.numbers.allocate(), offset: 0 };
        let edit = Edit {
            last_sequence: Some(self.sequences.visible()),
            log: Some(LogState { start, cuts: Vec::new() }),
            ..Edit::default()
        };
        self.install(edit, |_| {})?;
        log.close();
        log.retire_all()
    }
}

fn stem_number(name: &Path) -> Option<FileNumber> {
    name.file_stem()?.to_str()?.parse().ok()
}

/// A file that was never finished: no one needs it, whatever the manifest says.
fn is_temporary(name: &Path) -> bool {
    FileKind::parse(name) == Some(FileKind::Temporary)
}

fn create_dir(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match fs.create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::io("create directory", dir, &e))
        }
        _ => Ok(()),
    }
}

/// The name of a directory is durable only once its parent is synced. Done for every store that
/// is being created, not only in a directory made just now: an earlier creation may have ended
/// between the two.
fn sync_parent(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let Some(parent) = dir.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match fs.sync_dir(parent) {
        // A directory that others made for us, in one that is closed to us.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map_err(|e| Error::io("sync directory", parent, &e)),
    }
}

fn take_lock(fs: &dyn FileSystem, dir: &Path) -> Result<Box<dyn LockGuard>> {
    let path = lock_path(dir);
    fs.lock(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message =
                format!("{}: the store is open in this or another process", dir.display());
            Error::new(ErrorKind::Busy, message)
        }
        _ => Error::io("lock", &path, &e),
    })
}
