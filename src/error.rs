//! One error type for the whole library: a small public kind, a message that says what to do,
//! and the operating system's error number where there was one.
//!
//! Errors are cheap to clone (one reference count), since every later writer receives the cause of
//! a degradation. A missing key is never an error: it is an `Option`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The result of everything fallible in this library.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an [`Error`]. The numbers are the status codes of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorKind {
    /// The caller broke a rule of the API (a NULL pointer, a dead handle).
    Misuse = -1,
    /// An argument has a value that is not allowed.
    Invalid = -2,
    /// The key holds a value of another type.
    WrongType = -3,
    /// The value is not an integer or out of range.
    NotInteger = -4,
    /// The value is not a valid float.
    NotFloat = -5,
    /// The result would overflow.
    Overflow = -6,
    /// The arguments do not follow the command's grammar.
    Syntax = -7,
    /// An index or offset is out of range.
    OutOfRange = -8,
    /// A key or value is larger than the store accepts.
    TooLarge = -9,
    /// The command needs an existing key.
    NoSuchKey = -10,
    /// Another commit changed a key that the transaction read or wrote.
    Conflict = -11,
    /// The handle accepts no writes (a snapshot, or opened `read_only`).
    ReadOnly = -12,
    /// Writes are off after an I/O fault, until the store is opened again.
    Degraded = -13,
    /// The disk is full; nothing was lost and work resumes once there is space.
    Full = -14,
    /// The operating system refused an operation.
    Io = -15,
    /// Stored bytes do not match their checksum or their grammar.
    Corrupt = -16,
    /// Another handle or process has the store open.
    Busy = -17,
    /// The handle, or the database behind it, has been closed.
    Closed = -18,
    /// The handle was made before a `fork` and is used in the child.
    Forked = -19,
    /// A panic was caught at the boundary; the database is degraded.
    Panic = -20,
    /// Memory could not be allocated.
    NoMemory = -21,
    /// The time limit passed.
    Timeout = -22,
    /// The operation does not exist on this kind of handle.
    Unsupported = -23,
    /// The directory holds a newer format, or is not a store at all.
    Incompatible = -24,
}

/// How the line of a failure begins.
const LINE: &str = "LSMKV ";

const KINDS: [ErrorKind; 24] = [
    ErrorKind::Misuse,
    ErrorKind::Invalid,
    ErrorKind::WrongType,
    ErrorKind::NotInteger,
    ErrorKind::NotFloat,
    ErrorKind::Overflow,
    ErrorKind::Syntax,
    ErrorKind::OutOfRange,
    ErrorKind::TooLarge,
    ErrorKind::NoSuchKey,
    ErrorKind::Conflict,
    ErrorKind::ReadOnly,
    ErrorKind::Degraded,
    ErrorKind::Full,
    ErrorKind::Io,
    ErrorKind::Corrupt,
    ErrorKind::Busy,
    ErrorKind::Closed,
    ErrorKind::Forked,
    ErrorKind::Panic,
    ErrorKind::NoMemory,
    ErrorKind::Timeout,
    ErrorKind::Unsupported,
    ErrorKind::Incompatible,
];

/// A failure. Code branches on [`Error::kind`]; people read `Display`.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    os_errno: i32,
    message: String,
}

impl Error {
    /// Creates an error of `kind` with a message for people.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { kind, os_errno: 0, message: message.into() }))
    }

    /// Creates an error for a failed `operation` of the operating system on `path`. ENOSPC and
    /// EDQUOT become [`ErrorKind::Full`], everything else [`ErrorKind::Io`].
    pub fn io(operation: &str, path: &Path, source: &std::io::Error) -> Self {
        let full = matches!(
            source.kind(),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
        );
        Self(Arc::new(Inner {
            kind: if full { ErrorKind::Full } else { ErrorKind::Io },
            os_errno: source.raw_os_error().unwrap_or(0),
            message: format!("{operation} {}: {source}", path.display()),
        }))
    }

    /// Creates an error for damage in `file` at `offset`. `detail` tells what was expected and what
    /// was found.
    pub fn corrupt(file: &Path, offset: u64, detail: impl fmt::Display) -> Self {
        let message = format!("{} is damaged at offset {offset}: {detail}", file.display());
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Wraps the error in another kind and a context, for example an I/O error that degraded the
    /// store.
    pub fn wrap(&self, kind: ErrorKind, context: impl fmt::Display) -> Self {
        Self(Arc::new(Inner {
            kind,
            os_errno: self.0.os_errno,
            message: format!("{context}: {}", self.0.message),
        }))
    }

    /// Adds which command of several failed, by its number from 1.
    pub(crate) fn of_command(self, number: usize, count: usize) -> Self {
        match count {
            1 => self,
            _ => self.wrap(self.kind(), format_args!("command {number} of {count}")),
        }
    }

    /// The failure as a line that another process of this library reads.
    pub(crate) fn to_line(&self) -> String {
        format!("{LINE}{} {}", self.kind() as i32, self.message())
    }

    /// Reads what [`Error::to_line`] wrote; `None` if it is something else.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (number, message) = line.strip_prefix(LINE)?.split_once(' ')?;
        let number: i32 = number.parse().ok()?;
        let kind = KINDS.into_iter().find(|kind| *kind as i32 == number)?;
        Some(Self::new(kind, message))
    }

    /// The kind of the failure, for code to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operating system's error number, or 0.
    pub fn os_errno(&self) -> i32 {
        self.0.os_errno
    }

    /// The message that `Display` shows.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_back_from_its_line_and_nothing_else_does() {
        for (index, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as i32, -1 - i32::try_from(index).unwrap());
            let read = Error::from_line(&Error::new(kind, "a b c").to_line()).unwrap();
            assert_eq!((read.kind(), read.message()), (kind, "a b c"));
        }
        for line in ["", "LSMKV", "LSMKV 1 x", "LSMKV -99 x", "LSMKV -1", "ERR x", "LSMKV x y"] {
            assert!(Error::from_line(line).is_none(), "{line}");
        }
    }
}
