//! A blocking command for a caller that must not block, such as an event loop.

use std::sync::Arc;

use super::{Session, find};
use crate::commands::blocking::{PopOutcome, parsed};
use crate::commands::dispatch::{find as find_command, finish, fits, name_of};
use crate::commands::schema::spec::Flags;
use crate::commands::sink::ReplySink;
use crate::error::Result;

impl Session {
    /// Runs a command and writes its reply to `sink`. A command that would wait for an element, such
    /// as BLPOP, returns false instead: nothing is written, and [`Session::message_descriptor`]
    /// becomes readable when one of its keys may hold an element. Then call this again. The next
    /// command ends this.
    ///
    /// The element is popped when this is called, never before: a caller that gives up loses none.
    /// So others who wait may be served first, though they came later.
    pub fn command_nowait(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<bool> {
        self.end_notice();
        let name = name_of(argv)?;
        let waits = find_command(name).filter(|entry| {
            entry.command.flags.has(Flags::BLOCKS) && fits(entry.command.arity, argv.len())
        });
        let (Some(entry), None, false) = (waits, find(name), self.in_multi()) else {
            return self.command_into(argv, sink).map(|()| true);
        };
        if !self.db.is_live() {
            return self.command_into(argv, sink).map(|()| true);
        }
        let begin = sink.position();
        let inbox = Arc::clone(self.connection.inbox());
        let outcome = parsed(entry, argv.get(1..).unwrap_or_default())
            .and_then(|pop| self.db.pop_or_notice(&pop, &inbox));
        match outcome {
            Ok(PopOutcome::Ready(reply)) => {
                self.db.settle_pop()?;
                reply.write_to(sink);
            }
            Ok(PopOutcome::Waiting(waiting)) => {
                self.noticed = Some(waiting);
                return Ok(false);
            }
            Err(error) => finish(Err(error), begin, sink)?,
        }
        Ok(true)
    }

    /// Wants to know of no keys any more.
    pub(super) fn end_notice(&mut self) {
        if self.noticed.take().is_some()
            && let Some(inbox) = self.connection.known_inbox()
        {
            inbox.calm();
        }
    }
}
