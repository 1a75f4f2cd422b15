//! A tunnel to a server that delivers bytes of a client that is gone, as a proxy may.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};

/// Delivers some bytes of the first connection at once, and the rest on demand. It forwards later
/// connections as they are.
pub(crate) struct Tunnel {
    held: Arc<AtomicUsize>,
    release: Sender<()>,
    first: JoinHandle<()>,
}

impl Tunnel {
    /// Listens at `entrance` and forwards to the server's socket.
    pub(crate) fn open(entrance: &Path, server: PathBuf, delivered_at_once: u64) -> Self {
        let listener = UnixListener::bind(entrance).unwrap();
        let held = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&held);
        let (release, released) = channel();
        let connected = move || (listener.accept().unwrap().0, UnixStream::connect(&server));
        let first = spawn(move || {
            let (client, server) = connected();
            let server = server.unwrap();
            let replies = pass(server.try_clone().unwrap(), client.try_clone().unwrap());
            std::io::copy(&mut (&client).take(delivered_at_once), &mut &server).unwrap();
            // Later connections come from another client. The thread ends with the test.
            spawn(move || {
                loop {
                    let (client, server) = connected();
                    let server = server.unwrap();
                    pass(server.try_clone().unwrap(), client.try_clone().unwrap());
                    pass(client, server);
                }
            });
            let held = hold(client, &counter);
            released.recv().unwrap();
            // The server may have closed the connection.
            let _ = (&server).write_all(&held);
            let _ = server.shutdown(Shutdown::Write);
            // Waits until the server has handled everything.
            replies.join().unwrap();
        });
        Self { held, release, first }
    }

    /// The number of bytes not delivered yet.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Delivers the held bytes and waits until the server has handled them.
    pub(crate) fn release(self) {
        self.release.send(()).unwrap();
        self.first.join().unwrap();
    }
}

/// Collects everything that a client still sends.
fn hold(mut client: UnixStream, counter: &AtomicUsize) -> Vec<u8> {
    let (mut held, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(1..) = client.read(&mut piece).inspect(|read| held.extend(&piece[..*read])) {
        counter.store(held.len(), Ordering::Relaxed);
    }
    held
}

/// Forwards bytes in one direction until the end, even if the receiver is gone.
fn pass(mut from: UnixStream, mut to: UnixStream) -> JoinHandle<()> {
    spawn(move || {
        let mut piece = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            let _ = to.write_all(&piece[..read]);
        }
        let _ = to.shutdown(Shutdown::Write);
    })
}
