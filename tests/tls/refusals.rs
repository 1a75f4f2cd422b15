//! Certificates and peers that are refused, in time and with the way out.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use lsmkv::{ClientCertificates, Db, ErrorKind, Options, Remote, Server};

use crate::certificates::Authority;
use crate::{Served, showing, trusting, works};

fn refused(address: &str, options: &Options, kind: ErrorKind, parts: &[&str]) {
    let error = Remote::open(address, options).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.message().contains(part), "{part} is missing in: {error}");
    }
}

#[test]
fn a_certificate_that_does_not_fit_is_refused_with_the_way_out() {
    let authority = Authority::new();
    let fits = Served::start(&showing(&authority.sign("server", &["localhost"])));
    let trusting = trusting(&authority);

    let stranger = Authority::new();
    let other = Options { tls_ca_file: stranger.ca_file(), ..Options::default() };
    refused(&fits.address(), &other, ErrorKind::Invalid, &["unknown authority", "tls_ca_file"]);
    // Another authority of the same name.
    let impostor = Authority::named(authority.name());
    let other = Options { tls_ca_file: impostor.ca_file(), ..Options::default() };
    refused(&fits.address(), &other, ErrorKind::Invalid, &["not signed by", "tls_ca_file"]);
    // The address is no name of the certificate.
    let by_number = fits.address().replace("localhost", "127.0.0.1");
    let names = ["other names (localhost)", "tls_server_name"];
    refused(&by_number, &trusting, ErrorKind::Invalid, &names);
    let named = Options { tls_server_name: "localhost".to_owned(), ..trusting.clone() };
    let store = Remote::open(&by_number, &named).unwrap();
    works(&store);
    let wrong = Options { tls_server_name: "no name!".to_owned(), ..trusting.clone() };
    refused(&by_number, &wrong, ErrorKind::Invalid, &["tls_server_name", "no name!"]);

    let old = Served::start(&showing(&authority.sign_expired("old", &["localhost"])));
    refused(&old.address(), &trusting, ErrorKind::Invalid, &["expired"]);

    // Whoever asks for it gets any certificate accepted.
    let anything = Options { tls_insecure: true, ..Options::default() };
    for address in [fits.address(), by_number, old.address()] {
        let store = Remote::open(&address, &anything).unwrap();
        works(&store);
    }
}

#[test]
fn clients_show_a_certificate_where_the_server_asks_for_one() {
    let authority = Authority::new();
    let identity = authority.sign("server", &["localhost"]);
    let asking = |clients| Options {
        server_tls_ca_file: authority.ca_file(),
        server_tls_auth_clients: clients,
        ..showing(&identity)
    };
    let served = Served::start(&asking(ClientCertificates::Required));
    let without = trusting(&authority);
    let with = |signer: &Authority| {
        let own = signer.sign("client", &["client"]);
        Options { tls_cert_file: own.cert, tls_key_file: own.key, ..without.clone() }
    };
    let unknown = Authority::new();
    let (known, stranger) = (with(&authority), with(&unknown));
    refused(&served.address(), &without, ErrorKind::Invalid, &["tls_cert_file", "tls_key_file"]);
    served.wait_for_log("it shows no certificate, and tls-auth-clients asks for one");
    refused(&served.address(), &stranger, ErrorKind::Invalid, &["tls_cert_file"]);
    let store = Remote::open(&served.address(), &known).unwrap();
    works(&store);

    let lenient = Served::start(&asking(ClientCertificates::Optional));
    for options in [&without, &known] {
        Remote::open(&lenient.address(), options).unwrap();
    }
    refused(&lenient.address(), &stranger, ErrorKind::Invalid, &["tls_cert_file"]);
    lenient.wait_for_log("its certificate is refused: it comes from an unknown authority");
}

/// Files that are missing, of the wrong kind, or do not belong together are told at the start.
#[test]
fn wrong_files_are_told_by_option_and_name() {
    let authority = Authority::new();
    let (one, other) = (authority.sign("one", &["localhost"]), authority.sign("other", &["x"]));
    let garbage = authority.path("garbage").to_str().unwrap().to_owned();
    std::fs::write(&garbage, "no PEM at all").unwrap();
    let missing = authority.path("missing").to_str().unwrap().to_owned();
    let db = Db::open(":memory:", Options::default()).unwrap();
    let plain = showing(&one);
    let file = |name: &str| name.to_owned();
    let cases = [
        (
            Options { server_tls_auth_clients: ClientCertificates::Required, ..plain.clone() },
            ErrorKind::Invalid,
            "server_tls_ca_file, or server_tls_auth_clients=no",
        ),
        (
            Options::default(),
            ErrorKind::Invalid,
            "set server_tls_cert_file and server_tls_key_file",
        ),
        (
            Options { server_tls_key_file: String::new(), ..plain.clone() },
            ErrorKind::Invalid,
            "server_tls_cert_file and server_tls_key_file belong together",
        ),
        (
            Options { server_tls_key_file: file(&other.key), ..plain.clone() },
            ErrorKind::Invalid,
            "is not the key of the certificate",
        ),
        (
            Options { server_tls_key_file: file(&one.cert), ..plain.clone() },
            ErrorKind::Invalid,
            "has no private key",
        ),
        (
            Options { server_tls_cert_file: file(&garbage), ..plain.clone() },
            ErrorKind::Invalid,
            "has no certificate",
        ),
        (
            Options { server_tls_cert_file: file(&missing), ..plain.clone() },
            ErrorKind::Io,
            "server_tls_cert_file: read",
        ),
    ];
    for (options, kind, part) in cases {
        let error = Server::start(&db, "tls:127.0.0.1:0", &options).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(part), "{part} is missing in: {error}");
    }
    let client = trusting(&authority);
    let cases = [
        (Options { tls_ca_file: file(&missing), ..client.clone() }, ErrorKind::Io, "tls_ca_file"),
        (
            Options { tls_ca_file: file(&garbage), ..client.clone() },
            ErrorKind::Invalid,
            "tls_ca_file",
        ),
        (
            Options { tls_cert_file: file(&one.cert), ..client.clone() },
            ErrorKind::Invalid,
            "tls_cert_file and tls_key_file belong together",
        ),
        (
            Options { tls_cert_file: file(&one.cert), tls_key_file: file(&other.key), ..client },
            ErrorKind::Invalid,
            "tls_key_file",
        ),
    ];
    for (options, kind, part) in cases {
        refused("rediss://localhost:1", &options, kind, &[part]);
    }
    db.close().unwrap();
}

/// A listener that does this with each connection.
fn peer(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    format!("rediss://localhost:{port}")
}

/// Whatever stands behind a rediss:// address, the open ends in time with a status that fits.
#[test]
fn a_peer_that_speaks_no_tls_or_nothing_is_an_error_in_time() {
    let authority = Authority::new();
    let quick = Options { connect_timeout_ms: 400, ..trusting(&authority) };
    let begun = Instant::now();
    let error_reply = peer(|mut stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"-ERR unknown command\r\n");
        let _ = stream.read(&mut [0; 64]);
    });
    refused(&error_reply, &quick, ErrorKind::Incompatible, &["does not speak TLS", "redis://"]);
    let closes = peer(|mut stream| {
        let mut room = [0; 4096];
        let _ = stream.read(&mut room);
    });
    refused(&closes, &quick, ErrorKind::Incompatible, &["redis://"]);
    let silent = peer(std::mem::forget);
    refused(&silent, &quick, ErrorKind::Timeout, &["connect_timeout_ms", "speaks no TLS"]);
    // One byte at a time of a record that never ends: the limit is for the whole handshake.
    let drips = peer(|mut stream| {
        let record = [&[0x16, 3, 3, 0x40, 0][..], &[0; 1000]].concat();
        for byte in record {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    refused(&drips, &quick, ErrorKind::Timeout, &["connect_timeout_ms"]);
    // A server of ours without TLS.
    let db = Db::open(":memory:", Options::default()).unwrap();
    let server = Server::start(&db, "tcp:127.0.0.1:0", &Options::default()).unwrap();
    let plain = server.addresses()[0].replace("redis://", "rediss://");
    let error = Remote::open(&plain, &quick).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Incompatible), "{error}");
    assert!(error.message().contains("TLS"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.stop();
    db.close().unwrap();
}
