//! Lines for whoever runs the server, on standard error.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// One line.
pub(crate) fn line(text: &str) {
    // A server goes on when nobody can read what it says.
    let _ = writeln!(std::io::stderr(), "lsmkv: {text}");
}

/// When something was said last that anybody can bring about: it is said once a minute.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    /// In milliseconds since the server started; zero: never.
    last_ms: AtomicU64,
}

impl Seldom {
    /// Whether it is time to say it again.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        const MINUTE_MS: u64 = 60_000;
        let due = |last_ms| {
            (last_ms == 0 || now_ms.saturating_sub(last_ms) >= MINUTE_MS).then_some(now_ms.max(1))
        };
        self.last_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anybody_can_bring_about_is_said_once_a_minute() {
        let seldom = Seldom::default();
        let due = [0, 1, 59_000, 60_001, 60_002, 200_000].map(|now_ms| seldom.is_due(now_ms));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
