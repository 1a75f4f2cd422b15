//! Makes a new store from what can be read of a damaged one.
//!
//! The new store is sound for the engine: every byte of it has its checksum. A collection or a large
//! string may still be incomplete: rows may be lost while the record says how many there were. [`Db::check`]
//! finds such keys; a repair copies what is there into a fresh store.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::encoding::expiry::PROPERTY;
use crate::encoding::keys::{split_meta_key, split_row_key};
use crate::encoding::meta::{Body, Header, Type};
use crate::engine::{EngineConfig, Loss, Observer, Properties, RealFs, Salvaged, TreeId, salvage};
use crate::error::Result;
use crate::io::clock::RealClock;
use crate::keyspace::limits::Limits;
use crate::keyspace::read_clock::ReadClock;
use crate::keyspace::trees::{DATA, META};
use crate::options::Options;
use crate::reclaim::filters::Reclaim;
use crate::txn::Db;
use crate::types::StringValue;

struct Watcher<F> {
    progress: F,
    /// The versions of sorted sets.
    scored: HashSet<u64>,
}

impl<F: FnMut(u64, u64) -> Result<()>> Observer for Watcher<F> {
    /// Takes tables of the score tree for tables of the data tree: the rows of a set look the same.
    fn tree_of(&self, properties: &Properties) -> TreeId {
        if properties.collected(PROPERTY).is_some() { META } else { DATA }
    }

    /// Tells the two apart: a version belongs to one key, and the members of a sorted set have a
    /// value, the score.
    fn belongs(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> bool {
        if tree == META {
            let header = Header::decode(value).ok().filter(|header| header.kind == Type::ZSet);
            let body = header.and_then(|header| Body::decode(header.kind, value).ok());
            self.scored.extend(body.and_then(|body| body.version()));
        }
        let is_score = || split_row_key(key).is_some_and(|row| self.scored.contains(&row.version));
        tree != DATA || !value.is_empty() || !is_score()
    }

    fn progress(&mut self, done: u64, total: u64) -> Result<()> {
        (self.progress)(done, total)
    }
}

impl Db {
    /// Makes a store in `out`, which must not exist, of everything that can be read in `dir`, and
    /// reports what could not. The damaged store is only read. Where the newest version of a key
    /// was lost, an older one may reappear. `progress` is told the bytes read so far and in all; if
    /// it fails, the work ends and nothing is left of `out`.
    ///
    /// Collections may have lost members; [`Db::check`] finds them.
    pub fn salvage(
        dir: impl AsRef<Path>,
        out: impl AsRef<Path>,
        options: Options,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Salvaged> {
        options.validate()?;
        let limits = Limits { key: options.max_key_bytes, value: options.max_value_bytes };
        let reclaim = Arc::new(Reclaim::new(Arc::new(ReadClock::new(Arc::new(RealClock)))));
        let config = EngineConfig { options: limits.widen(options), trees: reclaim.trees() };
        let fs: Arc<dyn crate::engine::FileSystem> = Arc::new(RealFs);
        let mut watcher = Watcher { progress, scored: HashSet::new() };
        salvage(&fs, dir.as_ref(), out.as_ref(), &config, &mut watcher)
    }
}

impl Db {
    /// The value of a string with zeros for the chunks that were lost, and the number of those;
    /// `None` if there is no such string. [`Db::get`] fails if a chunk was lost.
    pub fn salvaged_string(&self, key: &[u8]) -> Result<Option<(Bytes, u64)>> {
        self.read(|tx| match tx.string(key)? {
            Some(StringValue::Chunked(string)) => string.read_remains(tx).map(Some),
            Some(StringValue::Whole(value)) => Ok(Some((value, 0))),
            None => Ok(None),
        })
    }
}

impl Loss {
    /// The user keys between which something was lost, as far as they are known.
    pub fn user_keys(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let user_key = |key: &Option<Vec<u8>>| {
            let key = key.as_deref()?;
            match self.tree {
                Some(META) => split_meta_key(key).map(|(_, user_key)| user_key.to_vec()),
                _ => split_row_key(key).map(|row| row.user_key),
            }
        };
        (user_key(&self.between.0), user_key(&self.between.1))
    }
}
