//! What a plain connection does, an encrypted one does too.

use std::time::{Duration, Instant};

use lsmkv::{Db, ErrorKind, Options, Remote, Reply, Server};

use crate::certificates::Authority;
use crate::{showing, trusting, until, usual, works};

/// Bytes that neither compress nor repeat.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn a_password_opens_a_store_that_is_served_with_tls() {
    let authority = Authority::new();
    let db = Db::open(":memory:", Options::default()).unwrap();
    let identity = authority.sign("server", &["localhost", "127.0.0.1"]);
    let options = Options { server_password: "secret".to_owned(), ..showing(&identity) };
    let server = Server::start(&db, "tls:127.0.0.1:0", &options).unwrap();
    let address = server.addresses()[0].clone();
    assert!(address.starts_with("rediss://127.0.0.1:"), "{address}");

    let trusting = trusting(&authority);
    let refused = Remote::open(&address, &trusting).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let with = |password: &str| address.replace("//", &format!("//:{password}@"));
    let wrong = Remote::open(&with("wrong"), &trusting).unwrap_err();
    assert!(wrong.message().contains("refuses the login"), "{wrong}");
    let store = Remote::open(&with("secret"), &trusting).unwrap();
    works(&store);
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));

    let mut session = store.session().unwrap();
    let mut setting = |name: &str| {
        format!("{:?}", session.command(&[b"CONFIG", b"GET", name.as_bytes()]).unwrap())
    };
    assert!(setting("tls-port").contains(&server.port().unwrap().to_string()));
    assert!(setting("port").contains("\"0\""));
    assert!(setting("tls-cert-file").contains("server.crt"));
    assert!(setting("tls-auth-clients").contains("no"));
    server.stop();
    db.close().unwrap();
}

#[test]
fn values_of_8_mib_go_both_ways() {
    let (_authority, served, store) = usual();
    let value = noise(8 << 20, 7);
    store.command(&[b"SET", b"big", &value]).unwrap();
    assert_eq!(served.db.get(b"big").unwrap().as_deref(), Some(&value[..]));
    for _ in 0..2 {
        assert_eq!(store.command(&[b"GET", b"big"]).unwrap(), Reply::Bulk(value.clone().into()));
    }
}

#[test]
fn a_long_pipeline_has_its_replies_in_order() {
    let (_authority, _served, store) = usual();
    let mut session = store.session().unwrap();
    let value = noise(20_000, 3);
    session.command(&[b"SET", b"v", &value]).unwrap();
    let numbers: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let mut commands: Vec<Vec<&[u8]>> = Vec::new();
    for number in &numbers {
        commands.push(vec![b"ECHO", number.as_bytes()]);
        commands.push(vec![b"GET", b"v"]);
    }
    let replies = session.pipeline(&commands).unwrap();
    for (at, pair) in replies.chunks(2).enumerate() {
        assert_eq!(pair[0], Reply::Bulk(at.to_string().into()));
        assert_eq!(pair[1], Reply::Bulk(value.clone().into()));
    }
    assert_eq!(replies.len(), 2000);
}

#[test]
fn messages_and_blocking_pops_arrive() {
    let (_authority, _served, store) = usual();
    let mut subscriber = store.session().unwrap();
    subscriber.command(&[b"SUBSCRIBE", b"news"]).unwrap();
    assert_eq!(subscriber.wait(Some(Instant::now())).unwrap(), None);
    for n in 0..100 {
        let text = format!("message {n}");
        assert_eq!(store.command(&[b"PUBLISH", b"news", text.as_bytes()]).unwrap(), Reply::Int(1));
    }
    for n in 0..100 {
        let deadline = Some(Instant::now() + Duration::from_secs(60));
        let message = subscriber.wait(deadline).unwrap().unwrap();
        assert!(format!("{message:?}").contains(&format!("message {n}\"")), "{message:?}");
    }

    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || store.command(&[b"BLPOP", b"list", b"0"]))
    };
    let mut watcher = store.session().unwrap();
    let mut is_blocked = || {
        let info = watcher.command(&[b"INFO", b"clients"]).unwrap();
        format!("{info:?}").contains("blocked_clients:1")
    };
    until("a client waits for an element", &mut is_blocked);
    store.command(&[b"RPUSH", b"list", b"element"]).unwrap();
    let popped = waiting.join().unwrap().unwrap();
    assert_eq!(
        popped,
        Reply::Array(vec![Reply::Bulk("list".into()), Reply::Bulk("element".into())])
    );

    // A close ends a wait, encrypted or not.
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || store.command(&[b"BLPOP", b"none", b"0"]))
    };
    until("the second client waits", &mut is_blocked);
    store.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

/// An idle connection is used again, though the server sends what concerns TLS alone after the
/// handshake; one that the server has closed is not.
#[test]
fn idle_connections_are_used_again_until_the_server_closes_them() {
    let (_authority, _served, store) = usual();
    let mut session = store.session().unwrap();
    let mut connections = || {
        let info = format!("{:?}", session.command(&[b"INFO", b"stats"]).unwrap());
        let (_, after) = info.split_once("total_connections_received:").unwrap();
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    };
    // The session and the store have a connection each before they are counted.
    connections();
    works(&store);
    let before = connections();
    (0..20).for_each(|_| works(&store));
    assert_eq!(connections(), before);
    session.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal", b"SKIPME", b"yes"]).unwrap();
    // The connection may end after this call has taken it: then a read is sent again.
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

/// Many clients at once, on two event loops: each gets its own replies.
#[test]
fn many_clients_get_their_own_replies() {
    let (authority, served, _store) = usual();
    std::thread::scope(|scope| {
        for client in 0..16 {
            let (authority, served) = (&authority, &served);
            scope.spawn(move || {
                let store = Remote::open(&served.address(), &trusting(authority)).unwrap();
                let key = format!("client:{client}");
                for n in 0..200_i64 {
                    assert_eq!(
                        store.command(&[b"INCR", key.as_bytes()]).unwrap(),
                        Reply::Int(n + 1)
                    );
                }
            });
        }
    });
}

#[test]
fn the_memory_of_tls_counts_among_the_buffers_of_clients() {
    let (_authority, served, store) = usual();
    works(&store);
    let of_one = served.server.buffered_bytes();
    assert!(of_one >= 8 << 10, "{of_one}");
    let sessions: Vec<_> = (0..8)
        .map(|_| {
            let mut session = store.session().unwrap();
            session.command(&[b"PING"]).unwrap();
            session
        })
        .collect();
    let of_all = served.server.buffered_bytes();
    assert!(of_all >= 8 * (8 << 10), "{of_all}");
    drop(sessions);
    until("the memory comes back", || served.server.buffered_bytes() <= 2 * of_one.max(64 << 10));
}
