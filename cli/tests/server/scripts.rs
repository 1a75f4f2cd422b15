//! Scripts that take long, over the wire: other clients go on.

use std::time::{Duration, Instant};

use crate::messages::Listener;
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{Lsmkv, ask, until};

/// The 99th percentile of the time of a PING, and the longest.
fn ping_times(server: &Lsmkv, during: Duration) -> (Duration, Duration) {
    let (mut client, mut times) = (server.connect(), Vec::new());
    let end = Instant::now() + during;
    while Instant::now() < end {
        let begun = Instant::now();
        assert_eq!(ask(&mut client, "PING"), Resp::Status("PONG".into()));
        times.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    times.sort();
    (times[times.len() * 99 / 100], times[times.len() - 1])
}

fn start_loop(server: &Lsmkv, script: &str, key: &str) -> Listener {
    let mut caller = Listener::new(server.stream(), 2);
    let words = ["EVAL", script, "1", key].map(str::to_owned);
    caller.send_words(&words);
    caller
}

/// Scripts ran on the event loop of their client: one that looped for ever stopped all other clients
/// of that loop, SCRIPT KILL too, until its time was over.
#[test]
fn a_script_that_loops_keeps_nobody_else_waiting() {
    let server = Lsmkv::start(&["--threads", "1"]);
    // Fast at first: a script is not known by its name.
    let script = "while ARGV[1] ~= 'stop' do end return 1";
    let mut client = server.connect();
    assert_eq!(client.call(&["EVAL", script, "1", "k", "stop"]).unwrap(), Resp::Int(1));
    let mut caller = start_loop(&server, script, "k");
    let (p99, longest) = ping_times(&server, Duration::from_secs(3));
    println!("a PING beside a script that loops: p99 {p99:?}, at most {longest:?}");
    assert!(p99 < Duration::from_millis(50), "{p99:?}");
    // Keys that the script does not hold are written, and those that it holds are read.
    assert_eq!(ask(&mut client, "SET other v"), Resp::Status("OK".into()));
    assert_eq!(ask(&mut client, "GET k"), Resp::Bulk(None));
    assert_eq!(ask(&mut client, "SCRIPT KILL"), Resp::Status("OK".into()));
    let reply = caller.read();
    assert!(format!("{reply:?}").contains("Script killed by user"), "{reply:?}");
    until("no script runs", || {
        format!("{:?}", ask(&mut client, "SCRIPT KILL")).contains("NOTBUSY")
    });
    assert_eq!(caller.ask("PING"), Resp::Status("PONG".into()));
}

/// EVAL_RO is a read, and reads ran on the thread of their client, however long they took.
#[test]
fn a_script_that_only_reads_leaves_its_thread_too() {
    let server = Lsmkv::start(&["--threads", "1", "--option", "script_max_ms=600000"]);
    let (mut client, mut caller) = (server.connect(), Listener::new(server.stream(), 2));
    for command in ["EVAL_RO", "EVAL"] {
        let words = [command, "redis.call('get', KEYS[1]) while true do end", "1", "k"];
        caller.send_words(&words.map(str::to_owned));
        until("the script is killed", || {
            ask(&mut client, "SCRIPT KILL") == Resp::Status("OK".into())
        });
        let reply = caller.read();
        assert!(format!("{reply:?}").contains("Script killed by user"), "{command}: {reply:?}");
    }
    assert_eq!(caller.ask("EVAL_RO return(redis.call('get',KEYS[1])) 1 k"), Resp::Bulk(None));
}

#[test]
fn a_write_that_waits_for_a_script_is_busy_after_the_threshold() {
    let server = Lsmkv::start(&["--threads", "1", "--option", "script_max_ms=2000"]);
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "CONFIG SET lua-time-limit 50"), Resp::Status("OK".into()));
    let shown = ask(&mut client, "CONFIG GET busy-reply-threshold");
    assert!(format!("{shown:?}").contains("\"50\""), "{shown:?}");
    let script = "redis.call('set', KEYS[1], 'v') while true do end";
    let mut caller = start_loop(&server, script, "k");
    until("the script is slow", || {
        format!("{:?}", ask(&mut client, "SET k w")).starts_with("-BUSY")
    });
    // The server keeps the writes of a script that fails, so one that wrote is not killed.
    let reply = ask(&mut client, "SCRIPT KILL");
    assert!(format!("{reply:?}").starts_with("-UNKILLABLE"), "{reply:?}");
    let reply = caller.read();
    assert!(format!("{reply:?}").contains("script_max_ms"), "{reply:?}");
    assert_ne!(ask(&mut client, "GET k"), Resp::Bulk(Some(b"v".to_vec())));
    assert_eq!(ask(&mut client, "SET k w"), Resp::Status("OK".into()));
}

/// A reply with its lists of lists in order: Redis names functions in an order of its own.
fn sorted(reply: Resp) -> Resp {
    let Resp::Array(Some(items)) = reply else { return reply };
    let mut items: Vec<Resp> = items.into_iter().map(sorted).collect();
    if items.iter().all(|item| matches!(item, Resp::Array(_))) {
        items.sort();
    }
    Resp::Array(Some(items))
}

/// Function libraries: every reply is that of a real Redis.
#[test]
fn functions_are_answered_as_by_redis() {
    let Some(redis) = Server::start("server::scripts") else { return };
    let ours = Lsmkv::start(&[]);
    let library = "#!lua name=lib\n\
        redis.register_function('add', function(k, a) return redis.call('incrby', k[1], a[1]) end)\n\
        redis.register_function{function_name='look', callback=function(k, a)\n\
        return redis.call('get', k[1]) end, flags={'no-writes'}, description='reads'}";
    let replaced = "#!lua name=lib\nredis.register_function('add', function() return 'new' end)";
    let other = "#!lua name=other\nredis.register_function('one', function() return 1 end)";
    let clash = "#!lua name=third\nredis.register_function('one', function() return 1 end)";
    let (mut a, mut b) = (ours.connect(), redis.connect());
    #[rustfmt::skip]
    let calls: &[&[&str]] = &[
        &["FUNCTION", "LIST"], &["FCALL", "add", "1", "n", "5"], &["FUNCTION", "LOAD", library],
        &["FUNCTION", "LOAD", library], &["FCALL", "add", "1", "n", "5"], &["FCALL", "add", "1", "n", "x"],
        &["FCALL_RO", "look", "1", "n"], &["FCALL_RO", "add", "1", "n", "1"], &["FCALL", "look", "1", "n"],
        &["FUNCTION", "LIST", "WITHCODE"], &["FUNCTION", "LIST", "LIBRARYNAME", "l*"],
        &["FUNCTION", "LIST", "LIBRARYNAME", "x*"], &["FUNCTION", "LIST", "NONSENSE"],
        &["FUNCTION", "STATS"], &["FUNCTION", "LOAD", "REPLACE", replaced], &["FCALL", "add", "0"],
        &["FCALL", "look", "1", "n"], &["FUNCTION", "LOAD", other], &["FCALL", "one", "-1"],
        &["FCALL", "one", "9", "k"], &["FCALL", "one", "x"], &["FCALL", "one"], &["FUNCTION", "LOAD", clash],
        &["FUNCTION", "LOAD", "nonsense"], &["FUNCTION", "LOAD", "#!lua name=x\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua\nreturn 1"], &["FUNCTION", "LOAD", "#!js name=x\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=a-b\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=y\nx("], &["FUNCTION", "LOAD", "#!lua name=y\nredis.call('get','k')"],
        &["FUNCTION", "DELETE", "none"], &["FUNCTION", "DELETE", "lib"], &["FCALL", "add", "0"],
        &["FUNCTION", "STATS"], &["FUNCTION", "KILL"], &["FUNCTION", "FLUSH", "NOW"],
        &["FUNCTION", "RESTORE", "damaged"], &["FUNCTION", "FLUSH"], &["FUNCTION", "LIST"],
        &["FUNCTION", "NONSENSE"], &["FUNCTION"],
    ];
    for call in calls {
        let [ours, theirs] = [&mut a, &mut b].map(|client| sorted(client.call(call).unwrap()));
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{call:?}");
    }
    // A dump of one server is restored by the other.
    for client in [&mut a, &mut b] {
        client.call(&["FUNCTION", "LOAD", other]).unwrap();
    }
    let dumps = [&mut a, &mut b].map(|client| client.call(&["FUNCTION", "DUMP"]).unwrap());
    for (client, dump) in [(&mut a, &dumps[1]), (&mut b, &dumps[0])] {
        client.call(&["FUNCTION", "FLUSH"]).unwrap();
        let dump = dump.bytes().unwrap();
        let words = vec![b"FUNCTION".to_vec(), b"RESTORE".to_vec(), dump.to_vec()];
        assert_eq!(client.pipeline([&words]).unwrap(), [Resp::Status("OK".into())]);
        assert_eq!(client.call(&["FCALL", "one", "0"]).unwrap(), Resp::Int(1));
    }
}
