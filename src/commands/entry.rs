//! A command that can run: its entry in the schema, and the function that reads its arguments and
//! calls `types`.

use super::args::Args;
use super::reply::Reply;
use super::reply_builder::ReplyBuilder;
#[cfg(feature = "remote")]
use super::schema::spec::Flags;
use super::schema::spec::{Access, Command};
use super::sink::ReplySink;
use crate::error::Result;
use crate::txn::Tx;

/// A command of the store.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) command: &'static Command,
    pub(crate) run: Run,
}

/// The function that runs a command.
#[derive(Debug)]
pub(crate) enum Run {
    /// Returns the reply.
    Reply(fn(&mut Tx<'_>, Args<'_>) -> Result<Reply>),
    /// Writes the reply element by element.
    Stream(fn(&mut Tx<'_>, Args<'_>, &mut dyn ReplySink) -> Result<()>),
}

impl Entry {
    /// Whether the command only reads, so that it may run twice.
    #[cfg(feature = "remote")]
    pub(crate) fn only_reads(&self) -> bool {
        self.command.access == Access::Read
    }

    /// Whether the command waits until a key holds an element.
    #[cfg(feature = "remote")]
    pub(crate) fn blocks(&self) -> bool {
        self.command.flags.has(Flags::BLOCKS)
    }

    /// Runs the command and returns its reply.
    pub(crate) fn run(&self, tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
        self.run_short(tx, args, None).map(|reply| reply.unwrap_or(Reply::Nil))
    }

    /// Runs the command and returns its reply; `None` if that is a string in chunks of more than
    /// `longest` bytes.
    pub(crate) fn run_short(
        &self,
        tx: &mut Tx<'_>,
        args: Args<'_>,
        longest: Option<usize>,
    ) -> Result<Option<Reply>> {
        tx.set_reads(self.command.access == Access::Read);
        match self.run {
            Run::Reply(run) => run(tx, args).map(Some),
            Run::Stream(run) => {
                let mut builder = ReplyBuilder::up_to(longest);
                run(tx, args, &mut builder)?;
                Ok(builder.finish_short())
            }
        }
    }

    /// Runs the command and writes its reply to `sink`. After an error the sink may hold a part
    /// of the reply.
    pub(crate) fn run_into(
        &self,
        tx: &mut Tx<'_>,
        args: Args<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        tx.set_reads(self.command.access == Access::Read);
        match self.run {
            Run::Reply(run) => run(tx, args)?.write_to(sink),
            Run::Stream(run) => run(tx, args, sink)?,
        }
        Ok(())
    }
}
