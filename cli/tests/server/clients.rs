//! Unmodified real clients: redis-cli, redis-benchmark, redis-py, ioredis.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{LSMKV, Lsmkv, ask, reply_text};
use crate::toolchain::{available, run, skip, text_of};

/// The directory in which scripts/setup.sh installs client libraries.
fn tools() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools")
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// A server that also listens on a TCP port.
fn on_tcp() -> (Lsmkv, String) {
    let port = free_port();
    (Lsmkv::start(&["--port", &port]), port)
}

#[test]
fn it_listens_on_every_address_of_localhost_that_there_is() {
    let (_server, port) = on_tcp();
    let answers = |address: &str| {
        let mut stream = TcpStream::connect(format!("{address}:{port}")).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
    };
    answers("127.0.0.1");
    match TcpListener::bind("[::1]:0") {
        Ok(_) => answers("[::1]"),
        Err(why) => skip("server::localhost_v6", &format!("there is no ::1 here: {why}")),
    }
}

#[test]
fn an_address_that_is_not_here_is_left_out_only_if_it_says_so() {
    // An address that RFC 5737 reserves for documentation: no machine has it.
    let port = free_port();
    let bind = "--bind=127.0.0.1,-192.0.2.1";
    let server = Lsmkv::start(&["--port", &port, bind, "--requirepass", "p"]);
    let mut client = server.connect();
    assert_eq!(reply_text(&mut client, "AUTH p"), "+OK");
    let shown = ask(&mut client, "CONFIG GET bind");
    assert_eq!(shown.items()[1].bytes(), Some(&b"127.0.0.1 -192.0.2.1"[..]));
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(LSMKV);
    command.arg("serve").arg(dir.path().join("store")).args(["--port", &free_port()]);
    let output = command.args(["--bind", "192.0.2.1", "--requirepass", "p"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("listen on 192.0.2.1"));
}

#[test]
fn redis_cli_works() {
    if !available("redis-cli") {
        return skip("server::redis_cli", "there is no redis-cli; scripts/setup.sh installs it");
    }
    let (_server, port) = on_tcp();
    let cli = |args: &[&str]| text_of(Command::new("redis-cli").args(["-p", &port]).args(args));
    assert_eq!(cli(&["SET", "k", "v"]), "OK\n");
    assert_eq!(cli(&["-3", "HSET", "h", "f", "v"]), "1\n");
    assert_eq!(cli(&["--json", "-3", "HGETALL", "h"]), "{\"f\":\"v\"}\n");
    assert_eq!(cli(&["--no-raw", "GET", "k"]), "\"v\"\n");
    assert_eq!(cli(&["--scan", "--pattern", "k*"]), "k\n");
    assert_eq!(cli(&["-n", "2", "DBSIZE"]), "0\n");
    assert!(cli(&["INFO", "server"]).contains("redis_version"));
    let mut pipe = Command::new("redis-cli")
        .args(["-p", &port, "--pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = pipe.stdin.take().unwrap();
    for n in 0..10_000 {
        write!(input, "*3\r\n$3\r\nSET\r\n$6\r\np{n:05}\r\n$1\r\nv\r\n").unwrap();
    }
    drop(input);
    let said = String::from_utf8(pipe.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("errors: 0, replies: 10000"), "{said}");
    assert_eq!(cli(&["DBSIZE"]), "10002\n");
}

#[test]
fn redis_benchmark_works() {
    const TESTS: &str =
        "set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset";
    if !available("redis-benchmark") {
        let reason = "there is no redis-benchmark; scripts/setup.sh installs it";
        return skip("server::redis_benchmark", reason);
    }
    let (server, port) = on_tcp();
    for pipeline in ["1", "16"] {
        let said = text_of(
            Command::new("redis-benchmark")
                .args(["-p", &port, "-n", "1000", "-r", "1000", "--csv"])
                .args(["-t", TESTS, "-P", pipeline]),
        );
        let rows: Vec<_> = said.lines().skip(1).collect();
        assert!(rows.len() >= 17, "{said}");
        for row in &rows {
            let rate: f64 = row.split("\",\"").nth(1).unwrap().parse().unwrap();
            assert!(rate > 0.0, "{row}");
        }
        assert!(!said.contains("ERR"), "{said}");
    }
    assert_eq!(reply_text(&mut server.connect(), "PING"), "+PONG");
}

#[test]
fn redis_py_works() {
    let library = tools().join("python");
    let mut imports = Command::new("python3");
    imports.args(["-c", "import redis"]).env("PYTHONPATH", &library).stderr(Stdio::null());
    if !imports.status().is_ok_and(|status| status.success()) {
        return skip("server::redis_py", "there is no redis-py; scripts/setup.sh installs it");
    }
    let (_server, port) = on_tcp();
    let mut python = Command::new("python3");
    python.arg(script("with_redis_py.py")).arg(&port).env("PYTHONPATH", &library);
    run(python.env("PYTHONDONTWRITEBYTECODE", "1"));
}

#[test]
fn ioredis_works() {
    let library = tools().join("node/node_modules");
    if !available("node") || !library.join("ioredis").exists() {
        return skip("server::ioredis", "there is no ioredis; scripts/setup.sh installs it");
    }
    let (_server, port) = on_tcp();
    run(Command::new("node").arg(script("with_ioredis.js")).arg(&port).env("NODE_PATH", library));
}
