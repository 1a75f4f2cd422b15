//! Status codes: what every function returns. Append-only; a retired number stays reserved.

use crate::error::ErrorKind;

/// The status of a call. Negative: the call failed, and `lsmkv_err` tells why. Zero: success.
/// Positive: an ordinary outcome that is not an error.
pub type lsmkv_status = i32;

/// Success.
pub const LSMKV_OK: i32 = 0;
/// There is no such key, field or member.
pub const LSMKV_NOT_FOUND: i32 = 1;
/// There is nothing more, at the end of an enumeration.
pub const LSMKV_DONE: i32 = 2;
/// The caller's buffer is too small. The call reported the needed length and copied nothing.
pub const LSMKV_TOO_SMALL: i32 = 3;
/// A condition of the call was not met, so nothing changed.
pub const LSMKV_SKIPPED: i32 = 4;

/// The caller broke a rule of the API: a NULL pointer, a closed handle.
pub const LSMKV_MISUSE: i32 = -1;
/// An argument has a value that is not allowed.
pub const LSMKV_INVALID: i32 = -2;
/// The key holds a value of another type.
pub const LSMKV_WRONGTYPE: i32 = -3;
/// The value is not an integer or out of range.
pub const LSMKV_NOT_INTEGER: i32 = -4;
/// The value is not a valid float.
pub const LSMKV_NOT_FLOAT: i32 = -5;
/// The result would overflow.
pub const LSMKV_OVERFLOW: i32 = -6;
/// The arguments do not follow the command's grammar.
pub const LSMKV_SYNTAX: i32 = -7;
/// An index or offset is out of range.
pub const LSMKV_OUT_OF_RANGE: i32 = -8;
/// A key or value is longer than the store accepts.
pub const LSMKV_TOO_LARGE: i32 = -9;
/// The command needs an existing key.
pub const LSMKV_NO_SUCH_KEY: i32 = -10;
/// Another commit changed a key that the transaction read or wrote.
pub const LSMKV_CONFLICT: i32 = -11;
/// The handle accepts no writes: a snapshot, or opened read_only.
pub const LSMKV_READONLY: i32 = -12;
/// Writes are off after an I/O fault or a panic, until the store is opened again.
pub const LSMKV_DEGRADED: i32 = -13;
/// The disk is full. Nothing was lost; work resumes once there is space.
pub const LSMKV_FULL: i32 = -14;
/// The operating system refused an operation; os_errno has its number.
pub const LSMKV_IO: i32 = -15;
/// Stored bytes are damaged; the message names file and offset.
pub const LSMKV_CORRUPT: i32 = -16;
/// Another handle or process has the store open.
pub const LSMKV_BUSY: i32 = -17;
/// The database behind the handle has been closed.
pub const LSMKV_CLOSED: i32 = -18;
/// The handle was made before a fork and is used in the child.
pub const LSMKV_FORKED: i32 = -19;
/// A defect of the library was caught; the database accepts no more writes.
pub const LSMKV_PANIC: i32 = -20;
/// Memory could not be allocated.
pub const LSMKV_NO_MEMORY: i32 = -21;
/// The time limit passed.
pub const LSMKV_TIMEOUT: i32 = -22;
/// The operation does not exist on this kind of handle.
pub const LSMKV_UNSUPPORTED: i32 = -23;
/// The directory holds a newer format, or is not a store at all.
pub const LSMKV_INCOMPATIBLE: i32 = -24;

/// The status of an error. The match names every kind: a kind without a constant does not compile,
/// and the test below compares the numbers.
pub(super) fn of_kind(kind: ErrorKind) -> lsmkv_status {
    match kind {
        ErrorKind::Misuse => LSMKV_MISUSE,
        ErrorKind::Invalid => LSMKV_INVALID,
        ErrorKind::WrongType => LSMKV_WRONGTYPE,
        ErrorKind::NotInteger => LSMKV_NOT_INTEGER,
        ErrorKind::NotFloat => LSMKV_NOT_FLOAT,
        ErrorKind::Overflow => LSMKV_OVERFLOW,
        ErrorKind::Syntax => LSMKV_SYNTAX,
        ErrorKind::OutOfRange => LSMKV_OUT_OF_RANGE,
        ErrorKind::TooLarge => LSMKV_TOO_LARGE,
        ErrorKind::NoSuchKey => LSMKV_NO_SUCH_KEY,
        ErrorKind::Conflict => LSMKV_CONFLICT,
        ErrorKind::ReadOnly => LSMKV_READONLY,
        ErrorKind::Degraded => LSMKV_DEGRADED,
        ErrorKind::Full => LSMKV_FULL,
        ErrorKind::Io => LSMKV_IO,
        ErrorKind::Corrupt => LSMKV_CORRUPT,
        ErrorKind::Busy => LSMKV_BUSY,
        ErrorKind::Closed => LSMKV_CLOSED,
        ErrorKind::Forked => LSMKV_FORKED,
        ErrorKind::Panic => LSMKV_PANIC,
        ErrorKind::NoMemory => LSMKV_NO_MEMORY,
        ErrorKind::Timeout => LSMKV_TIMEOUT,
        ErrorKind::Unsupported => LSMKV_UNSUPPORTED,
        ErrorKind::Incompatible => LSMKV_INCOMPATIBLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statuses_are_the_numbers_of_the_error_kinds() {
        for kind in [ErrorKind::Misuse, ErrorKind::Busy, ErrorKind::Incompatible] {
            assert_eq!(of_kind(kind), kind as i32);
        }
        assert_eq!(LSMKV_MISUSE, -1);
        assert_eq!(LSMKV_INCOMPATIBLE, -24);
    }
}
