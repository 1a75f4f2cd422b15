//! Errors of a server, as its replies state them, in the kinds of this library.

use crate::error::{Error, ErrorKind};

/// Texts by which an error is known, wherever they stand in it, and its kind.
const TEXTS: &[(&str, ErrorKind)] = &[
    ("bit offset is not an integer", ErrorKind::OutOfRange),
    ("bit is not an integer", ErrorKind::OutOfRange),
    ("not an integer or out of range", ErrorKind::NotInteger),
    ("hash value is not an integer", ErrorKind::NotInteger),
    ("timeout is not a float", ErrorKind::OutOfRange),
    ("not a valid float", ErrorKind::NotFloat),
    ("not a float", ErrorKind::NotFloat),
    ("not a number (NaN)", ErrorKind::NotFloat),
    ("would produce NaN or Infinity", ErrorKind::Overflow),
    ("would overflow", ErrorKind::Overflow),
    ("value is NaN or Infinity", ErrorKind::NotFloat),
    ("can't be converted into double", ErrorKind::NotFloat),
    ("syntax error", ErrorKind::Syntax),
    ("Invalid OVERFLOW type", ErrorKind::Syntax),
    ("must be called with a single source key", ErrorKind::Syntax),
    ("should be greater than 0", ErrorKind::OutOfRange),
    ("bytes: see txn_max_bytes", ErrorKind::TooLarge),
    ("bytes: see script_max_bytes", ErrorKind::TooLarge),
    ("timeout is negative", ErrorKind::OutOfRange),
    ("wrong number of arguments", ErrorKind::Syntax),
    ("exceeds maximum allowed size", ErrorKind::OutOfRange),
    ("out of range", ErrorKind::OutOfRange),
    ("no such key", ErrorKind::NoSuchKey),
    ("unknown command", ErrorKind::Unsupported),
    ("unknown subcommand", ErrorKind::Unsupported),
    ("in cluster mode", ErrorKind::Unsupported),
    ("in Cluster mode", ErrorKind::Unsupported),
];

/// Codes with which an error begins, and its kind.
const CODES: &[(&str, ErrorKind)] = &[
    ("WRONGTYPE", ErrorKind::WrongType),
    ("OOM", ErrorKind::Full),
    ("READONLY", ErrorKind::ReadOnly),
    ("NOREPLICAS", ErrorKind::ReadOnly),
    ("MISCONF", ErrorKind::Degraded),
    ("BUSY", ErrorKind::Busy),
    ("LOADING", ErrorKind::Busy),
    ("TRYAGAIN", ErrorKind::Busy),
    ("MASTERDOWN", ErrorKind::Busy),
    ("CLUSTERDOWN", ErrorKind::Busy),
    ("CROSSSLOT", ErrorKind::Unsupported),
];

/// The error that a server replied.
pub(super) fn server_error(text: &str) -> Error {
    if let Some(error) = Error::from_line(text) {
        return error;
    }
    let code = text.split(' ').next().unwrap_or_default();
    let coded = CODES.iter().find(|(known, _)| *known == code);
    let kind = coded.or_else(|| TEXTS.iter().find(|(known, _)| text.contains(known)));
    Error::new(kind.map_or(ErrorKind::Invalid, |(_, kind)| *kind), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::txn::Db;

    /// Every error that a command of this library states in Redis's words has the same kind when a
    /// server states it.
    #[test]
    fn the_kinds_are_those_of_the_same_errors_in_this_process() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let run = |words: &str| {
            let argv: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
            db.execute(&argv)
        };
        for words in ["SET s text", "SET big 9223372036854775807", "RPUSH l a", "ZADD z inf m"] {
            run(words).unwrap();
        }
        for words in [
            "INCR l",
            "INCR s",
            "INCR big",
            "INCRBYFLOAT s 1",
            "SET k v EX",
            "GET",
            "LSET l 5 v",
            "LSET none 0 v",
            "SETRANGE s 536870912 x",
            "ZADD z nan m",
            "ZINCRBY z -inf m",
            "EXPIRE s x",
            "SETRANGE s -1 x",
            "SETBIT s 1 2",
            "SETBIT s 99999999999999 1",
            "BITOP NOT d a b",
            "BITFIELD s OVERFLOW x",
            "LMPOP 1 l LEFT COUNT 0",
            "ZUNION 1 z WEIGHTS x",
            "ZRANGEBYSCORE z x y",
            "HINCRBYFLOAT h f inf",
            "MOVE s 99",
            "BLPOP l -1",
            "BLPOP l x",
            "RENAME none s",
        ] {
            let error = run(words).unwrap_err();
            assert_eq!(server_error(error.message()).kind(), error.kind(), "{words}: {error}");
        }
    }

    #[test]
    fn a_code_counts_more_than_the_text() {
        let kind = |text| server_error(text).kind();
        assert_eq!(
            kind("OOM command not allowed when used memory > 'maxmemory'."),
            ErrorKind::Full
        );
        assert_eq!(kind("LOADING Redis is loading the dataset in memory"), ErrorKind::Busy);
        assert_eq!(kind("MYCODE something of a script"), ErrorKind::Invalid);
        assert_eq!(kind(""), ErrorKind::Invalid);
    }
}
