//! Calls that wait at a server, so that a close can end them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::socket::Socket;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::descriptors::Listed;

/// The sockets of calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    next: u64,
    sockets: HashMap<u64, (Listed, Socket)>,
    /// Those of handles made from the store, which end with it.
    handles: Vec<Weak<Waits>>,
}

/// A socket that a close shuts down, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    waits: Arc<Waits>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waits.state().sockets.remove(&self.number);
    }
}

impl Waits {
    /// Notes that calls wait on a socket from now on.
    pub(super) fn enter(self: &Arc<Self>, socket: &Socket) -> Result<Waiting> {
        let socket = socket.try_clone().map_err(|error| {
            Error::new(ErrorKind::Io, format!("a second handle of a socket: {error}"))
        })?;
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        state.next += 1;
        let number = state.next;
        state.sockets.insert(number, (Listed::new(socket.descriptor()), socket));
        Ok(Waiting { waits: Arc::clone(self), number })
    }

    /// The waits of a handle that is made from the store, which a close of the store ends too.
    pub(super) fn of_handle(&self) -> Result<Arc<Self>> {
        let handle = Arc::<Self>::default();
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        state.handles.retain(|known| known.strong_count() > 0);
        state.handles.push(Arc::downgrade(&handle));
        Ok(handle)
    }

    /// Ends all waits, and refuses later ones.
    pub(crate) fn close(&self) {
        let handles = {
            let mut state = self.state();
            state.closed = true;
            state.sockets.values().for_each(|(_, socket)| socket.shut_down());
            std::mem::take(&mut state.handles)
        };
        handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.close());
    }

    /// Fails once the store is closed.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.state().closed { Err(closed()) } else { Ok(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the handle of the remote store was closed")
}
