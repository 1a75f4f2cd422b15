//! The position of an interrupted copy, in a small file beside the store.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::{decode, encode};
use crate::failure::Failure;

/// The position from which a copy can resume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResumePoint {
    pub(crate) database: u32,
    /// The source's own position, a key or a cursor; `None`: the beginning.
    pub(crate) position: Option<Vec<u8>>,
    /// The run id of the server for which the position is valid; empty if it is always valid.
    pub(crate) run_id: String,
    /// The id of this program's connection at the server that it writes to, for the same run.
    pub(crate) connection: Option<i64>,
}

/// The file with the position of one copy, from or to `peer`.
pub(crate) struct ResumeFile {
    path: PathBuf,
    peer: String,
}

impl ResumeFile {
    /// Uses the file `<dir>.<what>` unless the user has chosen another.
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

    /// Reads the position of an earlier copy with the same peer.
    pub(crate) fn load(&self) -> Result<Option<ResumePoint>, Failure> {
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
        let position = match field("place")? {
            Value::Null => None,
            position => Some(decode(position).ok_or_else(broken)?.to_vec()),
        };
        let run_id = field("life")?.as_str().ok_or_else(broken)?.to_owned();
        let connection = value.get("connection").and_then(Value::as_i64);
        Ok(Some(ResumePoint { database, position, run_id, connection }))
    }

    /// Writes the position, replacing an earlier one.
    pub(crate) fn save(&self, state: &ResumePoint) -> Result<(), Failure> {
        let value = json!({
            "peer": self.peer,
            "database": state.database,
            "place": state.position.as_deref().map(encode),
            "life": state.run_id,
            "connection": state.connection,
        });
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(".tmp");
        std::fs::write(&temporary, format!("{value}\n"))
            .and_then(|()| std::fs::rename(&temporary, &self.path))
            .map_err(|error| self.failure(&error))
    }

    /// Removes the file of a complete copy.
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
        let file = ResumeFile::new(&store, "import", "redis://a", None);
        assert_eq!(file.path(), dir.path().join("store.import"));
        assert_eq!(file.load().unwrap(), None);
        let run_id = "7f".to_owned();
        let begun =
            ResumePoint { run_id: run_id.clone(), connection: Some(5), ..ResumePoint::default() };
        let state = ResumePoint {
            database: 3,
            position: Some(vec![0, 0xff, b'a']),
            run_id,
            connection: None,
        };
        for state in [begun, state] {
            file.save(&state).unwrap();
            assert_eq!(file.load().unwrap(), Some(state));
        }
        assert!(ResumeFile::new(&store, "import", "redis://b", None).load().is_err());
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(file.load().unwrap(), None);
    }
}
