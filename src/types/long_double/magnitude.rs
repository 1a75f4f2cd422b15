//! Natural numbers of any size, as far as decimal text and binary floats need them.

use std::cmp::Ordering;

/// A natural number; least significant limb first, no zero limb at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Magnitude(Vec<u32>);

/// The largest power of ten in a limb.
const CHUNK: u32 = 1_000_000_000;

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
fn low(wide: u64) -> u32 {
    wide as u32
}

impl Magnitude {
    pub(super) fn new(value: u64) -> Self {
        let mut number = Self(vec![low(value), low(value >> 32)]);
        number.trim();
        number
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bits(&self) -> usize {
        let top = self.0.last().map_or(0, |limb| limb.leading_zeros() as usize);
        self.0.len() * 32 - top
    }

    /// `self * factor + term`.
    pub(super) fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = low(carry);
            carry >>= 32;
        }
        self.0.push(low(carry));
        self.trim();
    }

    /// `self * 10^exponent`.
    pub(super) fn scale_by_ten(&mut self, exponent: usize) {
        for _ in 0..exponent / 9 {
            self.multiply_add(CHUNK, 0);
        }
        for _ in 0..exponent % 9 {
            self.multiply_add(10, 0);
        }
    }

    /// `self * 2^bits`.
    pub(super) fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, bits / 32));
    }

    /// `self - other`, which is not larger.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        for (limb, taken) in self.0.iter_mut().zip(others) {
            let (rest, first) = limb.overflowing_sub(taken);
            let (rest, second) = rest.overflowing_sub(u32::from(borrow));
            borrow = first || second;
            *limb = rest;
        }
        self.trim();
    }

    pub(super) fn decimal(&self) -> String {
        let mut number = self.clone();
        let mut chunks = Vec::new();
        while !number.is_zero() {
            chunks.push(number.divide_by_chunk());
        }
        let first = chunks.pop().unwrap_or(0).to_string();
        chunks.iter().rev().fold(first, |text, chunk| text + &format!("{chunk:09}"))
    }

    /// Divides by [`CHUNK`] and returns the remainder.
    fn divide_by_chunk(&mut self) -> u32 {
        let mut remainder = 0u64;
        for limb in self.0.iter_mut().rev() {
            let wide = remainder << 32 | u64::from(*limb);
            *limb = low(wide / u64::from(CHUNK));
            remainder = wide % u64::from(CHUNK);
        }
        self.trim();
        low(remainder)
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `numerator / denominator` as `(q, exponent, more)`: between `q * 2^exponent` and one `q` more,
/// exactly it unless `more`; `q` has 66 bits. Neither is zero.
pub(super) fn quotient(mut numerator: Magnitude, mut denominator: Magnitude) -> (u128, i64, bool) {
    const BITS: i64 = 66;
    let (above, below) = (numerator.bits(), denominator.bits());
    denominator.shift_left(above.saturating_sub(below));
    numerator.shift_left(below.saturating_sub(above));
    let mut exponent = i64::try_from(above).unwrap_or(0) - i64::try_from(below).unwrap_or(0);
    if numerator < denominator {
        numerator.shift_left(1);
        exponent -= 1;
    }
    let mut quotient = 0u128;
    for _ in 0..BITS {
        quotient <<= 1;
        if numerator >= denominator {
            numerator.subtract(&denominator);
            quotient |= 1;
        }
        numerator.shift_left(1);
    }
    (quotient, exponent - BITS + 1, !numerator.is_zero())
}
