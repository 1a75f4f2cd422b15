//! How large the buffer of a reply becomes, and whether it may.
//!
//! A buffer that is full moves to a larger one, and for a moment takes the room of both. A long
//! reply says at its beginning how many elements it has: once some are written, the room for all
//! is taken at once. Room that is taken and not written costs no memory.

/// Decides how much room a reply may have.
pub(crate) trait Room {
    /// How large a buffer that needs `least` bytes, and probably `likely`, may become; `None` if
    /// not even that large.
    fn grant(&self, least: usize, likely: usize) -> Option<usize>;
}

/// Buffers up to this size ask nobody, and double.
pub(super) const SMALL: usize = 64 << 10;

/// A new buffer has room for some replies.
const LEAST: usize = 512;

/// What is known of the elements that a head has announced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forecast {
    begin: usize,
    expected: usize,
    seen: usize,
}

impl Forecast {
    /// So many elements will stand from `begin` on.
    pub(super) fn new(begin: usize, expected: usize) -> Self {
        Self { begin, expected, seen: 0 }
    }

    /// One more is written.
    #[inline]
    pub(super) fn count(&mut self) {
        self.seen += 1;
    }

    /// Bytes that are probably still to come when a buffer has `len`: as those before them on
    /// average. But a few large elements must not take the room of very many: if that is far more
    /// than there is, only a part of it, which leaves the last move to come while the buffer is
    /// less than half as large as at the end.
    fn rest(&self, len: usize) -> usize {
        let written = len.saturating_sub(self.begin);
        let left = self.expected.saturating_sub(self.seen);
        let rest = (written / self.seen.max(1)).saturating_mul(left);
        let rest = rest.saturating_add(rest / 16);
        if rest / 8 > len { len.saturating_mul(3) } else { rest }
    }
}

/// How large a buffer of `len` bytes that needs room for `needed` more should become. Always by a
/// part of what it has, so that a forecast that errs costs few moves.
pub(super) fn likely(len: usize, needed: usize, forecast: Forecast) -> usize {
    let part = if len <= SMALL { len.max(LEAST) } else { len / 4 };
    len.saturating_add(needed).saturating_add(forecast.rest(len).max(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that a buffer has on the way, if each element takes so many bytes.
    fn sizes(elements: &[usize]) -> Vec<usize> {
        let mut forecast = Forecast::new(0, elements.len());
        let (mut len, mut capacity, mut sizes) = (0, 0, Vec::new());
        for bytes in elements {
            if len + bytes > capacity {
                capacity = likely(len, *bytes, forecast);
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
