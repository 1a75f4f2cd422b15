//! A limit on bytes a second, shared by all compactions of a store.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Tokens are bytes; a caller that overdraws sleeps until the account is level again.
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_second: u64,
    account: Mutex<Account>,
}

#[derive(Debug)]
struct Account {
    /// Up to when the bytes taken so far are paid for.
    paid_until: Instant,
}

/// Longest single sleep, so that a stopping store is not kept waiting.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

impl RateLimit {
    /// 0 means no limit.
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, account: Mutex::new(Account { paid_until: Instant::now() }) }
    }

    /// Takes `bytes`; sleeps as long as the limit asks, in short steps while `go_on` agrees.
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
            std::thread::sleep(left.min(LONGEST_SLEEP));
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
