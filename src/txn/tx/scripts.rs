//! What a script that runs on a [`Tx`] asks of it.

use std::time::Duration;

use crate::txn::tx::Tx;

/// What a script may take before it is given up, to start again elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptBudget {
    /// `None` for what the options allow.
    pub(crate) time: Option<Duration>,
    /// Bytes of Lua values beside those that are there before.
    pub(crate) memory: usize,
}

/// What both runs of a script that starts again have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptStart {
    /// The seed of its random numbers.
    pub(crate) seed: u64,
    /// The time that it sees, in milliseconds since 1970.
    pub(crate) now: u64,
    /// What it may take before it is given up.
    pub(crate) budget: Option<ScriptBudget>,
}

impl Tx<'_> {
    /// Prepares for a script. `restartable`: it may ask to be started again alone.
    pub(in crate::txn) fn start_script(&mut self, start: ScriptStart, restartable: bool) {
        (self.script_start, self.restartable) = (Some(start), restartable);
    }

    /// Limits what a script may take that only reads.
    pub(crate) fn limit_script(&mut self, budget: ScriptBudget) {
        let start =
            ScriptStart { seed: self.store.random_seed(), now: self.now, budget: Some(budget) };
        self.start_script(start, false);
    }

    /// The seed of a script's random numbers.
    pub(crate) fn script_seed(&self) -> u64 {
        self.script_start.map_or_else(|| self.store.random_seed(), |start| start.seed)
    }

    /// The time that a script sees, in milliseconds since 1970.
    pub(crate) fn script_time(&self) -> u64 {
        self.script_start.map_or(self.now, |start| start.now)
    }

    /// What a script may take before it is given up.
    pub(crate) fn script_budget(&self) -> Option<ScriptBudget> {
        self.script_start.and_then(|start| start.budget)
    }

    /// Whether a script that needs to be alone must be started again.
    pub(crate) fn is_restartable(&self) -> bool {
        self.restartable
    }

    /// Asks for the script to be started again alone.
    pub(crate) fn restart_alone(&mut self) {
        self.wants_alone = true;
    }

    /// Whether the script asked to be started again alone.
    pub(in crate::txn) fn wants_alone(&self) -> bool {
        self.wants_alone
    }
}
