//! How fast a server accepts connections beside clients that were there.
//!
//! Each connection that ends leaves work to the kernel: it frees sockets in bursts, some 50 times a
//! second, on the processor that closed them. Beside 64,000 connections a second a burst took up to
//! 1.1 ms, and whoever asked meanwhile waited for its end. Fewer connections make shorter bursts.

use std::time::{Duration, Instant};

/// The time between two new connections of an event loop, in the long run.
const INTERVAL: Duration = Duration::from_micros(100);
/// So many may come at once: the clients of a program that starts.
const BURST: u32 = 2000;

/// Tells when the next connection is due. Time without connections counts for a burst.
#[derive(Debug)]
pub(super) struct Pace {
    due: Instant,
    interval: Duration,
}

impl Pace {
    /// The pace of a server with so many event loops, which close connections each for itself.
    pub(super) fn new(now: Instant, loops: usize) -> Self {
        let loops = u32::try_from(loops).unwrap_or(1).max(1);
        let interval = INTERVAL / loops;
        Self { due: now.checked_sub(interval * BURST).unwrap_or(now), interval }
    }

    /// The time until the next connection is due.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.due.saturating_duration_since(now)
    }

    /// Counts a connection.
    pub(super) fn note(&mut self, now: Instant) {
        let earliest = now.checked_sub(self.interval * BURST).unwrap_or(now);
        self.due = self.due.max(earliest) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_not_delayed_and_what_follows_comes_one_by_one() {
        let begin = Instant::now() + Duration::from_secs(60);
        let mut pace = Pace::new(begin, 2);
        let mut accept = |now| {
            let is_due = pace.wait(now).is_zero();
            if is_due {
                pace.note(now);
            }
            is_due
        };
        let at_once = (0..10_000).filter(|_| accept(begin)).count();
        assert_eq!(at_once, BURST as usize + 1);
        let later = |n: u32| begin + INTERVAL / 2 * n;
        let in_a_second = (0..20_000).filter(|n| accept(later(*n))).count();
        assert!((19_990..=20_000).contains(&in_a_second), "{in_a_second}");
        let after_a_rest = later(1_000_000);
        let at_once = (0..10_000).filter(|_| accept(after_a_rest)).count();
        assert_eq!(at_once, BURST as usize + 1);
    }
}
