//! A limit on bytes per second, shared by all compactions of a store.

use crate::sync::{Instant, Mutex};
use std::time::Duration;

/// Limits a rate in bytes per second. A caller that takes more sleeps until its bytes are paid for.
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_second: u64,
    account: Mutex<TokenAccount>,
}

#[derive(Debug)]
struct TokenAccount {
    /// When the bytes taken so far will be paid for.
    paid_until: Instant,
}

/// Longest single sleep, so that a store that stops does not have to wait.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

impl RateLimit {
    /// A limit of `bytes_per_second`; 0 means no limit.
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, account: Mutex::new(TokenAccount { paid_until: Instant::now() }) }
    }

    /// Takes `bytes`, and sleeps as long as the limit demands. The sleep ends early once `go_on`
    /// returns `false`.
    pub fn take(&self, bytes: u64, go_on: impl Fn() -> bool) {
        if self.bytes_per_second == 0 {
            return;
        }
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let until = {
            let mut account = self.account.lock();
            account.paid_until = account.paid_until.max(Instant::now()) + cost;
            account.paid_until
        };
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if !go_on() || left.is_zero() {
                return;
            }
            crate::sync::thread::sleep(left.min(LONGEST_SLEEP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_twice_the_rate_takes_two_seconds_worth() {
        let limit = RateLimit::new(10_000_000);
        let start = Instant::now();
        limit.take(1_000_000, || true);
        limit.take(1_000_000, || true);
        assert!(start.elapsed() >= Duration::from_millis(190));
    }

    #[test]
    fn no_limit_and_a_stop_do_not_sleep() {
        let start = Instant::now();
        RateLimit::new(0).take(u64::MAX, || true);
        RateLimit::new(1).take(1_000_000, || false);
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}
