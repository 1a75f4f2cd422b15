//! A tunnel to a server that delivers for a client that is gone, as proxies may.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};

/// Of the first connection it delivers some bytes, and the others when it is told to. Later
/// connections it just passes on.
pub(crate) struct Tunnel {
    held: Arc<AtomicUsize>,
    release: Sender<()>,
    first: JoinHandle<()>,
}

impl Tunnel {
    /// At `entrance`, to the server's socket.
    pub(crate) fn dig(entrance: &Path, server: PathBuf, delivered_at_once: u64) -> Self {
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
            // Whoever comes now is another client. The thread ends with the test.
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
            // Unless the server has closed the connection.
            let _ = (&server).write_all(&held);
            let _ = server.shutdown(Shutdown::Write);
            // Until the server has done everything that it was sent.
            replies.join().unwrap();
        });
        Self { held, release, first }
    }

    /// Bytes that it has not delivered yet.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Delivers what it holds, and waits until the server has done it.
    pub(crate) fn release(self) {
        self.release.send(()).unwrap();
        self.first.join().unwrap();
    }
}

/// Everything that a client still sends.
fn hold(mut client: UnixStream, counter: &AtomicUsize) -> Vec<u8> {
    let (mut held, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(1..) = client.read(&mut piece).inspect(|read| held.extend(&piece[..*read])) {
        counter.store(held.len(), Ordering::Relaxed);
    }
    held
}

/// Brings bytes one way until there are no more, also when nobody takes them.
fn pass(mut from: UnixStream, mut to: UnixStream) -> JoinHandle<()> {
    spawn(move || {
        let mut piece = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            let _ = to.write_all(&piece[..read]);
        }
        let _ = to.shutdown(Shutdown::Write);
    })
}
