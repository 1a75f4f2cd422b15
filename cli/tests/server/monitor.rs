//! MONITOR over the wire: what is shown, compared with a real Redis, and slow readers.

use std::os::unix::net::UnixStream;

use crate::messages::Listener;
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{Lsmkv, ask, info, reply_text, until};

/// The commands of one client.
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

/// The lines that a monitor sees while a client does something, without times and addresses.
fn lines_of(stream: &dyn Fn() -> UnixStream, run: impl FnOnce(&mut Listener)) -> Vec<String> {
    let mut monitor = Listener::new(stream(), 2);
    assert_eq!(monitor.ask("MONITOR"), Resp::Status("OK".into()));
    run(&mut Listener::new(stream(), 2));
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
        assert!(address.starts_with("unix:/") || address == "lua", "{line}");
        if words.contains("\"end\"") {
            return lines;
        }
        let lua = if address == "lua" { " lua" } else { "" };
        lines.push(format!("{database}{lua} {words}"));
    }
}

/// The lines that a monitor sees of [`LINES`].
fn seen(stream: &dyn Fn() -> UnixStream) -> Vec<String> {
    lines_of(stream, |client| LINES.iter().for_each(|line| drop(client.ask(line))))
}

#[test]
fn what_is_shown_is_what_redis_shows() {
    let Some(redis) = Server::start("server::monitor") else { return };
    let ours = Lsmkv::start(&["--threads", "2"]);
    let (ours, theirs) = (seen(&|| ours.stream()), seen(&|| redis.stream()));
    assert_eq!(ours, theirs);
    assert!(theirs.len() > 25, "{theirs:?}");
}

/// Scripts that call commands: such as fail, change the database, may not run, touch keys that they do
/// not declare, and take longer than an event loop gives them.
#[rustfmt::skip]
const SCRIPTS: &[&[&str]] = &[
    &["EVAL", "redis.call('set',KEYS[1],'a b') return redis.pcall('get',KEYS[1])", "1", "k"],
    &["EVAL", "return redis.pcall('nosuch')", "0"], &["EVAL", "return redis.pcall('get')", "0"],
    &["EVAL", "return redis.pcall('subscribe','x')", "0"],
    &["EVAL", "redis.call('select',3) return redis.call('get','y')", "0"],
    &["EVAL", "return redis.pcall('lpush','k',1.5,2)", "0"], &["EVAL", "return redis.pcall('echo','a')", "0"],
    &["EVAL", "return redis.pcall('publish','c','m')", "0"],
    &["EVAL_RO", "return redis.pcall('set','c','m')", "0"],
    &["FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function(k)\n\
        redis.call('incr','n') return redis.call('keys','*') end)"],
    &["FCALL", "f", "0"], &["EVAL", "redis.call('set','x','1') error('x')", "0"],
    &["EVAL", "redis.call('time') return redis.call('eval','return 1',0)", "0"],
    &["EVAL", "for i=1,5000000 do end redis.call('set','late','1')", "0"],
    &["MULTI"], &["SET", "q", "1"], &["EVALSHA", "3d2fe2d3a1f4f1a4b2b2b2b2b2b2b2b2b2b2b2b2", "0"],
    &["EVAL", "redis.call('incr','n') redis.call('incr','n')", "0"], &["GET", "q"], &["FCALL", "f", "0"],
    &["EXEC"], &["EVAL", "return redis.call('dbsize') + redis.call('incr','other')", "1", "k"],
];

/// The lines that a monitor sees of [`SCRIPTS`].
fn script_lines(stream: &dyn Fn() -> UnixStream) -> Vec<String> {
    let run = |client: &mut Listener| {
        for words in SCRIPTS {
            client.send_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            drop(client.read());
        }
    };
    lines_of(stream, run)
}

#[test]
fn what_scripts_call_is_shown_as_by_redis() {
    let Some(redis) = Server::start("server::monitor") else { return };
    let ours = Lsmkv::start(&["--threads", "2"]);
    let (ours, theirs) = (script_lines(&|| ours.stream()), script_lines(&|| redis.stream()));
    assert_eq!(ours, theirs);
    let of_scripts = theirs.iter().filter(|line| line.contains(" lua \"")).count();
    assert_eq!(of_scripts, 18, "{theirs:#?}");
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
