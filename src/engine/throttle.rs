//! Slows writers down before they would have to stop.

use crate::sync::Instant;
use std::time::Duration;

/// Bytes per second that writers are limited to when pressure begins.
const GENTLE_RATE: f64 = 64e6;
/// Bytes per second that writers are limited to just before they must stop.
const HARSH_RATE: f64 = 1e6;
/// Shorter sleeps are accumulated, since the kernel's timers are not finer.
const SHORTEST_SLEEP: Duration = Duration::from_micros(500);
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// Spreads delays over writes. Only the leader of commits uses it.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    paid_until: Option<Instant>,
}

impl Throttle {
    /// How long to sleep before writing `bytes` more under `pressure` (above 0, at most 1).
    pub(crate) fn delay(&mut self, bytes: usize, pressure: f64, now: Instant) -> Duration {
        let rate = GENTLE_RATE * (HARSH_RATE / GENTLE_RATE).powf(pressure.clamp(0.0, 1.0));
        let cost = Duration::from_secs_f64(bytes as f64 / rate);
        let due = self.paid_until.unwrap_or(now).max(now) + cost;
        self.paid_until = Some(due);
        let owed = due.duration_since(now);
        if owed < SHORTEST_SLEEP { Duration::ZERO } else { owed.min(LONGEST_SLEEP) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_pressure_and_are_saved_up() {
        let now = Instant::now();
        let total = |pressure: f64| {
            let mut throttle = Throttle::default();
            let delays: Vec<_> = (0..50).map(|_| throttle.delay(1000, pressure, now)).collect();
            assert!(delays.iter().all(|d| d.is_zero() || *d >= SHORTEST_SLEEP));
            throttle.paid_until.unwrap() - now
        };
        assert!(total(0.1) < Duration::from_millis(2));
        assert!(total(0.9) > total(0.5));
        assert!(total(1.0) >= Duration::from_millis(49), "1 MB/s at the end");
    }
}
