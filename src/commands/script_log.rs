//! The commands that scripts call, for those who want to see them.
//!
//! A script runs on one thread from its command to its commit, and so does its second run. So the log
//! belongs to the thread, and the layers between hand nothing on.

use std::cell::RefCell;

/// The bytes of calls that are kept at most; later calls are left out.
const MAX_BYTES: usize = 64 << 20;

/// A command that a script has called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptStep {
    pub(crate) database: u32,
    pub(crate) words: Vec<Vec<u8>>,
}

/// The calls of each command that ran a script, in order.
pub(crate) type ScriptSteps = Vec<Vec<ScriptStep>>;

#[derive(Debug, Default)]
struct Log {
    scripts: ScriptSteps,
    bytes: usize,
    /// Whether the last script may start again.
    restarts: bool,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Ends the log of the thread, also after a panic.
struct Recording;

impl Drop for Recording {
    fn drop(&mut self) {
        LOG.take();
    }
}

/// Runs `work` and returns what its scripts have called.
pub(crate) fn record<T>(work: impl FnOnce() -> T) -> (T, ScriptSteps) {
    LOG.with_borrow_mut(|log| *log = Some(Log::default()));
    let _recording = Recording;
    let result = work();
    (result, LOG.take().map_or_else(Vec::new, |log| log.scripts))
}

/// Forgets what was called so far: it was given up.
pub(crate) fn forget() {
    LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| *log = Log::default()));
}

/// Notes that a script begins. `restarts`: it may begin again, and only the last time counts.
pub(super) fn begin(restarts: bool) {
    LOG.with_borrow_mut(|log| {
        let Some(log) = log else { return };
        if log.restarts {
            log.scripts.pop();
        }
        log.scripts.push(Vec::new());
        log.restarts = restarts;
    });
}

/// Notes that the script has called a command.
pub(super) fn note(database: u32, argv: &[&[u8]]) {
    LOG.with_borrow_mut(|log| {
        let Some(log) = log else { return };
        let Some(steps) = log.scripts.last_mut() else { return };
        log.bytes += argv.iter().map(|word| size_of::<Vec<u8>>() + word.len()).sum::<usize>();
        if log.bytes <= MAX_BYTES {
            let words = argv.iter().map(|word| word.to_vec()).collect();
            steps.push(ScriptStep { database, words });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_of_a_script_counts_and_others_stay() {
        note(0, &[b"unseen"]);
        let ((), scripts) = record(|| {
            begin(false);
            note(1, &[b"a", b"b"]);
            begin(true);
            note(2, &[b"first run"]);
            begin(false);
            note(2, &[b"second run"]);
            begin(false);
        });
        let words: Vec<Vec<_>> = scripts
            .iter()
            .map(|steps| steps.iter().map(|step| (step.database, step.words.concat())).collect())
            .collect();
        assert_eq!(
            words,
            [vec![(1, b"ab".to_vec())], vec![(2, b"second run".to_vec())], Vec::new()]
        );
        let ((), scripts) = record(|| {
            begin(true);
            note(0, &[b"given up"]);
            forget();
        });
        assert!(scripts.is_empty());
    }

    #[test]
    fn a_panic_ends_the_log() {
        let recorded = || {
            record(|| {
                begin(false);
                panic!("in a script");
            })
        };
        std::panic::catch_unwind(recorded).unwrap_err();
        assert!(LOG.take().is_none());
    }
}
