//! [`Db`]: an open store. The only file of this layer that talks to the engine.
//!
//! A write holds the stripe of its key while it reads what it depends on and until its batch is
//! visible, and waits for durability only after that: waiting with the stripe held would cost a
//! device flush for every write of a hot key. So a write may be seen before it is durable.
//! Reads take no lock. Any number of threads use one `Db`.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::MutexGuard;

use crate::encoding::keys::{MetaKey, SPACE_BYTES, Space, meta_key};
use crate::encoding::meta::{HEADER_BYTES, Header, Malformed};
use crate::engine::{
    Batch, Commit, Engine, EngineConfig, FileSystem, MemFs, RealFs, TreeConfig, TreeId,
    WriteOptions, hash_key,
};
use crate::error::{Error, ErrorKind, Result};
use crate::io::clock::{Clock, RealClock};
use crate::options::{Options, SyncMode};
use crate::types::stripes::Stripes;

/// The tree of meta records: one for each user key.
const META: TreeId = TreeId(0);

/// An open store.
///
/// ```
/// use lsmkv::{Db, Options};
///
/// let db = Db::open(":memory:", Options::default())?;
/// db.set(b"greeting", b"hello")?;
/// assert_eq!(db.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// assert!(db.del(b"greeting")?);
/// assert_eq!(db.get(b"greeting")?, None);
/// db.close()?;
/// # Ok::<(), lsmkv::Error>(())
/// ```
pub struct Db {
    engine: Engine,
    clock: Arc<dyn Clock>,
    stripes: Stripes,
    limits: Limits,
    sync: SyncMode,
    space: Space,
}

/// The longest key and value a store accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key.
    pub key: u64,
    /// Bytes of a value.
    pub value: u64,
}

/// A record of a key that exists: its header, and all its bytes.
pub(super) struct Record {
    pub(super) header: Header,
    pub(super) bytes: Bytes,
}

/// What a write does to the record of its key.
pub(super) enum Change {
    /// It stays as it is: nothing is written.
    Keep,
    /// It becomes this one.
    Put(Vec<u8>),
    /// The key ceases to exist.
    Delete,
}

impl Db {
    /// Opens the store in directory `path`, or an empty one in memory for `:memory:`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let clock = Arc::new(RealClock);
        if path.as_os_str() == ":memory:" {
            return Self::open_on(
                Arc::new(MemFs::untracked()),
                Path::new("/memory"),
                options,
                clock,
            );
        }
        Self::open_on(Arc::new(RealFs), path, options, clock)
    }

    /// Opens the store in directory `dir` of any file system, with any clock.
    pub fn open_on(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        mut options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        options.validate()?;
        let limits = Limits { key: options.max_key_bytes, value: options.max_value_bytes };
        let sync = options.sync;
        // The user's limits are checked here; the engine sees keys and values in our wrapping.
        options.max_key_bytes += SPACE_BYTES as u64;
        options.max_value_bytes += HEADER_BYTES as u64;
        let config = EngineConfig { options, trees: vec![TreeConfig::named("meta")] };
        let engine = Engine::open(fs, dir, config)?;
        let space = Space::of_database(0);
        Ok(Self { engine, clock, stripes: Stripes::new(), limits, sync, space })
    }

    /// Stops background work, flushes, and releases the directory. The error is that of the last
    /// flush; the store is closed either way.
    pub fn close(self) -> Result<()> {
        self.engine.close()
    }

    /// Makes every earlier write durable, whatever the sync mode.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// Writes the memtables to tables.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Flushes and merges everything, and returns when the old files are gone.
    pub fn compact(&self) -> Result<()> {
        self.engine.compact()
    }

    /// Takes up writing again after [`ErrorKind::Full`], once there is space.
    pub fn resume(&self) -> Result<()> {
        self.engine.resume()
    }

    /// Turns writes off until the store is opened again; reads go on.
    pub fn degrade(&self, cause: &Error) {
        self.engine.degrade(cause);
    }

    /// In a forked child: closes the descriptor of the directory lock, so that the child does
    /// not keep the store locked after its parent has gone. Safe in a `pthread_atfork` handler.
    pub fn abandon_in_child(&self) {
        self.engine.abandon_lock();
    }

    /// The longest key and value accepted.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The record of `key`, unless it does not exist or has expired.
    pub(super) fn record(&self, key: &[u8]) -> Result<Option<Record>> {
        self.limits.check_key(key)?;
        self.record_at(key, &meta_key(self.space, key))
    }

    fn record_at(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
        let Some(bytes) = self.engine.get(META, meta)? else {
            return Ok(None);
        };
        let header = Header::decode(&bytes).map_err(|why| malformed(key, why))?;
        // Expiry before anything else: an expired key of another type must not be WRONGTYPE.
        if header.expired(self.clock.now_ms()) {
            return Ok(None);
        }
        Ok(Some(Record { header, bytes }))
    }

    /// Changes the record of `key` depending on what is there: `decide` sees the present record.
    pub(super) fn update<T>(
        &self,
        key: &[u8],
        decide: impl FnOnce(Option<Record>) -> Result<(T, Change)>,
    ) -> Result<T> {
        self.limits.check_key(key)?;
        let meta = meta_key(self.space, key);
        let stripe = self.stripes.lock(hash_key(&meta));
        let (answer, change) = decide(self.record_at(key, &meta)?)?;
        self.apply(stripe, &meta, &change)?;
        Ok(answer)
    }

    /// Gives `key` a record whatever is there: reads nothing.
    pub(super) fn overwrite(&self, key: &[u8], record: Vec<u8>) -> Result<()> {
        self.limits.check_key(key)?;
        let meta = meta_key(self.space, key);
        let stripe = self.stripes.lock(hash_key(&meta));
        self.apply(stripe, &meta, &Change::Put(record))
    }

    /// Makes the change visible, lets the next writer of the key in, and then waits.
    fn apply(&self, stripe: MutexGuard<'_, ()>, meta: &MetaKey, change: &Change) -> Result<()> {
        let mut batch = Batch::new();
        match change {
            Change::Keep => return Ok(()),
            Change::Put(record) => batch.put(META, meta, record),
            Change::Delete => batch.delete(META, meta),
        }
        let frees_space = matches!(change, Change::Delete);
        let commit = self.engine.commit(&mut batch, WriteOptions { sync: None, frees_space })?;
        drop(stripe);
        self.settle(commit)
    }

    /// Waits until a visible write is as durable as the sync mode promises.
    fn settle(&self, commit: Commit) -> Result<()> {
        match self.sync {
            SyncMode::Always => self.engine.wait_durable(commit, None).map(|_| ()),
            SyncMode::Interval | SyncMode::Off => Ok(()),
        }
    }
}

impl Limits {
    /// An error for a key that is too long.
    pub fn check_key(&self, key: &[u8]) -> Result<()> {
        self.check_key_len(key.len())
    }

    /// An error for a value that is too long.
    pub fn check_value(&self, value: &[u8]) -> Result<()> {
        self.check_value_len(value.len())
    }

    /// [`Limits::check_key`] before there is a slice.
    pub fn check_key_len(&self, len: usize) -> Result<()> {
        check_len("key", len, "max_key_bytes", self.key)
    }

    /// [`Limits::check_value`] before there is a slice.
    pub fn check_value_len(&self, len: usize) -> Result<()> {
        check_len("value", len, "max_value_bytes", self.value)
    }
}

#[inline]
fn check_len(what: &str, len: usize, option: &str, limit: u64) -> Result<()> {
    if len as u64 <= limit {
        return Ok(());
    }
    let message = format!("the {what} has {len} bytes, the store accepts {limit}: see {option}");
    Err(Error::new(ErrorKind::TooLarge, message))
}

fn malformed(key: &[u8], why: Malformed) -> Error {
    let shown = String::from_utf8_lossy(key.get(..64).unwrap_or(key));
    let kind = match why {
        Malformed::Encoding(_) => ErrorKind::Incompatible,
        Malformed::Short(_) | Malformed::Flags(_) => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("the record of key '{}' cannot be read: {why}", shown.escape_debug()))
}
