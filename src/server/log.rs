//! What the server tells the people who run it. The library writes to no stream of its own accord:
//! whoever starts the server says where its messages go.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the messages go. By default they go nowhere.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<Write>>);

/// Takes a line.
type Write = dyn Fn(&str) + Send + Sync;

impl Log {
    /// Sends every message to a function, which any thread may call.
    pub fn to(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(write)))
    }

    /// Tells one line.
    pub(crate) fn line(&self, text: &str) {
        if let Some(write) = &self.0 {
            write(text);
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Log").field(&self.0.is_some()).finish()
    }
}

/// Limits a message that any client can cause to one per minute.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle {
    /// The time of the last message, in milliseconds since the server started; zero: never.
    last_ms: AtomicU64,
}

impl LogThrottle {
    /// Whether the message may be written again.
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
        let throttle = LogThrottle::default();
        let due = [0, 1, 59_000, 60_001, 60_002, 200_000].map(|now_ms| throttle.is_due(now_ms));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
