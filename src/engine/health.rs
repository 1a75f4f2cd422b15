//! Whether the store still accepts writes and, if not, why.
//!
//! A degraded store stays so until it is opened again. A failed sync cannot be retried: the kernel
//! may have dropped the pages it could not write, and would report success the second time.

use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};

/// The health of a store, shared by everything that writes.
#[derive(Debug, Default)]
pub struct Health {
    degraded: OnceLock<Error>,
}

impl Health {
    /// Turns writes off for good, and returns the error that writers get from now on. Only the
    /// first cause is kept.
    pub fn degrade(&self, cause: &Error) -> Error {
        let wrapped = cause.wrap(
            ErrorKind::Degraded,
            "writes are off since a fault, open the store again to recover",
        );
        self.degraded.get_or_init(|| wrapped).clone()
    }

    /// An error once the store has degraded.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.degraded.get() {
            None => Ok(()),
            Some(cause) => Err(cause.clone()),
        }
    }

    /// Why writes are off; `None` if they are not.
    pub fn cause(&self) -> Option<&Error> {
        self.degraded.get()
    }
}
