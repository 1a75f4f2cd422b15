//! What a script may take, and what happens to its writes if it fails.

use std::time::Duration;

use crate::options::Options;

/// The limits that the user's options set for scripts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptLimits {
    /// The time after which waiting writers fail with BUSY; `None` for never.
    pub(crate) busy_after: Option<Duration>,
    /// The time after which a script is stopped; `None` for never.
    pub(crate) max_time: Option<Duration>,
    /// The most bytes of Lua values.
    pub(crate) max_memory: usize,
    /// The most bytes of pending writes.
    pub(crate) max_bytes: usize,
    /// Whether the writes of a script that fails remain.
    pub(crate) keeps_writes: bool,
}

impl ScriptLimits {
    /// Takes the limits from the options.
    pub(crate) fn new(options: &Options) -> Self {
        let time = |ms: u64| (ms > 0).then(|| Duration::from_millis(ms));
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            busy_after: time(options.script_busy_ms),
            max_time: time(options.script_max_ms),
            max_memory: size(options.script_max_memory),
            max_bytes: size(options.script_max_bytes),
            keeps_writes: options.script_keeps_writes,
        }
    }
}
