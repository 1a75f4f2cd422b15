//! A connection to the holder of a shared store that the holder keeps something for: a view that
//! commands run on, walks over keys. What it keeps is lost with the connection, so no command is ever
//! sent on another one.

use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::connection::{Connection, Wait};
use super::frame::{Frame, Shape};
use super::waits::{Waiting, Waits};
use super::{Remote, Unanswered, WINDOW, unconnected};
use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplyBuilder, ReplySink};
use crate::error::{Error, ErrorKind};

/// How long the end of the last thing that is kept may take: the end of the connection ends it too.
const END_LIMIT: Duration = Duration::from_millis(200);

/// The connection.
#[derive(Debug)]
pub(crate) struct Line {
    remote: Remote,
    connection: Connection,
    /// Its entry among the waits: the close of the store ends any call.
    waiting: Waiting,
    waits: Arc<Waits>,
    /// The database that commands run on now.
    database: u32,
    /// The number of things that are kept for it.
    kept: usize,
}

/// Why a call on the connection has no reply.
#[derive(Debug)]
pub(crate) enum LineFailure {
    /// The holder replied an error; the connection goes on.
    Replied(Error),
    /// The connection is gone, and the holder has not seen the whole command.
    NotSent(Error),
    /// The connection is gone, and the command may or may not have run.
    Lost(Error),
}

type Outcome<T> = std::result::Result<T, LineFailure>;

impl Line {
    /// Takes a connection to a holder that has not ended.
    pub(crate) fn open(remote: &Remote) -> std::result::Result<Self, Unanswered> {
        let waits = remote.shared.store_waits.of_handle().map_err(Unanswered::Failed)?;
        let connection = remote.own_connection(None).map_err(unconnected)?;
        let waiting = waits.enter(connection.socket()).map_err(Unanswered::Failed)?;
        let database = remote.home_database();
        Ok(Self { remote: remote.clone(), connection, waiting, waits, database, kept: 0 })
    }

    /// Asks the holder to keep something.
    pub(crate) fn begin(&mut self, argv: &[&[u8]]) -> Outcome<Reply> {
        let reply = self.ask(argv, None)?;
        self.kept += 1;
        Ok(reply)
    }

    /// Tells the holder to end something that it keeps.
    pub(crate) fn end(&mut self, argv: &[&[u8]]) -> Outcome<()> {
        // Other handles need the connection if more is kept.
        let limit = (self.kept <= 1).then_some(Wait::AtMost(END_LIMIT));
        self.ask(argv, limit)?;
        self.kept = self.kept.saturating_sub(1);
        Ok(())
    }

    /// Notes that commands run on the database that they ran on at first.
    pub(crate) fn is_home(&mut self) {
        self.database = self.remote.home_database();
    }

    /// Runs a command that only the holder knows.
    pub(crate) fn ask(&mut self, argv: &[&[u8]], wait: Option<Wait>) -> Outcome<Reply> {
        let call = Call { argv, entry: None };
        ReplyBuilder::collect(|reply| {
            let frame = self.exchange(&call, wait, reply)?;
            frame.settle(true, reply).map_err(LineFailure::Replied)
        })
    }

    /// Runs a command on a database and writes its reply to `sink`. An error of the command is a
    /// failure if its entry is given, else a reply.
    pub(crate) fn run(
        &mut self,
        database: u32,
        entry: Option<&'static Entry>,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Outcome<()> {
        self.select(database)?;
        let call = match entry {
            Some(_) => Call { argv, entry },
            None => Call::of(argv),
        };
        let frame = self.exchange(&call, None, sink)?;
        frame.settle(entry.is_some(), sink).map_err(LineFailure::Replied)
    }

    /// Runs commands on a database, which are sent together. `each` is called after each reply.
    pub(crate) fn run_all<S: ReplySink>(
        &mut self,
        database: u32,
        commands: &[Vec<&[u8]>],
        sink: &mut S,
        mut each: impl FnMut(&mut S),
    ) -> Outcome<()> {
        self.select(database)?;
        let (mut failure, mut replies) = (None, 0);
        let mut rest = commands.iter().peekable();
        while rest.peek().is_some() {
            let mut shapes = Vec::new();
            while self.connection.pending() < WINDOW
                && let Some(argv) = rest.next()
            {
                self.connection.push(argv);
                shapes.push(Call::of(argv).shape());
            }
            self.send()?;
            for shape in shapes {
                // After a failure of the store the other replies are still to be read.
                let frame = self.receive(shape, None, sink)?;
                replies += 1;
                if let Err(error) = frame.settle(false, sink) {
                    let error = error.of_command(replies, commands.len());
                    failure.get_or_insert(LineFailure::Replied(error));
                }
                each(sink);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Selects a database of the view.
    pub(crate) fn select(&mut self, database: u32) -> Outcome<()> {
        if self.database != database {
            self.ask(&[b"SELECT", database.to_string().as_bytes()], None)?;
            self.database = database;
        }
        Ok(())
    }

    /// Forgets which database is selected, and what MULTI and WATCH have begun.
    pub(crate) fn forget_state(&mut self) -> Outcome<()> {
        // Without MULTI the first one is refused, which does not matter.
        match self.ask(&[b"DISCARD"], None) {
            Ok(_) | Err(LineFailure::Replied(_)) => {}
            Err(failure) => return Err(failure),
        }
        self.ask(&[b"UNWATCH"], None)?;
        let number = self.database.to_string();
        self.ask(&[b"SELECT", number.as_bytes()], None).map(drop)
    }

    /// Gives the connection to other calls, if nothing is kept for it any more.
    pub(crate) fn retire(self) {
        let Self { remote, connection, waiting, kept, .. } = self;
        // From here on a close of the handle must leave the connection alone.
        drop(waiting);
        if kept == 0 {
            remote.give_back(connection);
        }
    }

    fn exchange(
        &mut self,
        call: &Call<'_>,
        wait: Option<Wait>,
        sink: &mut dyn ReplySink,
    ) -> Outcome<Frame> {
        self.connection.push(call.argv);
        self.send()?;
        self.receive(call.shape(), wait, sink)
    }

    fn send(&mut self) -> Outcome<()> {
        self.waits.check_open().map_err(LineFailure::NotSent)?;
        self.connection.send().map_err(|error| LineFailure::NotSent(self.cause(error)))
    }

    fn receive(
        &mut self,
        shape: Shape,
        wait: Option<Wait>,
        sink: &mut dyn ReplySink,
    ) -> Outcome<Frame> {
        loop {
            match self.connection.receive(shape, wait, sink) {
                // No command here subscribes to messages.
                Ok(Frame::Push(_)) => {}
                Ok(frame) => return Ok(frame),
                Err(error) => return Err(LineFailure::Lost(self.cause(error))),
            }
        }
    }

    /// Why the connection ended: by the close of the store, perhaps.
    fn cause(&self, error: Error) -> Error {
        match self.waits.check_open() {
            Ok(()) => error,
            Err(closed) => closed,
        }
    }
}

impl LineFailure {
    /// What it means for a store whose holder may have ended: whether another one can be asked, since
    /// what the line was to keep has ended with it.
    pub(crate) fn before_use(self) -> Unanswered {
        match self {
            Self::Replied(error) => Unanswered::Failed(error),
            Self::NotSent(error) | Self::Lost(error) => match error.kind() {
                ErrorKind::Io => Unanswered::Gone(error),
                _ => Unanswered::Failed(error),
            },
        }
    }
}
