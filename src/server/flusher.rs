//! Flushes the store once a second if it was opened with `--sync off` and `CONFIG SET appendfsync
//! everysec` came later.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::Server;

const INTERVAL: Duration = Duration::from_secs(1);

/// A thread that checks every second whether to flush. Dropping this value ends the thread.
pub(crate) struct Flusher {
    /// Carries no message: dropping it tells the thread to end.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    pub(crate) fn start(server: &Arc<Server>) -> std::io::Result<Self> {
        let (alive, ended) = channel();
        let server = Arc::clone(server);
        let thread = crate::sync::spawn("lsmkv-flusher", move || flush_until(&ended, &server))?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

fn flush_until(ended: &Receiver<()>, server: &Server) {
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if server.settings.flushes_every_second()
            && let Err(error) = server.db.sync()
        {
            server.note_failure(&error);
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}
