//! Clients that people use, unchanged: redis-cli, redis-benchmark, redis-py, ioredis.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Lsmkv, told};
use crate::toolchain::{available, run, skip, text_of};

/// Where scripts/setup.sh puts client libraries.
fn tools() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools")
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// A server on a TCP port too.
fn on_tcp() -> (Lsmkv, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    (Lsmkv::start(&["--port", &port]), port)
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
    assert_eq!(told(&mut server.connect(), "PING"), "+PONG");
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
