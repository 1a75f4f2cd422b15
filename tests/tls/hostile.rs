//! Clients of a server that send garbage, stall, or are cut off: they end, and others do not notice.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lsmkv::{Options, Remote, Reply};

use crate::certificates::Authority;
use crate::{Served, showing, trusting, until, usual, works};

fn raw(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", served.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Whether the server has ended the connection: nothing but an alert of TLS comes before the end.
fn ends(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    // A reset is an end too: the server has not read all that was sent.
    let outcome = stream.read_to_end(&mut rest);
    let timed_out = outcome.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    !timed_out && rest.len() < 8192
}

/// The first message of a client, as it is sent.
fn client_hello(authority: &Authority) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rediss://localhost:{}", listener.local_addr().unwrap().port());
    let options = Options { connect_timeout_ms: 300, ..trusting(authority) };
    let client = std::thread::spawn(move || Remote::open(&address, &options).unwrap_err());
    let (mut stream, _) = listener.accept().unwrap();
    let mut hello = Vec::new();
    stream.read_to_end(&mut hello).unwrap_or_default();
    client.join().unwrap();
    assert!(hello.len() > 100 && hello[0] == 0x16, "{hello:?}");
    hello
}

#[test]
fn plain_bytes_on_a_port_for_tls_close_the_client_with_one_line_of_log() {
    let (_authority, served, store) = usual();
    for text in [&b"PING\r\n"[..], b"*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = raw(&served);
        stream.write_all(text).unwrap();
        assert!(ends(&mut stream), "{text:?}");
    }
    served.wait_for_log("it sends no TLS on a port for TLS");
    assert_eq!(served.logged("it sends no TLS"), 1, "any client can cause the line");
    works(&store);
}

#[test]
fn random_bytes_end_their_connection_and_nothing_else() {
    let (authority, served, store) = usual();
    let hello = client_hello(&authority);
    let mut state = 88_172_645_463_325_252_u64;
    for round in 0..60_usize {
        let mut bytes: Vec<u8> = (0..600)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        // Some are damaged after a proper beginning, some claim to be long records.
        match round % 3 {
            0 => {}
            1 => bytes = [&hello[..hello.len() * (round + 1) / 61], &bytes].concat(),
            _ => bytes[..5].copy_from_slice(&[0x16, 3, 1, 0, 200]),
        }
        let mut stream = raw(&served);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        assert!(ends(&mut stream), "round {round}");
    }
    works(&store);
}

/// Two hundred clients that never finish the handshake: some send nothing, some half a message, some
/// a byte now and then. All are closed in time, and meanwhile others are served.
#[test]
fn handshakes_that_never_end_are_closed_and_delay_nobody() {
    let authority = Authority::new();
    let identity = authority.sign("server", &["localhost"]);
    let served = Served::start(&Options { server_idle_timeout_s: 1, ..showing(&identity) });
    let hello = client_hello(&authority);
    let store = Remote::open(&served.address(), &trusting(&authority)).unwrap();
    let mut stalled: Vec<TcpStream> = (0..200).map(|_| raw(&served)).collect();
    for (n, stream) in stalled.iter_mut().enumerate() {
        let sent = match n % 4 {
            0 => &[][..],
            1 => &hello[..hello.len() / 2],
            2 => &hello[..1],
            _ => &hello[..],
        };
        stream.write_all(sent).unwrap();
    }
    // A byte now and then keeps nobody: the limit is for the whole handshake.
    let mut drip = raw(&served);
    drip.set_nonblocking(true).unwrap();
    let mut bytes = hello[..hello.len() / 2].chunks(1);
    let mut slowest = Duration::ZERO;
    until("the connection that drips is closed", || {
        let asked = Instant::now();
        // A read, which is sent again if the limit for idle clients ends the connection just now.
        assert_eq!(store.command(&[b"GET", b"none"]).unwrap(), Reply::Nil);
        slowest = slowest.max(asked.elapsed());
        let _ = drip.write_all(bytes.next().unwrap_or_default());
        match drip.read(&mut [0; 64]) {
            Ok(len) => len == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    });
    assert!(slowest < Duration::from_secs(20), "others waited {slowest:?}");
    for stream in &mut stalled {
        assert!(ends(stream));
    }
    served.wait_for_log("has not finished the TLS handshake in 1000 ms");
    until("their memory is back", || served.server.buffered_bytes() < 200 * 1024);
    works(&Remote::open(&served.address(), &trusting(&authority)).unwrap());
}

/// A tunnel that sends on what a client sends, but for what `change` does to it: given the offset of
/// a piece and the piece, it returns false to cut the connection behind it. While it is `held`,
/// nothing comes back.
fn tunnel(
    port: u16,
    held: Arc<AtomicBool>,
    change: impl Fn(usize, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rediss://localhost:{}", listener.local_addr().unwrap().port());
    let change = Arc::new(change);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, change) = (client.unwrap(), Arc::clone(&change));
            let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from_server, mut to_client) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            let held = Arc::clone(&held);
            std::thread::spawn(move || {
                let mut room = [0; 64 << 10];
                while let Ok(len @ 1..) = from_server.read(&mut room) {
                    while held.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if to_client.write_all(&room[..len]).is_err() {
                        break;
                    }
                }
                let _ = to_client.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                let (mut room, mut offset) = ([0; 1024], 0);
                while let Ok(len @ 1..) = client.read(&mut room) {
                    let mut piece = room[..len].to_vec();
                    let goes_on = change(offset, &mut piece);
                    offset += len;
                    if server.write_all(&piece).is_err() || !goes_on {
                        break;
                    }
                }
                let _ = server.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

/// Connections are cut, or a byte of them is changed, at every stage: in the handshake, in the login,
/// in a large value. The client has an error, no half of a value is stored, and the server goes on.
#[test]
fn cut_and_damaged_records_are_errors_and_store_nothing() {
    let (authority, served, store) = usual();
    let options =
        Options { connect_timeout_ms: 5000, reply_timeout_ms: 5000, ..trusting(&authority) };
    let value = vec![b'x'; 100_000];
    let port = served.port();
    for at in [0_usize, 3, 60, 200, 280, 350, 420, 1500, 20_000, 90_000] {
        let cut = tunnel(port, Arc::default(), move |offset, piece| {
            let stays = at.saturating_sub(offset).min(piece.len());
            let goes_on = offset + piece.len() <= at;
            piece.truncate(stays);
            goes_on
        });
        let damaged = tunnel(port, Arc::default(), move |offset, piece| {
            if let Some(byte) = at.checked_sub(offset).and_then(|at| piece.get_mut(at)) {
                *byte ^= 1;
            }
            true
        });
        for address in [cut, damaged] {
            let key = format!("never:{at}");
            let set: [&[u8]; 3] = [b"SET", key.as_bytes(), &value];
            let outcome = Remote::open(&address, &options).and_then(|store| store.command(&set));
            // A changed byte of the first message may be one that nobody minds, such as an extension
            // that is not known; TLS then refuses the handshake as a whole, since both sides sign it.
            assert!(outcome.is_err(), "at {at}");
            assert_eq!(served.db.get(key.as_bytes()).unwrap(), None, "at {at}");
        }
    }
    works(&store);
}

/// A client that asks for much and reads nothing: commands pause while much is unread, and all
/// replies arrive whole once it reads.
#[test]
fn replies_that_nobody_reads_wait_bounded_and_arrive_whole() {
    let (authority, served, store) = usual();
    let value = vec![b'y'; 1 << 20];
    store.command(&[b"SET", b"v", &value]).unwrap();
    let held = Arc::new(AtomicBool::new(false));
    let address = tunnel(served.port(), Arc::clone(&held), |_, _| true);
    let mut session = Remote::open(&address, &trusting(&authority)).unwrap().session().unwrap();
    session.command(&[b"GET", b"none"]).unwrap();
    held.store(true, Ordering::SeqCst);
    let asking = std::thread::spawn(move || {
        let get: Vec<&[u8]> = vec![b"GET", b"v"];
        session.pipeline(&vec![get; 64]).unwrap()
    });
    until("replies wait", || served.server.buffered_bytes() > 1 << 20);
    assert!(served.server.buffered_bytes() < 16 << 20, "{}", served.server.buffered_bytes());
    held.store(false, Ordering::SeqCst);
    let replies = asking.join().unwrap();
    assert_eq!(replies.len(), 64);
    assert!(replies.iter().all(|reply| *reply == Reply::Bulk(value.clone().into())));
}
