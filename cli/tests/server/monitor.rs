//! MONITOR over the wire: what is shown, compared with a real Redis, and slow readers.

use std::os::unix::net::UnixStream;

use crate::messages::Listener;
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{Lsmkv, ask, info, reply_text, until};

/// The commands of one client. Redis also shows what scripts call, as coming from `lua`.
#[rustfmt::skip]
const LINES: &[&str] = &[
    "SET a b", "GET", "NOSUCH x", "LPUSH a x", "SELECT 1", "PING", "MULTI", "SET k v", "INCR k",
    "CLIENT ID", "EXEC", "MULTI", "GET k", "DISCARD", "MULTI", "NOSUCH", "EXEC", "EVAL return(1) 0",
    "CONFIG GET maxmemory", "CLIENT LIST", "CLIENT ID", "CLIENT KILL ID 99999", "CLIENT NO-EVICT OFF",
    "INFO server", "COMMAND COUNT", "SCRIPT LOAD return(1)", "BLPOP nolist 0.01", "WATCH a", "MULTI",
    "WATCH a", "EXEC", "UNWATCH", "SUBSCRIBE c", "PUBLISH c x", "UNSUBSCRIBE", "PUBLISH c x",
    "AUTH secret", "AUTH default secret", "HELLO 2 AUTH default secret SETNAME n", "HELLO 9", "SAVE",
    "LASTSAVE", "TIME", "CLIENT TRACKING ON", "CLIENT TRACKING OFF", "MULTI", "MONITOR", "EXEC",
    "RESET", "ECHO x", "DEL a k", "QUIT",
];

/// The lines that a monitor has seen, without times and addresses.
fn seen(stream: &dyn Fn() -> UnixStream) -> Vec<String> {
    let mut monitor = Listener::new(stream(), 2);
    assert_eq!(monitor.ask("MONITOR"), Resp::Status("OK".into()));
    let mut client = Listener::new(stream(), 2);
    for line in LINES {
        drop(client.ask(line));
    }
    let mut last = Listener::new(stream(), 2);
    drop(last.ask("ECHO end"));
    let mut lines = Vec::new();
    loop {
        let Resp::Status(line) = monitor.read() else { panic!("no line") };
        let (time, rest) = line.split_once(" [").unwrap();
        let (seconds, micros) = time.split_once('.').unwrap();
        assert!(seconds.parse::<u64>().is_ok() && micros.len() == 6, "{line}");
        let (from, words) = rest.split_once("] ").unwrap();
        let (database, address) = from.split_once(' ').unwrap();
        assert!(address.starts_with("unix:/"), "{line}");
        if words.contains("\"end\"") {
            return lines;
        }
        lines.push(format!("{database} {words}"));
    }
}

#[test]
fn what_is_shown_is_what_redis_shows() {
    let Some(redis) = Server::start("server::monitor") else { return };
    let ours = Lsmkv::start(&["--threads", "2"]);
    let (ours, theirs) = (seen(&|| ours.stream()), seen(&|| redis.stream()));
    assert_eq!(ours, theirs);
    assert!(theirs.len() > 25, "{theirs:?}");
}

#[test]
fn a_monitor_may_not_look_at_keys_and_ends_with_reset() {
    let server = Lsmkv::start(&[]);
    let mut monitor = Listener::new(server.stream(), 2);
    monitor.ask("MONITOR");
    let refused = Resp::Error("ERR Replica can't interact with the keyspace".into());
    assert_eq!(monitor.ask("GET k"), refused);
    let mut client = server.connect();
    assert!(reply_text(&mut client, "CLIENT LIST").contains(" flags=OU "));
    until("the monitor is reset", || monitor.ask("RESET") == Resp::Status("RESET".into()));
    ask(&mut client, "SET k v");
    assert_eq!(monitor.ask("GET k"), Resp::Bulk(Some(b"v".to_vec())));
}

#[test]
fn a_monitor_that_does_not_read_is_closed() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "replica 4mb 0 0"];
    assert_eq!(client.call(&limit).unwrap(), Resp::Status("OK".into()));
    let mut slow = Listener::new(server.stream(), 2);
    slow.ask("MONITOR");
    let value = "x".repeat(100_000);
    for n in 0..200 {
        client.call(&["SET", &format!("k{n}"), &value]).unwrap();
    }
    until("it is closed", || info(&mut client, "clients", "connected_clients") == 1);
    assert!(server.log().contains("monitors too slowly"), "{}", server.log());
}
