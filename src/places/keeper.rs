//! A connection to the holder that keeps a view, walks over keys, or both for handles of this
//! process, and what its loss means for them.
//!
//! Threads: any, one after the other. The lock is the standard library's (see `places`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::store::SharedStore;
use crate::commands::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::remote::{Line, LineFailure, Remote, Unanswered};

/// What a handle keeps at the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Snapshot,
    Transaction,
    Walk,
}

impl Kept {
    /// What the loss of the connection means.
    fn loss(self) -> &'static str {
        match self {
            Self::Snapshot => {
                "the connection to the process that held the store is lost, and with it this \
                 snapshot: take another one"
            }
            Self::Transaction => {
                "the connection to the process that held the store is lost, and with it this \
                 transaction: nothing of it was committed, begin it again"
            }
            Self::Walk => {
                "the connection to the process that held the store is lost, and with it this \
                 iterator: begin another one"
            }
        }
    }
}

/// The connection, for all handles that need it.
#[derive(Debug)]
pub(super) struct Keeper {
    store: SharedStore,
    state: Mutex<State>,
    /// Whether the view was ended; walks may go on.
    view_over: AtomicBool,
}

#[derive(Debug)]
enum State {
    Open(Box<Line>),
    /// It ended for this reason. `committing`: while the reply to a commit was awaited.
    Lost {
        cause: Error,
        committing: bool,
    },
    /// Given back.
    Over,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let State::Open(line) = std::mem::replace(&mut *self.state(), State::Over) {
            line.retire();
        }
    }
}

impl Keeper {
    /// Connects to the holder, which begins to keep a view if `view` names one.
    pub(super) fn open(
        store: &SharedStore,
        remote: &Remote,
        view: Option<&[u8]>,
    ) -> std::result::Result<Arc<Self>, Unanswered> {
        let mut line = Line::open(remote)?;
        if let Some(view) = view {
            line.begin(&[b"LSMKV.SHARED", b"VIEW", view]).map_err(LineFailure::before_use)?;
        }
        let (store, state) = (store.clone(), Mutex::new(State::Open(Box::new(line))));
        Ok(Arc::new(Self { store, state, view_over: AtomicBool::new(false) }))
    }

    pub(super) fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Calls `work` before anything is kept: another holder can be asked if this one is gone.
    pub(super) fn first<T>(
        &self,
        work: impl FnOnce(&mut Line) -> std::result::Result<T, LineFailure>,
    ) -> std::result::Result<T, Unanswered> {
        match &mut *self.state() {
            State::Open(line) => work(line).map_err(LineFailure::before_use),
            State::Lost { cause, .. } => Err(Unanswered::Failed(cause.clone())),
            State::Over => Err(Unanswered::Failed(closed())),
        }
    }

    /// Calls `work` with the connection, for a handle that keeps something by it.
    pub(super) fn with<T>(
        &self,
        kept: Kept,
        work: impl FnOnce(&mut Line) -> std::result::Result<T, LineFailure>,
    ) -> Result<T> {
        self.attempt(kept, false, work)
    }

    /// Calls `work`, which commits the transaction.
    pub(super) fn commit(
        &self,
        work: impl FnOnce(&mut Line) -> std::result::Result<Reply, LineFailure>,
    ) -> Result<Reply> {
        self.attempt(Kept::Transaction, true, work)
    }

    /// Whether the connection is lost. Fails if that happened while a commit was under way.
    pub(super) fn is_lost(&self) -> Result<bool> {
        match &*self.state() {
            State::Lost { cause, committing: true } => {
                Err(self.told(Kept::Transaction, cause, true))
            }
            State::Lost { .. } => Ok(true),
            State::Open(_) | State::Over => Ok(false),
        }
    }

    /// Ends the view. If that fails, the end of the connection ends it.
    pub(super) fn end_view(&self) {
        self.end(|line| {
            self.view_over.store(true, Ordering::Relaxed);
            line.end(&[b"LSMKV.SHARED", b"END"])?;
            line.is_home();
            Ok(())
        });
    }

    /// Ends a walk.
    pub(super) fn free_walk(&self, number: &[u8]) {
        self.end(|line| line.end(&[b"LSMKV.SHARED", b"FREE", number]));
    }

    fn end(&self, work: impl FnOnce(&mut Line) -> std::result::Result<(), LineFailure>) {
        let mut state = self.state();
        if let State::Open(line) = &mut *state
            && let Err(LineFailure::NotSent(cause) | LineFailure::Lost(cause)) = work(line)
        {
            *state = State::Lost { cause, committing: false };
        }
    }

    fn attempt<T>(
        &self,
        kept: Kept,
        commits: bool,
        work: impl FnOnce(&mut Line) -> std::result::Result<T, LineFailure>,
    ) -> Result<T> {
        let mut state = self.state();
        // Other handles of a transaction may outlive its own. They must not reach the store itself.
        if kept != Kept::Walk && self.view_over.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Closed, "the transaction is over"));
        }
        let (cause, committing) = match &mut *state {
            State::Open(line) => match work(line) {
                Ok(answer) => return Ok(answer),
                Err(LineFailure::Replied(error)) => return Err(error),
                Err(LineFailure::NotSent(cause)) => (cause, false),
                Err(LineFailure::Lost(cause)) => (cause, commits),
            },
            State::Lost { cause, committing } => return Err(self.told(kept, cause, *committing)),
            State::Over => return Err(closed()),
        };
        let told = self.told(kept, &cause, committing);
        // The connection ends here, so that the holder learns of it even if it was only slow.
        *state = State::Lost { cause, committing };
        Err(told)
    }

    /// The error for a handle whose connection is lost.
    fn told(&self, kept: Kept, cause: &Error, committing: bool) -> Error {
        let kind = match cause.kind() {
            // The store was closed here.
            ErrorKind::Closed => return cause.clone(),
            ErrorKind::Timeout => ErrorKind::Timeout,
            _ => ErrorKind::Io,
        };
        let text = match (kept, committing) {
            (Kept::Transaction, true) => {
                "the reply to the commit is lost, and the transaction may or may not have been \
                 committed"
            }
            _ => kept.loss(),
        };
        self.store.told(cause.wrap(kind, text))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the handle is closed")
}
