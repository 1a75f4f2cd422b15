//! How far a copy has come, in a small file beside the store, so that it can go on later.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::{decode, encode};
use crate::failure::Failure;

/// A place behind which a source goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) database: u32,
    /// What it means is the source's affair: a key, a cursor. None: the beginning.
    pub(crate) place: Option<Vec<u8>>,
    /// The life of the server in which the place means something; empty if it always does.
    pub(crate) life: String,
    /// What a server that is written to calls the connection, in this life.
    pub(crate) connection: Option<i64>,
}

/// The file that keeps the state of one copy, from or to `peer`.
pub(crate) struct StateFile {
    path: PathBuf,
    peer: String,
}

impl StateFile {
    /// `<dir>.<what>`, or where the user wants it.
    pub(crate) fn new(dir: &Path, what: &str, peer: &str, chosen: Option<&Path>) -> Self {
        let path = chosen.map_or_else(
            || {
                let mut name = dir.components().as_path().as_os_str().to_owned();
                name.push(".");
                name.push(what);
                PathBuf::from(name)
            },
            Path::to_owned,
        );
        Self { path, peer: peer.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where an earlier copy with the same peer stopped.
    pub(crate) fn load(&self) -> Result<Option<State>, Failure> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failure(&error)),
        };
        let broken = || Failure::new(format!("{}: this is no saved state", self.path.display()));
        let value: Value = serde_json::from_str(&text).map_err(|_| broken())?;
        let field = |name: &str| value.get(name).ok_or_else(broken);
        let peer = field("peer")?.as_str().ok_or_else(broken)?;
        if peer != self.peer {
            return Err(Failure::new(format!(
                "{} is the state of a copy with {peer}: finish that one, or remove the file",
                self.path.display()
            )));
        }
        let database = field("database")?.as_u64().and_then(|number| u32::try_from(number).ok());
        let database = database.ok_or_else(broken)?;
        let place = match field("place")? {
            Value::Null => None,
            place => Some(decode(place).ok_or_else(broken)?.to_vec()),
        };
        let life = field("life")?.as_str().ok_or_else(broken)?.to_owned();
        let connection = value.get("connection").and_then(Value::as_i64);
        Ok(Some(State { database, place, life, connection }))
    }

    /// Replaces what was saved.
    pub(crate) fn save(&self, state: &State) -> Result<(), Failure> {
        let value = json!({
            "peer": self.peer,
            "database": state.database,
            "place": state.place.as_deref().map(encode),
            "life": state.life,
            "connection": state.connection,
        });
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(".tmp");
        std::fs::write(&temporary, format!("{value}\n"))
            .and_then(|()| std::fs::rename(&temporary, &self.path))
            .map_err(|error| self.failure(&error))
    }

    /// The copy is complete.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.failure(&error)),
            _ => Ok(()),
        }
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back_for_the_same_peer_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store/");
        let file = StateFile::new(&store, "import", "redis://a", None);
        assert_eq!(file.path(), dir.path().join("store.import"));
        assert_eq!(file.load().unwrap(), None);
        let life = "7f".to_owned();
        let begun = State { life: life.clone(), connection: Some(5), ..State::default() };
        let state = State { database: 3, place: Some(vec![0, 0xff, b'a']), life, connection: None };
        for state in [begun, state] {
            file.save(&state).unwrap();
            assert_eq!(file.load().unwrap(), Some(state));
        }
        assert!(StateFile::new(&store, "import", "redis://b", None).load().is_err());
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(file.load().unwrap(), None);
    }
}
