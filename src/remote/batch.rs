//! Batches on a remote store: write commands that are sent together, between MULTI and EXEC.

use super::call::Call;
use super::cluster::{Attempts, is_redirect, join_slot};
use super::connection::CallFailure;
use super::frame::{Frame, Shape};
use super::server_error::server_error;
use super::{Remote, Unanswered};
use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplyBuilder, find, keys_of, name_of, used_up};
use crate::error::{Error, ErrorKind, Result};

const NOTHING_RAN: &str = "nothing of the batch ran";

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
            return Err(used_up());
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

    /// Sends the commands, and waits for a node of a cluster that takes over. If one could not be
    /// queued, none ran. An error of a command that ran is reported after all have run.
    pub fn commit(&mut self) -> Result<()> {
        if self.committed {
            return Err(used_up());
        }
        self.committed = true;
        if self.commands.is_empty() {
            return Ok(());
        }
        let waits = &self.remote.shared.waits;
        waits.check_open()?;
        let cluster = self.remote.cluster();
        let mut attempts = cluster.map(|it| Attempts::begin(it, waits)).transpose()?;
        loop {
            match (self.attempt(), &mut attempts) {
                (Ok(()), _) => return Ok(()),
                (Err(Unanswered::Gone(error)), Some(attempts)) => attempts.later(&error)?,
                (Err(Unanswered::Gone(error)), None) => {
                    return Err(error.wrap(error.kind(), NOTHING_RAN));
                }
                (Err(Unanswered::Failed(error)), _) => return Err(error),
            }
        }
    }

    /// Sends the commands once.
    fn attempt(&self) -> std::result::Result<(), Unanswered> {
        let connection = self.remote.own_connection_once(self.slot);
        let mut connection = connection.map_err(Unanswered::Gone)?;
        connection.push(&[b"MULTI"]);
        for command in &self.commands {
            let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            connection.push(&argv);
        }
        connection.push(&[b"EXEC"]);
        connection.send().map_err(Unanswered::Gone)?;
        let lost = |error| Unanswered::Failed(CallFailure::Lost(error).into_error());
        let (mut refused, mut elsewhere) = (None, false);
        for number in 0..=self.commands.len() {
            let mut nothing = ReplyBuilder::default();
            let frame = connection.receive(Shape::AsSent, None, &mut nothing).map_err(lost)?;
            if let Frame::Error(text) = frame {
                elsewhere |= number > 0 && is_redirect(&text);
                refused.get_or_insert_with(|| self.failure(number, &text));
            }
        }
        let mut reply = ReplyBuilder::default();
        let executed = connection.receive(Shape::AsSent, None, &mut reply).map_err(lost)?;
        self.remote.give_back(connection);
        match (refused, executed) {
            (Some(error), Frame::Error(_)) if elsewhere => Err(Unanswered::Gone(error)),
            (Some(error), _) => Err(Unanswered::Failed(error.wrap(error.kind(), NOTHING_RAN))),
            (None, Frame::Error(text)) if is_redirect(&text) => {
                Err(Unanswered::Gone(server_error(&text)))
            }
            (None, Frame::Error(text)) => Err(Unanswered::Failed(server_error(&text))),
            (None, _) => self.check(&reply.finish()).map_err(Unanswered::Failed),
        }
    }

    /// Fails if a command that ran replied an error.
    fn check(&self, executed: &Reply) -> Result<()> {
        let Reply::Array(replies) = executed else {
            let message = format!("EXEC of the server replied {executed:?}");
            return Err(Error::new(ErrorKind::Io, message));
        };
        for (number, reply) in replies.iter().enumerate() {
            if let Reply::Error(text) = reply {
                let error = self.failure(number + 1, text);
                return Err(error.wrap(error.kind(), "the other commands have run"));
            }
        }
        Ok(())
    }

    /// The error of a command, by its number from 1; 0 is MULTI.
    fn failure(&self, number: usize, text: &str) -> Error {
        server_error(text).of_command(number, self.commands.len())
    }
}
