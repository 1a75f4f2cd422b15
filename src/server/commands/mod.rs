//! The server's own commands: connections, configuration, statistics, persistence.
//!
//! - `table`: one row per command, with its handler;
//! - `subcommand`: dispatch of CLIENT, COMMAND, CONFIG and DEBUG by their second word;
//! - the other files hold the handlers.

mod client;
mod command;
mod compatibility;
mod config;
mod connection;
mod debug;
mod info;
mod persistence;
mod sharing;
mod subcommand;
mod table;
mod upkeep;

pub use info::process_bytes;
pub(crate) use table::{command_table, run};
pub(crate) use upkeep::upkeep_reply;

use super::client::Client;
use super::shared::Server;
use crate::resp::Writer;

/// A running command of the server: its arguments, its client, and where its reply goes.
pub(crate) struct Call<'a, 'w> {
    pub(crate) server: &'a Server,
    pub(crate) client: &'a mut Client,
    /// The arguments including the name.
    pub(crate) argv: &'a [&'a [u8]],
    pub(crate) out: &'a mut Writer<'w>,
    /// Whether EXEC runs the command. Then it must not block.
    pub(crate) in_transaction: bool,
}

impl<'a> Call<'a, '_> {
    /// The argument at a position; empty if there is none.
    pub(crate) fn arg(&self, at: usize) -> &'a [u8] {
        self.argv.get(at).copied().unwrap_or_default()
    }

    /// The argument at a position as text in capitals.
    pub(crate) fn word(&self, at: usize) -> String {
        String::from_utf8_lossy(self.arg(at)).to_ascii_uppercase()
    }

    /// The argument at a position as a number.
    pub(crate) fn number(&self, at: usize) -> Option<i64> {
        std::str::from_utf8(self.arg(at)).ok()?.parse().ok()
    }

    /// The arguments from a position on.
    pub(crate) fn rest(&self, at: usize) -> &'a [&'a [u8]] {
        self.argv.get(at..).unwrap_or_default()
    }
}
