//! What arrives on a connection: a reply, an error, a message, or bytes that are none of them.

use super::server_error::server_error;
use crate::commands::{Reply, ReplySink};
use crate::error::Error;

/// Why a reply could not be read.
#[derive(Debug)]
pub(super) enum ReadFailure {
    /// The connection failed, or was closed by the server.
    Io(std::io::Error),
    /// The bytes are no reply.
    Protocol(String),
}

impl From<std::io::Error> for ReadFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// What was read, or why it could not be.
pub(super) type Outcome<T> = Result<T, ReadFailure>;

/// What arrived.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// A reply, which is in the sink.
    Reply,
    /// An error reply.
    Error(String),
    /// A message that no command asked for, or the confirmation of a subscription.
    Push(Reply),
}

impl Frame {
    /// Writes an error reply to the sink; any other is there already.
    pub(super) fn write_error(self, sink: &mut dyn ReplySink) {
        if let Self::Error(text) = self {
            sink.error(&text);
        }
    }

    /// Fails with a failure of the store, and with any error reply if `errors_fail`; writes another
    /// error reply to the sink.
    pub(super) fn settle(
        self,
        errors_fail: bool,
        sink: &mut dyn ReplySink,
    ) -> crate::error::Result<()> {
        match self {
            Self::Error(text) if errors_fail => Err(server_error(&text)),
            Self::Error(text) => match Error::from_line(&text) {
                Some(error) => Err(error),
                None => {
                    sink.error(&text);
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    /// Fails with an error reply.
    pub(super) fn into_result(self) -> crate::error::Result<()> {
        match self {
            Self::Error(text) => Err(server_error(&text)),
            _ => Ok(()),
        }
    }
}

/// Whether a reply holds pairs, such as members with scores, that belong side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As the server sends it.
    AsSent,
    /// An array of arrays of two is a sequence of pairs.
    Pairs,
}

/// The failure of bytes that are not what belongs at their place.
pub(super) fn odd(expected: &str, found: &[u8]) -> ReadFailure {
    const SHOWN: usize = 40;
    let shown = found.get(..SHOWN).unwrap_or(found).escape_ascii();
    ReadFailure::Protocol(format!("it sent '{shown}' where {expected} belongs"))
}
