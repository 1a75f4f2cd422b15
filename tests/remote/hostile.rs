//! Servers that lie, stall, stop or refuse, and addresses of nothing: each is a status that fits, in time.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use lsmkv::{ErrorKind, Remote, Reply};
use tempfile::TempDir;

use crate::node::{Answer, fake_node};
use crate::quick;
use crate::servers::{Cluster, Server, cli, free_port};

/// A server that answers the handshake, then each command with the next of these bytes, and then
/// stays silent or closes the connection.
fn liar(answers: &[&[u8]], closes: bool) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let answers: Vec<Vec<u8>> = answers.iter().map(|it| it.to_vec()).collect();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut room = [0; 4096];
            let mut script =
                std::iter::once(b"%1\r\n+proto\r\n:3\r\n".to_vec()).chain(answers.clone());
            let mut left = answers.len() + 1;
            while stream.read(&mut room).is_ok_and(|len| len > 0) {
                stream.write_all(&script.next().unwrap_or_default()).unwrap_or_default();
                if closes && left <= 1 {
                    break;
                }
                left = left.saturating_sub(1);
            }
            if !closes {
                kept.push(stream);
            }
        }
    });
    let address = format!("unix://{}", path.display());
    (dir, address)
}

/// Whatever a server says or does not say, a call ends in time with a status that fits.
#[test]
fn a_server_that_lies_or_is_silent_is_an_error_in_time() {
    let get: &[&[u8]] = &[b"GET", b"k"];
    let cases: &[(&[&[u8]], bool, ErrorKind)] = &[
        (&[], false, ErrorKind::Timeout),
        (&[b""], true, ErrorKind::Io),
        (&[b"nonsense\r\n"], false, ErrorKind::Io),
        (&[b"$5\r\nab"], false, ErrorKind::Timeout),
        (&[b"$5\r\nab"], true, ErrorKind::Io),
        (&[b"$99999999999\r\nab"], false, ErrorKind::Io),
        (&[b"*1000000000\r\n:1\r\n"], false, ErrorKind::Timeout),
        (&[b"$-7\r\n"], false, ErrorKind::Io),
    ];
    for (answers, closes, kind) in cases {
        let (_dir, address) = liar(answers, *closes);
        let store = Remote::open(&address, &quick()).unwrap();
        let begun = Instant::now();
        let error = store.command(get).unwrap_err();
        assert_eq!(error.kind(), *kind, "{answers:?}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{answers:?}: {:?}", begun.elapsed());
    }
    // A handshake of nonsense, and none at all.
    let (_dir, address) = liar(&[], false);
    let silent = address.replace("socket", "silent");
    let _listener = UnixListener::bind(silent.strip_prefix("unix://").unwrap()).unwrap();
    assert_eq!(Remote::open(&silent, &quick()).unwrap_err().kind(), ErrorKind::Timeout);
}

/// A write whose reply is lost is reported as such and not sent again.
#[test]
fn a_lost_reply_to_a_write_is_no_reason_to_send_it_again() {
    let (_dir, address) = liar(&[b""], true);
    let store = Remote::open(&address, &quick()).unwrap();
    let error = store.command(&[b"INCR", b"n"]).unwrap_err();
    assert!(error.message().contains("may or may not have run"), "{error}");
}

#[test]
fn a_wrong_address_or_password_is_told_at_the_open() {
    let refused = |address: &str, kind: ErrorKind, part: &str| {
        let begun = Instant::now();
        let error = Remote::open(address, &quick()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(part), "{error}");
        assert!(!error.message().contains("secret"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{address}: {:?}", begun.elapsed());
    };
    let dir = tempfile::tempdir().unwrap();
    let missing = format!("unix://{}/none", dir.path().display());
    refused(&missing, ErrorKind::Io, "none");
    // A socket whose server is gone.
    drop(UnixListener::bind(dir.path().join("stale")).unwrap());
    refused(&format!("unix://{}/stale", dir.path().display()), ErrorKind::Io, "refused");
    refused("redis://127.0.0.1:1", ErrorKind::Io, "127.0.0.1:1");
    refused("redis-cluster://127.0.0.1:1", ErrorKind::Io, "127.0.0.1:1");
    for scheme in ["redis", "redis-cluster"] {
        let begun = Instant::now();
        let address = format!("{scheme}://no.such.host.invalid");
        let error = Remote::open(&address, &quick()).unwrap_err();
        // As the resolver of the machine says so, or is silent.
        assert!([ErrorKind::Io, ErrorKind::Timeout].contains(&error.kind()), "{error}");
        assert!(error.message().contains("no.such.host.invalid"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    refused("redis://u:secret@h:x", ErrorKind::Invalid, "port");

    let Some(server) = Server::redis("remote::password", &["--requirepass", "secret"]) else {
        return;
    };
    refused(&server.address(), ErrorKind::Invalid, "NOAUTH");
    let port = free_port();
    let on_port = ["--port", &port.to_string(), "--requirepass", "secret"];
    let Some(server) = Server::redis("remote::password", &on_port) else { return };
    refused(&format!("redis://:secret-wrong@127.0.0.1:{port}"), ErrorKind::Invalid, "WRONGPASS");
    refused(&format!("redis://nobody:secret@127.0.0.1:{port}"), ErrorKind::Invalid, "WRONGPASS");
    refused(&format!("redis://127.0.0.1:{port}"), ErrorKind::Invalid, "NOAUTH");
    Remote::open(&format!("redis://:secret@127.0.0.1:{port}"), &quick()).unwrap();
    drop(server);
    let Some(plain) = Server::redis("remote::password", &[]) else { return };
    refused(&plain.address().replace("unix://", "redis-cluster://"), ErrorKind::Invalid, "");
    refused(&format!("{}?db=99", plain.address()), ErrorKind::OutOfRange, "99");
}

#[test]
fn a_wrong_password_of_a_cluster_is_told_at_the_open() {
    let Some(cluster) = Cluster::start("remote::cluster_password") else { return };
    let address = cluster.address();
    for node in &cluster.nodes {
        assert_eq!(cli(node, &["CONFIG", "SET", "requirepass", "secret"]).trim(), "OK");
    }
    let with = |login: &str| address.replace("://", &format!("://{login}"));
    for (login, part) in [("", "NOAUTH"), (":wrong@", "WRONGPASS"), ("nobody:secret@", "WRONGPASS")]
    {
        let begun = Instant::now();
        let error = Remote::open(&with(login), &quick()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(part), "{error}");
        assert!(!error.message().contains("secret"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    let store = Remote::open(&with(":secret@"), &quick()).unwrap();
    store.command(&[b"SET", b"k", b"v"]).unwrap();
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

/// A path beyond what the address of a socket holds is reached all the same.
#[test]
fn a_socket_in_a_deep_directory_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let (near, _address) = liar(&[b"$1\r\nv\r\n"], false);
    std::fs::rename(near.path().join("socket"), deep.join("socket")).unwrap();
    let store = Remote::open(&format!("unix://{}/socket", deep.display()), &quick()).unwrap();
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

/// A connection that the other side has left, though it still takes bytes, is not used for a call.
#[test]
fn a_connection_that_is_half_open_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut room = [0; 4096];
            let _ = stream.read(&mut room);
            stream.write_all(b"%1\r\n+proto\r\n:3\r\n").unwrap();
            // The first connection ends its own side, as one that is about to go; it still reads.
            if number == 0 {
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                std::mem::forget(stream);
            } else if stream.read(&mut room).is_ok_and(|len| len > 0) {
                let _ = stream.write_all(b"$1\r\nv\r\n");
            }
        }
    });
    let store = Remote::open(&format!("unix://{}", path.display()), &quick()).unwrap();
    let begun = Instant::now();
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

/// The permissions of a socket are those of its file. The file system asks for the user of the thread.
#[expect(unsafe_code, reason = "changes the user of a thread")]
#[test]
fn a_socket_without_permission_is_told_at_the_open() {
    let (dir, address) = liar(&[], false);
    let path = dir.path().to_owned();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(path.join("socket"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let refused = std::thread::spawn(move || {
        // SAFETY: it changes the user of this thread alone, for files, and ends with it. One that is
        // not the superuser's stays as it is, and owns the socket without a permission for it.
        unsafe { libc::setfsuid(65_534) };
        let begun = Instant::now();
        let error = Remote::open(&address, &quick()).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        error
    });
    let error = refused.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.message().contains("ermission denied"), "{error}");
}

/// A server that is stopped, as a machine that is gone without a word: its kernel takes the bytes, and
/// nobody reads them.
#[test]
fn a_server_that_stops_in_the_middle_is_an_error_in_time() {
    let Some(server) = Server::redis("remote::stopped", &[]) else { return };
    let store = Remote::open(&server.address(), &quick()).unwrap();
    store.command(&[b"SET", b"k", b"v"]).unwrap();
    let mut session = store.session().unwrap();
    session.command(&[b"PING"]).unwrap();
    let signal = |name: &str| {
        assert!(
            Command::new("kill")
                .args([name, &server.pid().to_string()])
                .status()
                .unwrap()
                .success()
        );
    };
    signal("-STOP");
    // More than the buffers of a socket hold.
    let large = vec![b'x'; 64 << 20];
    let calls: [&[&[u8]]; 3] = [&[b"GET", b"k"], &[b"INCR", b"n"], &[b"SET", b"k", &large]];
    for argv in calls {
        let begun = Instant::now();
        let error = store.command(argv).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}: {error}", begun.elapsed());
    }
    assert_eq!(session.command(&[b"GET", b"k"]).unwrap_err().kind(), ErrorKind::Timeout);
    signal("-CONT");
    // A connection of a lost reply is never used again.
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

/// Nodes that name each other for ever, or answer no question about slots with sense.
#[test]
fn a_cluster_that_lies_is_an_error_in_time() {
    let open = |port: u16| Remote::open(&format!("redis-cluster://127.0.0.1:{port}"), &quick());
    let begun = Instant::now();
    for (ranges, kind) in [
        (vec![(0, 16_384, 1)], ErrorKind::Busy),
        (vec![(9, 3, 1)], ErrorKind::Busy),
        (vec![(0, 16_383, 0)], ErrorKind::Io),
    ] {
        let port = fake_node(&ranges, |_| Answer::Says("+OK\r\n"));
        let failed = open(port).and_then(|store| store.command(&[b"SET", b"k", b"v"]));
        assert_eq!(failed.unwrap_err().kind(), kind, "{ranges:?}");
    }
    let circles = |word: &'static str| {
        fake_node(&[], move |words| match words[0].as_str() {
            "ASKING" => Answer::Says("+OK\r\n"),
            // A port without a host is one of the same host; nobody listens on this one.
            _ => Answer::Tells(format!("-{word} 1 :1\r\n")),
        })
    };
    for word in ["MOVED", "ASK", "TRYAGAIN"] {
        let store = open(circles(word)).unwrap();
        let error = store.command(&[b"SET", b"k", b"v"]).unwrap_err();
        assert!(error.message().contains("has not run"), "{word}: {error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
