//! Ends scripts that run too long or that SCRIPT KILL names.
//!
//! A hook looks every few thousand instructions whether the script must end. Only unwinding ends
//! every script: an error could be caught by `pcall`, by a handler of `xpcall` or in a coroutine,
//! and the script would go on. The Lua state is thrown away afterwards.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mlua::{HookTriggers, Lua, VmState};
use parking_lot::Mutex;

/// The number of Lua instructions between two looks.
const INSTRUCTIONS: u32 = 10_000;

/// Why a script must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It ran too long.
    Time,
    /// It needs more memory than it may take here.
    Memory,
    /// SCRIPT KILL or FUNCTION KILL.
    Kill,
    /// It cannot go on: it starts again alone, or the store has failed.
    Abort,
}

/// What is thrown to end a script.
pub(super) struct Stopped;

const GO_ON: u8 = 0;

/// The clock and the switch of one Lua state.
#[derive(Debug)]
pub(super) struct Watch {
    born: Instant,
    /// When the script must end, in microseconds since `born`.
    deadline: AtomicU64,
    stop: AtomicU8,
    /// Whether the script has written.
    wrote: AtomicBool,
}

impl Watch {
    fn new() -> Self {
        Self {
            born: Instant::now(),
            deadline: AtomicU64::new(u64::MAX),
            stop: AtomicU8::new(GO_ON),
            wrote: AtomicBool::new(false),
        }
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Prepares for a script that may run this long, and returns when it starts.
    pub(super) fn start(&self, max_time: Option<Duration>) -> Instant {
        let now = Instant::now();
        let limit =
            max_time.map_or(u64::MAX, |max| u64::try_from(max.as_micros()).unwrap_or(u64::MAX));
        let begin = now.saturating_duration_since(self.born).as_micros();
        let begin = u64::try_from(begin).unwrap_or(u64::MAX);
        self.deadline.store(begin.saturating_add(limit), Ordering::Relaxed);
        self.stop.store(GO_ON, Ordering::Relaxed);
        self.wrote.store(false, Ordering::Relaxed);
        now
    }

    /// Notes that the script has called a command, which wrote or not.
    pub(super) fn note_write(&self, wrote: bool) {
        if wrote {
            self.wrote.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the script has written.
    pub(super) fn has_written(&self) -> bool {
        self.wrote.load(Ordering::Relaxed)
    }

    /// Ends the script at the next look, unless it ends for another reason already.
    pub(super) fn end(&self, why: Stop) {
        let code = match why {
            Stop::Time => 1,
            Stop::Kill => 2,
            Stop::Abort => 3,
            Stop::Memory => 4,
        };
        let _ = self.stop.compare_exchange(GO_ON, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Why the script ends, if it does.
    pub(super) fn reason(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Relaxed) {
            1 => Some(Stop::Time),
            2 => Some(Stop::Kill),
            3 => Some(Stop::Abort),
            4 => Some(Stop::Memory),
            _ => None,
        }
    }

    /// Whether the script must end now.
    pub(super) fn is_over(&self) -> bool {
        if self.reason().is_none() && self.micros() > self.deadline.load(Ordering::Relaxed) {
            self.end(Stop::Time);
        }
        self.reason().is_some()
    }
}

/// Sets the hook of a new Lua state.
pub(super) fn watch(lua: &Lua) -> mlua::Result<Arc<Watch>> {
    let watch = Arc::new(Watch::new());
    let seen = Arc::clone(&watch);
    let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
    lua.set_global_hook(triggers, move |_, _| {
        if seen.is_over() {
            resume_unwind(Box::new(Stopped));
        }
        Ok(VmState::Continue)
    })?;
    Ok(watch)
}

/// A script that runs.
#[derive(Clone, Debug)]
pub(super) struct RunningScript {
    pub(super) watch: Arc<Watch>,
    pub(super) since: Instant,
    /// The digest of the script, or the name of the function.
    pub(super) name: Arc<str>,
    /// The command that started it, for a function.
    pub(super) command: Vec<Vec<u8>>,
    pub(super) is_function: bool,
}

/// The scripts that run on a store.
#[derive(Debug, Default)]
pub(super) struct RunningScripts(Mutex<Vec<Arc<RunningScript>>>);

/// Removes a script from the list when it ends.
pub(super) struct Entered<'a> {
    all: &'a RunningScripts,
    script: Arc<RunningScript>,
}

impl RunningScripts {
    /// Adds a script until the guard is dropped.
    pub(super) fn enter(&self, script: RunningScript) -> Entered<'_> {
        let script = Arc::new(script);
        self.0.lock().push(Arc::clone(&script));
        Entered { all: self, script }
    }

    /// The script, or function, that has run longest.
    pub(super) fn longest(&self, functions: bool) -> Option<Arc<RunningScript>> {
        let all = self.0.lock();
        all.iter().filter(|it| it.is_function == functions).min_by_key(|it| it.since).cloned()
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(at) = all.iter().position(|it| Arc::ptr_eq(it, &self.script)) {
            all.swap_remove(at);
        }
    }
}
