//! Whether the store still takes writes, and if not, why.
//!
//! Degraded is final until the store is opened again: a failed sync cannot be retried, since the
//! kernel may have dropped the pages it could not write and report success the second time.

use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};

/// Shared by everything that writes.
#[derive(Debug, Default)]
pub struct Health {
    degraded: OnceLock<Error>,
}

impl Health {
    /// Turns writes off for good. The first cause is kept; returns the error writers now get.
    pub fn degrade(&self, cause: &Error) -> Error {
        let wrapped = cause.wrap(
            ErrorKind::Degraded,
            "writes are off since a fault, open the store again to recover",
        );
        self.degraded.get_or_init(|| wrapped).clone()
    }

    /// An error once degraded.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.degraded.get() {
            None => Ok(()),
            Some(cause) => Err(cause.clone()),
        }
    }

    /// Why writes are off, if they are.
    pub fn cause(&self) -> Option<&Error> {
        self.degraded.get()
    }
}
