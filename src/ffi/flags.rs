//! Options of commands as flags in one numbering, and choices of one among several.

use crate::error::{Error, ErrorKind, Result};

/// Only if it does not exist: a key (SET), a member (ZADD), an expiry (EXPIRE).
pub const LSMKV_NX: u32 = 1;
/// Only if it exists.
pub const LSMKV_XX: u32 = 2;
/// SET: the key keeps its expiry.
pub const LSMKV_KEEPTTL: u32 = 4;
/// Only if the new score, or expiry, is greater than the old one.
pub const LSMKV_GT: u32 = 8;
/// Only if the new score, or expiry, is less than the old one.
pub const LSMKV_LT: u32 = 16;
/// ZADD: count members whose score changed, not only new ones.
pub const LSMKV_CH: u32 = 32;
/// In reverse order; SORT: descending.
pub const LSMKV_REV: u32 = 64;
/// Each member is followed by its score.
pub const LSMKV_WITHSCORES: u32 = 128;
/// The lower bound does not belong to the range.
pub const LSMKV_MINEX: u32 = 256;
/// The upper bound does not belong to the range.
pub const LSMKV_MAXEX: u32 = 512;
/// The time is a Unix time in milliseconds instead of a duration.
pub const LSMKV_AT: u32 = 1024;
/// GETEX: removes the expiry.
pub const LSMKV_PERSIST: u32 = 2048;
/// COPY: replaces an existing destination.
pub const LSMKV_REPLACE: u32 = 4096;
/// HRANDFIELD: each field is followed by its value.
pub const LSMKV_WITHVALUES: u32 = 8192;
/// SORT: compares texts instead of numbers.
pub const LSMKV_ALPHA: u32 = 16384;
/// BITCOUNT, BITPOS: the range counts bits instead of bytes.
pub const LSMKV_BIT: u32 = 32768;
/// LCS: reports the length of each match too.
pub const LSMKV_WITHMATCHLEN: u32 = 65536;

/// The head of a list, where its first element is.
pub const LSMKV_LEFT: i32 = 0;
/// The tail of a list, where its last element is.
pub const LSMKV_RIGHT: i32 = 1;

/// LINSERT: before the pivot.
pub const LSMKV_BEFORE: i32 = 0;
/// LINSERT: after the pivot.
pub const LSMKV_AFTER: i32 = 1;

/// ZMPOP: the members with the least scores.
pub const LSMKV_LEAST: i32 = 0;
/// ZMPOP: the members with the greatest scores.
pub const LSMKV_GREATEST: i32 = 1;

/// ZUNION, ZINTER: the sum of a member's scores.
pub const LSMKV_SUM: i32 = 0;
/// ZUNION, ZINTER: the least of a member's scores.
pub const LSMKV_MIN: i32 = 1;
/// ZUNION, ZINTER: the greatest of a member's scores.
pub const LSMKV_MAX: i32 = 2;

/// BITOP: a bit is set if it is set in all inputs.
pub const LSMKV_AND: i32 = 0;
/// BITOP: a bit is set if it is set in any input.
pub const LSMKV_OR: i32 = 1;
/// BITOP: a bit is set if it is set in an odd number of inputs.
pub const LSMKV_XOR: i32 = 2;
/// BITOP: a bit is set if it is not set in the only input.
pub const LSMKV_NOT: i32 = 3;

/// The type of a key: a string.
pub const LSMKV_STRING: i32 = 1;
/// The type of a key: a hash.
pub const LSMKV_HASH: i32 = 2;
/// The type of a key: a list.
pub const LSMKV_LIST: i32 = 3;
/// The type of a key: a set.
pub const LSMKV_SET: i32 = 4;
/// The type of a key: a sorted set.
pub const LSMKV_ZSET: i32 = 5;

/// The flags of one call.
#[derive(Clone, Copy)]
pub(super) struct Flags(u32);

impl Flags {
    /// Fails for a flag that the function does not have, and for flags that exclude each other.
    /// Each mask of `exclusive` holds flags of which at most one may be set.
    pub(super) fn checked(given: u32, allowed: u32, exclusive: &[u32]) -> Result<Self> {
        let odd = given & !allowed;
        if odd != 0 {
            return Err(invalid(format!("flags {odd:#x} do not belong to this function")));
        }
        match exclusive.iter().find(|these| (given & **these).count_ones() > 1) {
            Some(these) => {
                let both = given & these;
                Err(invalid(format!("flags {both:#x} exclude each other")))
            }
            None => Ok(Self(given)),
        }
    }

    pub(super) fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

/// The choice at position `given`; any other number is an error.
pub(super) fn choice<T: Copy>(name: &str, given: i32, choices: &[T]) -> Result<T> {
    let chosen = usize::try_from(given).ok().and_then(|given| choices.get(given));
    chosen.copied().ok_or_else(|| invalid(format!("{name} is {given}, which names nothing")))
}

/// The error for an argument with a value that is not allowed.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_does_not_fit_is_refused_by_its_number() {
        let flags =
            Flags::checked(LSMKV_NX | LSMKV_CH, LSMKV_NX | LSMKV_XX | LSMKV_CH, &[]).unwrap();
        assert!(flags.has(LSMKV_NX) && flags.has(LSMKV_CH) && !flags.has(LSMKV_XX));
        let error = Flags::checked(LSMKV_NX | LSMKV_REV, LSMKV_NX, &[]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("0x40"), "{error}");
        let both = LSMKV_NX | LSMKV_XX;
        assert!(Flags::checked(both, both, &[]).is_ok());
        assert!(Flags::checked(both, both, &[both]).is_err());
        assert!(Flags::checked(LSMKV_XX, both, &[both]).is_ok());
    }

    #[test]
    fn a_choice_is_one_of_those_there_are() {
        assert_eq!(choice("side", 1, &['a', 'b']).unwrap(), 'b');
        for odd in [-1, 2, i32::MAX, i32::MIN] {
            assert_eq!(choice("side", odd, &['a', 'b']).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
