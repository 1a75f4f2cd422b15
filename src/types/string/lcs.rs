//! LCS: the longest common subsequence of two strings.
//!
//! The length for every pair of prefixes follows from three others; going back from the end yields
//! a subsequence. Where two of equal length exist, the reply depends on which one is found: the way
//! back goes over `b` unless going over `a` keeps more. It needs nothing else, so only one bit per
//! pair of the table is kept, and the lengths of one row.

use bytes::Bytes;

use super::chunks::StringValue;
use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::db::commands;
use crate::txn::{Record, Tx};

/// The largest table that the reference keeps, which also bounds the work.
const MOST_TABLE_BYTES: u128 = 512 << 20;

/// What two strings have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lcs {
    /// The longest common subsequence.
    pub text: Bytes,
    /// The ranges that it consists of, the last one first.
    pub matches: Vec<LcsMatch>,
}

/// A range that both strings contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcsMatch {
    /// Where the range begins in the first string.
    pub a: usize,
    /// Where the range begins in the second string.
    pub b: usize,
    /// The length of the range.
    pub len: usize,
}

commands! {
    /// LCS: the longest common subsequence of two strings, and where it is in them. Takes time in
    /// proportion to the product of their lengths.
    read fn lcs(key1: &[u8], key2: &[u8]) -> Lcs;
}

impl Tx<'_> {
    pub(crate) fn lcs(&self, key1: &[u8], key2: &[u8]) -> Result<Lcs> {
        let strings = self.two_strings(key1, key2)?;
        self.common_subsequence(&strings)
    }

    /// The values to compare, empty for keys that do not exist. Reads no more than their records.
    pub(crate) fn two_strings(&self, key1: &[u8], key2: &[u8]) -> Result<[StringValue; 2]> {
        let (a, b) = (self.record(key1)?, self.record(key2)?);
        if a.iter().chain(&b).any(|record| record.header.kind != Type::String) {
            let text = "ERR The specified keys must contain string values";
            return Err(Error::new(ErrorKind::WrongType, text));
        }
        let value = |key, record: Option<Record>| match record {
            Some(record) => Ok(StringValue::of(self, key, record.into_string(key)?)),
            None => Ok(StringValue::Whole(Bytes::new())),
        };
        Ok([value(key1, a)?, value(key2, b)?])
    }

    /// Finds the longest common subsequence of two strings. Those that are too long are refused
    /// without a look at their bytes.
    pub(crate) fn common_subsequence(&self, [a, b]: &[StringValue; 2]) -> Result<Lcs> {
        let table = (a.len() as u128 + 1) * (b.len() as u128 + 1) * 4;
        if table > MOST_TABLE_BYTES {
            let text = "ERR Insufficient memory, transient memory for LCS exceeds \
                        proto-max-bulk-len";
            return Err(Error::new(ErrorKind::OutOfRange, text));
        }
        if a.len() == 0 || b.len() == 0 {
            return Ok(Lcs::default());
        }
        let (a, b) = (a.range(self, 0..a.len())?, b.range(self, 0..b.len())?);
        Ok(way_back(&a, &b, &Steps::of(&a, &b)))
    }
}

/// Whether the way back from a pair of prefixes goes over `a`.
struct Steps {
    bits: Vec<u64>,
    width: usize,
}

impl Steps {
    fn of(a: &[u8], b: &[u8]) -> Self {
        let width = b.len();
        let mut steps = Self { bits: vec![0; (a.len() * width).div_ceil(64)], width };
        let mut row = vec![0u32; width];
        for (i, byte) in a.iter().enumerate() {
            let (mut diagonal, mut left) = (0, 0);
            for (j, (other, above)) in b.iter().zip(&mut row).enumerate() {
                let up = *above;
                left = if byte == other {
                    diagonal + 1
                } else {
                    if up > left {
                        steps.mark(i, j);
                    }
                    up.max(left)
                };
                diagonal = up;
                *above = left;
            }
        }
        steps
    }

    fn mark(&mut self, i: usize, j: usize) {
        let at = i * self.width + j;
        if let Some(word) = self.bits.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn over_a(&self, i: usize, j: usize) -> bool {
        let at = i * self.width + j;
        self.bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

fn way_back(a: &[u8], b: &[u8], steps: &Steps) -> Lcs {
    let mut text = Vec::new();
    let mut matches: Vec<LcsMatch> = Vec::new();
    let mut joined = false;
    let (mut before_a, mut before_b) = (a, b);
    while let ([rest_a @ .., byte], [rest_b @ .., other]) = (before_a, before_b) {
        let (i, j) = (rest_a.len(), rest_b.len());
        if byte == other {
            text.push(*byte);
            match matches.last_mut().filter(|_| joined) {
                Some(stretch) => *stretch = LcsMatch { a: i, b: j, len: stretch.len + 1 },
                None => matches.push(LcsMatch { a: i, b: j, len: 1 }),
            }
            (before_a, before_b) = (rest_a, rest_b);
        } else if steps.over_a(i, j) {
            before_a = rest_a;
        } else {
            before_b = rest_b;
        }
        joined = byte == other;
    }
    text.reverse();
    Lcs { text: text.into(), matches }
}
