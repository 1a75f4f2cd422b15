//! A store that does not exist yet. A shell on one runs what needs no store, refuses what reads, and
//! creates the store for the first command that writes.

use std::path::{Path, PathBuf};

use lsmkv::{Db, Options, commands, session_commands};

use crate::failure::Failure;
use crate::store::{WritableStore, explain_open, no_store};

use super::store_session::StoreSession;

/// What a line needs of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It runs without a store, or is an error in any case.
    Nothing,
    /// There must be a store.
    Existing,
    /// A store is created.
    Created,
}

/// Where the first write creates a store, and with which options.
#[derive(Debug)]
pub(super) struct AbsentStore {
    dir: PathBuf,
    options: Options,
    /// Whether the shell runs one command only. MULTI and WATCH then begin nothing.
    one_command: bool,
}

impl AbsentStore {
    pub(super) fn new(dir: &Path, options: Options, one_command: bool) -> Self {
        Self { dir: dir.to_owned(), options, one_command }
    }

    /// An empty store in memory. It runs the commands that need no store.
    pub(super) fn stand_in(&self) -> Result<Db, Failure> {
        let options = Options {
            databases: self.options.databases,
            ttl_cleaner_interval_s: 0,
            ..Options::default()
        };
        Ok(Db::open(":memory:", options)?)
    }

    /// Creates the store, and begins a session on one of its databases.
    pub(super) fn create(&self, database: u32) -> Result<StoreSession, Failure> {
        let store = WritableStore::open(&self.dir, self.options.clone());
        let store = store.map_err(|error| explain_open(error, &self.dir))?;
        Ok(StoreSession::on(store, database)?)
    }

    /// What a person reads who asks for data.
    pub(super) fn message(&self) -> String {
        if self.one_command {
            return no_store(&self.dir);
        }
        let dir = self.dir.display();
        format!("{dir}: there is no store; the first write creates it, e.g. SET key value")
    }

    /// What a command given as words needs.
    pub(super) fn need(&self, words: &[Vec<u8>]) -> Need {
        let Some(name) = words.first() else { return Need::Nothing };
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        if let Some(info) = session_commands().find(|info| info.name == name) {
            return match info.name {
                "MULTI" | "WATCH" if !self.one_command => Need::Created,
                "WATCH" => Need::Existing,
                _ => Need::Nothing,
            };
        }
        let Some(info) = commands().find(|info| info.name() == name) else { return Need::Nothing };
        let (arity, count) = (info.arity(), words.len());
        let fits =
            if arity < 0 { count >= arity.unsigned_abs() } else { count == arity.unsigned_abs() };
        match (fits, info.writes()) {
            (false, _) => Need::Nothing,
            (true, false) => Need::Existing,
            (true, true) => Need::Created,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_can_write_creates() {
        let absent = |one| AbsentStore::new(Path::new("d"), Options::default(), one);
        let need = |one, line: &str| {
            let words: Vec<Vec<u8>> =
                line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            absent(one).need(&words)
        };
        for line in ["SET k v", "del k", "LPUSH l 1", "FLUSHALL"] {
            assert_eq!((need(true, line), need(false, line)), (Need::Created, Need::Created));
        }
        for line in ["GET k", "dbsize", "SCAN 0", "HGETALL h"] {
            assert_eq!((need(true, line), need(false, line)), (Need::Existing, Need::Existing));
        }
        for line in ["PING", "SELECT 1", "SET k", "nothing", "EXEC"] {
            assert_eq!((need(true, line), need(false, line)), (Need::Nothing, Need::Nothing));
        }
        assert_eq!(
            (need(true, "WATCH k"), need(false, "WATCH k")),
            (Need::Existing, Need::Created)
        );
        assert_eq!((need(true, "MULTI"), need(false, "MULTI")), (Need::Nothing, Need::Created));
    }
}
