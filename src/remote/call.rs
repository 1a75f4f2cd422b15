//! A command on its way to a server, with what its entry in the schema says about it.

use std::time::Duration;

use super::connection::Wait;
use super::frame::Shape;
use crate::commands::entry::Entry;
use crate::commands::refuse_session;

/// Commands whose replies hold pairs that belong side by side.
const PAIRS: [&str; 11] = [
    "HRANDFIELD",
    "ZDIFF",
    "ZINTER",
    "ZPOPMAX",
    "ZPOPMIN",
    "ZRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZREVRANGE",
    "ZREVRANGEBYSCORE",
    "ZUNION",
];

/// A command in words, the name first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) argv: &'a [&'a [u8]],
    /// The entry of the command; `None` if only the server knows it.
    pub(super) entry: Option<&'static Entry>,
}

impl<'a> Call<'a> {
    /// Looks a command up by its name.
    pub(super) fn of(argv: &'a [&'a [u8]]) -> Self {
        let entry = argv.first().and_then(|name| crate::commands::find(name));
        Self { argv, entry }
    }

    /// The name in capitals; empty if only the server knows it.
    pub(super) fn name(&self) -> &'static str {
        self.entry.map_or("", |entry| entry.command.name)
    }

    pub(super) fn shape(&self) -> Shape {
        if PAIRS.contains(&self.name()) { Shape::Pairs } else { Shape::AsSent }
    }

    /// Whether the command can run twice: it only reads.
    pub(super) fn only_reads(&self) -> bool {
        self.entry.is_some_and(Entry::only_reads)
    }

    /// Whether the command can be given to another holder of a shared store: it only reads, or waits
    /// for what that has made durable.
    pub(super) fn may_repeat(&self) -> bool {
        self.only_reads() || matches!(self.argv, [b"LSMKV.SHARED", b"WAIT", ..])
    }

    /// Whether the command is about its connection, as MULTI and SUBSCRIBE are, not about data.
    pub(super) fn is_of_session(&self) -> bool {
        self.entry.is_none() && self.argv.first().is_some_and(|name| refuse_session(name).is_err())
    }

    /// How long the command waits at the server, if it is one that waits.
    pub(super) fn wait(&self) -> Option<Wait> {
        let entry = self.entry.filter(|entry| entry.blocks())?;
        // BLMPOP and BZMPOP name their time first, all others last.
        let place = if entry.command.name.ends_with("MPOP") { 1 } else { self.argv.len() - 1 };
        let text = self.argv.get(place).and_then(|word| std::str::from_utf8(word).ok());
        match text.and_then(|text| text.parse::<f64>().ok()) {
            Some(0.0) => Some(Wait::Forever),
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok().map(Wait::For),
            // The server refuses it at once.
            None => None,
        }
    }
}
