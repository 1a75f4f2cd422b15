//! Batches on a remote store: write commands that are sent together, between MULTI and EXEC.

use super::Remote;
use super::call::Call;
use super::cluster::join_slot;
use super::frame::{Frame, Shape};
use super::server_error::server_error;
use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplyBuilder, find, keys_of, name_of};
use crate::error::{Error, ErrorKind, Result};

/// Write commands that are stored first and sent together. Others see all of them or none. Unlike
/// in a store of this process, a command that fails when it runs does not undo the others: servers
/// have no such thing.
#[derive(Debug)]
pub struct RemoteBatch {
    remote: Remote,
    commands: Vec<Vec<Vec<u8>>>,
    /// The slot of all keys so far, in a cluster.
    slot: Option<u16>,
    committed: bool,
}

impl RemoteBatch {
    pub(super) fn new(remote: Remote) -> Self {
        Self { remote, commands: Vec::new(), slot: None, committed: false }
    }

    /// Stores a command by name.
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<()> {
        let entry = find(name_of(argv)?);
        if let Some(entry) = entry.filter(|entry| entry.only_reads()) {
            let name = entry.command.name;
            let message = format!("{name} only reads: a batch takes writes, read on the store");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.store(entry, argv)
    }

    /// Stores a write command whose entry is known.
    pub(crate) fn record(&mut self, entry: &'static Entry, argv: &[&[u8]]) -> Result<()> {
        self.store(Some(entry), argv)
    }

    fn store(&mut self, entry: Option<&'static Entry>, argv: &[&[u8]]) -> Result<()> {
        if self.committed {
            return Err(Error::new(ErrorKind::Closed, "the batch is committed: clear it first"));
        }
        self.remote.check_writable(&Call { argv, entry })?;
        if self.remote.is_cluster() {
            let keys = entry.map(|entry| keys_of(entry, argv)).unwrap_or_default();
            join_slot(&mut self.slot, &keys, "a batch")?;
        }
        self.commands.push(argv.iter().map(|word| word.to_vec()).collect());
        Ok(())
    }

    /// Forgets all commands, so that the batch can be used again.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.slot = None;
        self.committed = false;
    }

    /// Sends the commands. If one could not be queued, none ran. An error of a command that ran is
    /// reported after all have run.
    pub fn commit(&mut self) -> Result<()> {
        if self.committed {
            return Err(Error::new(ErrorKind::Closed, "the batch is committed already"));
        }
        self.committed = true;
        if self.commands.is_empty() {
            return Ok(());
        }
        let mut connection = self.remote.own_connection(self.slot)?;
        connection.push(&[b"MULTI"]);
        for command in &self.commands {
            let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            connection.push(&argv);
        }
        connection.push(&[b"EXEC"]);
        connection.send()?;
        let mut refused: Option<Error> = None;
        for number in 0..=self.commands.len() {
            let mut nothing = ReplyBuilder::default();
            if let Frame::Error(text) = connection.receive(Shape::AsSent, None, &mut nothing)? {
                refused.get_or_insert_with(|| self.failure(number, &text));
            }
        }
        let mut reply = ReplyBuilder::default();
        let executed = connection.receive(Shape::AsSent, None, &mut reply)?;
        self.remote.give_back(connection);
        if let Some(error) = refused {
            return Err(error.wrap(error.kind(), "nothing of the batch ran"));
        }
        match (executed, reply.finish()) {
            (Frame::Error(text), _) => Err(server_error(&text)),
            (_, Reply::Array(replies)) => {
                for (number, reply) in replies.iter().enumerate() {
                    if let Reply::Error(text) = reply {
                        let error = self.failure(number + 1, text);
                        return Err(error.wrap(error.kind(), "the other commands have run"));
                    }
                }
                Ok(())
            }
            (_, other) => {
                let message = format!("EXEC of the server replied {other:?}");
                Err(Error::new(ErrorKind::Io, message))
            }
        }
    }

    /// The error of a command, by its number from 1; 0 is MULTI.
    fn failure(&self, number: usize, text: &str) -> Error {
        let error = server_error(text);
        error.wrap(error.kind(), format_args!("command {number} of {}", self.commands.len()))
    }
}
