//! The growth of a reply buffer.
//!
//! A full buffer moves to a larger one, and for a moment takes the memory of both. A long reply
//! announces its number of elements: once some of them are written, the buffer grows to the
//! expected total at once. Memory that is reserved and not written costs nothing.

/// A limit on the growth of a reply buffer.
pub(crate) trait GrowthLimit {
    /// The capacity for a buffer that needs `least` bytes and probably `likely`; `None` if `least`
    /// is too much.
    fn grant(&self, least: usize, likely: usize) -> Option<usize>;
}

/// A buffer up to this size doubles without asking the limit.
pub(super) const UNCHECKED_BYTES: usize = 64 << 10;

/// The capacity of a new buffer.
const INITIAL_BYTES: usize = 512;

/// An estimate of the size of an array, from the elements written so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forecast {
    begin: usize,
    expected: usize,
    seen: usize,
}

impl Forecast {
    /// A forecast for `expected` elements from offset `begin` on.
    pub(super) fn new(begin: usize, expected: usize) -> Self {
        Self { begin, expected, seen: 0 }
    }

    /// Counts one written element.
    #[inline]
    pub(super) fn count(&mut self) {
        self.seen += 1;
    }

    /// The estimated number of bytes still to come when the buffer holds `len`, from the average so
    /// far. A few large elements must not reserve memory for very many. So an estimate far beyond
    /// `len` is reduced, and the buffer moves once more while it is less than half its final size.
    fn rest(&self, len: usize) -> usize {
        let written = len.saturating_sub(self.begin);
        let left = self.expected.saturating_sub(self.seen);
        let rest = (written / self.seen.max(1)).saturating_mul(left);
        let rest = rest.saturating_add(rest / 16);
        if rest / 8 > len { len.saturating_mul(3) } else { rest }
    }
}

/// The new capacity of a buffer of `len` bytes that needs room for `needed` more. It grows at least
/// by a fraction of `len`, so a wrong forecast costs few moves.
pub(super) fn target_capacity(len: usize, needed: usize, forecast: Forecast) -> usize {
    let part = if len <= UNCHECKED_BYTES { len.max(INITIAL_BYTES) } else { len / 4 };
    len.saturating_add(needed).saturating_add(forecast.rest(len).max(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capacities of a buffer while elements of these sizes are written.
    fn sizes(elements: &[usize]) -> Vec<usize> {
        let mut forecast = Forecast::new(0, elements.len());
        let (mut len, mut capacity, mut sizes) = (0, 0, Vec::new());
        for bytes in elements {
            if len + bytes > capacity {
                capacity = target_capacity(len, *bytes, forecast);
                sizes.push(capacity);
            }
            len += bytes;
            forecast.count();
        }
        sizes
    }

    #[test]
    fn a_long_reply_of_like_elements_moves_only_while_it_is_small() {
        for each in [10, 100, 5000, 1 << 20] {
            let elements = vec![each; (200 << 20) / each];
            let sizes = sizes(&elements);
            let (last, before) = (sizes[sizes.len() - 1], sizes[sizes.len() - 2]);
            assert!(last < 250 << 20, "{each}: {sizes:?}");
            assert!(before <= last / 2, "{each}: {sizes:?}");
        }
    }

    #[test]
    fn a_forecast_that_errs_takes_no_endless_room_and_costs_few_moves() {
        let mut elements = vec![50 << 20];
        elements.resize(1_000_000, 1);
        assert!(sizes(&elements).iter().all(|size| *size < 500 << 20));
        let mut elements = vec![1; 100_000];
        elements.resize(101_000, 1 << 20);
        assert!(sizes(&elements).len() < 60, "{}", sizes(&elements).len());
    }
}
