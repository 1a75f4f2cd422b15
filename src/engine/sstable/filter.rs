//! A blocked Bloom filter: each key sets its bits within one 64-byte line, so that a check costs
//! one cache miss.
//!
//! ```text
//! filter = line (8 * u64 le) * n | bits set for a key u8
//! ```
//!
//! The line is `high half of the hash * n >> 32`. Bit `i` in the line is the top nine bits of
//! `hash * MULTIPLIER^(i + 1)`.

use super::format::Malformed;

const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 512;
/// An odd number with well mixed bits. It is part of the file format.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// More bits per key than this gain nothing within a line.
const MAX_PROBES: u8 = 12;
/// Keeps the payload below 4 GiB.
const MAX_LINES: u64 = (u32::MAX as u64 - 64) / LINE_BYTES as u64;

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Recognises most keys that are not in the table, and never rejects one that is.
#[derive(Debug)]
pub(super) struct Filter {
    lines: Box<[Line]>,
    probes: u8,
}

/// The positions of the bits of a key in its line, as word and mask.
#[inline]
fn positions(hash: u64, probes: u8) -> impl Iterator<Item = (usize, u64)> {
    (0..probes).scan(hash, |mixed, _| {
        *mixed = mixed.wrapping_mul(MULTIPLIER);
        let bit = *mixed >> 55;
        Some(((bit >> 6) as usize, 1 << (bit & 63)))
    })
}

#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Builds the payload from the hashes of all distinct keys; `None` if the table gets no filter.
pub(super) fn build(hashes: &[u64], bits_per_key: u32) -> Option<Vec<u8>> {
    if bits_per_key == 0 || hashes.is_empty() {
        return None;
    }
    let bits = (hashes.len() as u64).saturating_mul(u64::from(bits_per_key));
    let count = usize::try_from(bits.div_ceil(LINE_BITS).clamp(1, MAX_LINES)).ok()?;
    let probes = probes_for(bits_per_key);
    let mut lines = vec![Line::default(); count];
    for &hash in hashes {
        let Some(line) = lines.get_mut(line_of(hash, count)) else { continue };
        for (word, mask) in positions(hash, probes) {
            if let Some(word) = line.0.get_mut(word) {
                *word |= mask;
            }
        }
    }
    let mut out = Vec::with_capacity(count * LINE_BYTES + 1);
    out.extend(lines.iter().flat_map(|line| line.0).flat_map(u64::to_le_bytes));
    out.push(probes);
    Some(out)
}

/// Number of bits to set per key. `bits * ln 2` would be optimal; a little less suits lines, which
/// fill unevenly.
fn probes_for(bits_per_key: u32) -> u8 {
    let best = u64::from(bits_per_key) * 62 / 100;
    u8::try_from(best).unwrap_or(MAX_PROBES).clamp(1, MAX_PROBES)
}

impl Filter {
    /// Decodes the payload of a filter.
    pub(super) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (&probes, lines) = payload.split_last().ok_or(Malformed("filter is empty"))?;
        let (chunks, rest) = lines.as_chunks::<LINE_BYTES>();
        if chunks.is_empty() || !rest.is_empty() || !(1..=MAX_PROBES).contains(&probes) {
            return Err(Malformed("filter has an impossible shape"));
        }
        let line = |chunk: &[u8; LINE_BYTES]| {
            let mut line = Line::default();
            for (word, bytes) in line.0.iter_mut().zip(chunk.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            line
        };
        Ok(Self { lines: chunks.iter().map(line).collect(), probes })
    }

    /// Whether a key with this hash may be in the table.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let Some(line) = self.lines.get(line_of(hash, self.lines.len())) else { return true };
        positions(hash, self.probes)
            .all(|(word, mask)| line.0.get(word).is_none_or(|w| w & mask != 0))
    }

    /// Memory that the filter takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.lines.len() * LINE_BYTES + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::hash::stable_hash;

    fn hashes(range: std::ops::Range<u32>) -> Vec<u64> {
        range.map(|i| stable_hash(&i.to_be_bytes())).collect()
    }

    #[test]
    fn no_present_key_is_denied_and_few_absent_ones_pass() {
        for (count, bits, most) in [(100_000, 10, 1.5), (100_000, 16, 0.35), (1_000, 10, 1.5)] {
            let present = hashes(0..count);
            let filter = Filter::decode(&build(&present, bits).unwrap()).unwrap();
            assert!(present.iter().all(|&h| filter.may_contain(h)));
            let passed =
                hashes(1_000_000..1_200_000).iter().filter(|&&h| filter.may_contain(h)).count();
            let percent = passed as f64 / 2_000.0;
            assert!(percent < most, "{percent}% of absent keys pass at {bits} bits");
        }
    }

    #[test]
    fn zero_bits_mean_no_filter() {
        assert_eq!(build(&[1, 2, 3], 0), None);
    }

    #[test]
    fn a_filter_of_impossible_shape_is_refused() {
        assert!(Filter::decode(&[]).is_err());
        assert!(Filter::decode(&[6]).is_err());
        assert!(Filter::decode(&[0; 65]).is_err());
        assert!(Filter::decode(&[6; 66]).is_err());
        assert!(Filter::decode(&[6; 65]).is_ok());
    }
}
