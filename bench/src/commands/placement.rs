//! Where a client and the server it waits for run.
//!
//! Left to the scheduler, the two move between cores, and each command then pays for waking a core:
//! a quarter of the rate that Redis reaches on one core. So both placements are measured, and the
//! better one counts, row by row.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::Result;

/// Cores of the client's thread and of the server's main thread. The server's background threads
/// run anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Placement {
    /// Both on one core.
    Together,
    /// Each on a core of its own.
    Apart,
}

impl Placement {
    /// The placements that this machine allows.
    pub(crate) fn possible() -> Result<Vec<Self>> {
        let enough = allowed()?.len() > 1;
        Ok(if enough { vec![Self::Together, Self::Apart] } else { vec![Self::Together] })
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Apart => "apart",
        }
    }

    /// Binds this thread and the main thread of `server` to their cores.
    pub(crate) fn apply(self, server: Pid) -> Result<()> {
        let cores = allowed()?;
        let client = *cores.first().ok_or("no core is allowed")?;
        let other = match self {
            Self::Together => client,
            Self::Apart => *cores.get(1).ok_or("there is one core only")?,
        };
        bind(Some(server), other)?;
        bind(None, client)
    }
}

fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

fn bind(thread: Option<Pid>, core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(thread, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_placed_with_itself_runs_on_one_core() {
        // On a thread of its own: the binding ends with it.
        let thread = std::thread::spawn(|| {
            let before = allowed().unwrap();
            Placement::Together.apply(rustix::thread::gettid()).unwrap();
            (before, allowed().unwrap())
        });
        let (before, after) = thread.join().unwrap();
        assert_eq!(after, before[..1]);
    }
}
