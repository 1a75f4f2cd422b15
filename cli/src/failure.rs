//! The failure of a subcommand: a message for a person, and the exit status.

use std::fmt;
use std::process::ExitCode;

/// The result of a subcommand: an exit status of its own, or a failure.
pub(crate) type Outcome = Result<ExitCode, Failure>;

/// A message and an exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
    damage: bool,
}

impl Failure {
    /// A failure with exit status 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1, damage: false }
    }

    /// A command line that is not valid: exit status 2, like clap's own errors.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2, damage: false }
    }

    /// Whether the failure is corruption of stored data.
    pub(crate) fn is_damage(&self) -> bool {
        self.damage
    }

    /// Appends to the message.
    pub(crate) fn and(self, more: &str) -> Self {
        Self { message: format!("{}; {more}", self.message), ..self }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<lsmkv::Error> for Failure {
    fn from(error: lsmkv::Error) -> Self {
        let damage = error.kind() == lsmkv::ErrorKind::Corrupt;
        Self { damage, ..Self::new(error.message()) }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
