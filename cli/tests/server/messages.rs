//! Channels over the wire: messages, what subscribed clients may do, slow ones, and a comparison
//! with a real Redis.

use std::collections::VecDeque;
use std::io::{BufReader, Write as _};
use std::os::unix::net::UnixStream;

use crate::resp::{Client, Resp, read_apart};
use crate::server::Server;
use crate::support::{Lsmkv, ask, info, number, reply_text, request, until, words};

/// A connection that sends and reads separately: a command may have any number of replies.
pub(crate) struct Listener {
    reader: BufReader<UnixStream>,
    pub(crate) writer: UnixStream,
    version: u8,
    /// The number of markers sent so far.
    markers: u64,
    /// Pushes that stood inside of replies, to be read next.
    apart: VecDeque<Resp>,
    /// The number of pushes that stood inside of replies.
    pub(crate) interleaved: usize,
}

impl Listener {
    pub(crate) fn new(stream: UnixStream, version: u8) -> Self {
        let writer = stream.try_clone().unwrap();
        let reader = BufReader::new(stream);
        let (apart, markers, interleaved) = (VecDeque::new(), 0, 0);
        let mut listener = Self { reader, writer, version, markers, apart, interleaved };
        if version == 3 {
            listener.send("HELLO 3");
            listener.read();
        }
        listener
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.writer.write_all(&request(&words(line))).unwrap();
    }

    pub(crate) fn send_words(&mut self, words: &[String]) {
        self.writer.write_all(&request(words)).unwrap();
    }

    /// The next reply or message. What was sent between the elements of a reply comes after it.
    pub(crate) fn read(&mut self) -> Resp {
        if let Some(push) = self.apart.pop_front() {
            return push;
        }
        let mut apart = Vec::new();
        let reply = read_apart(&mut self.reader, &mut apart).unwrap();
        self.interleaved += apart.len();
        self.apart.extend(apart);
        reply
    }

    /// Everything that has arrived up to the reply of a PING of its own.
    pub(crate) fn drained(&mut self) -> Vec<Resp> {
        self.markers += 1;
        let marker = format!("marker-{}", self.markers);
        self.send(&format!("PING {marker}"));
        let is_marker = |reply: &Resp| match reply {
            Resp::Bulk(Some(bytes)) => bytes == marker.as_bytes(),
            Resp::Array(Some(items)) => {
                matches!(items.as_slice(), [_, Resp::Bulk(Some(bytes))] if bytes == marker.as_bytes())
            }
            _ => false,
        };
        let mut all = Vec::new();
        loop {
            let reply = self.read();
            if is_marker(&reply) {
                return all;
            }
            all.push(reply);
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> Resp {
        self.send(line);
        self.read()
    }
}

pub(crate) fn shown(replies: &[Resp]) -> String {
    let item = |item: &Resp| match item.bytes() {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => format!("{item:?}"),
    };
    let reply = |reply: &Resp| match reply {
        Resp::Array(Some(items)) | Resp::Push(items) => {
            items.iter().map(item).collect::<Vec<_>>().join(" ")
        }
        other => item(other),
    };
    replies.iter().map(reply).collect::<Vec<_>>().join(", ")
}

#[test]
fn messages_are_arrays_in_version_2_and_pushes_in_version_3() {
    let server = Lsmkv::start(&[]);
    let mut publisher = server.connect();
    for version in [2, 3] {
        let mut listener = Listener::new(server.stream(), version);
        listener.send("SUBSCRIBE a b");
        listener.send("PSUBSCRIBE a*");
        let confirmed = listener.drained();
        assert_eq!(shown(&confirmed), "subscribe a :1, subscribe b :2, psubscribe a* :3");
        assert!(confirmed.iter().all(|reply| matches!(reply, Resp::Push(_)) == (version == 3)));
        assert_eq!(ask(&mut publisher, "PUBLISH a hello"), Resp::Int(2));
        let messages = listener.drained();
        assert_eq!(shown(&messages), "message a hello, pmessage a* a hello");
        assert!(messages.iter().all(|reply| matches!(reply, Resp::Push(_)) == (version == 3)));
        listener.send("UNSUBSCRIBE");
        listener.send("PUNSUBSCRIBE");
        listener.drained();
        assert_eq!(ask(&mut publisher, "PUBLISH a none"), Resp::Int(0));
        assert_eq!(listener.ask("SET k v"), Resp::Status("OK".into()));
    }
}

#[test]
fn a_subscribed_client_of_version_2_may_do_little_else() {
    let server = Lsmkv::start(&[]);
    let mut listener = Listener::new(server.stream(), 2);
    listener.ask("SUBSCRIBE c");
    let refused = |name: &str| {
        Resp::Error(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        ))
    };
    for (line, name) in [("GET k", "get"), ("CONFIG GET *", "config|get"), ("MULTI", "multi")] {
        assert_eq!(listener.ask(line), refused(name));
    }
    assert_eq!(shown(&[listener.ask("PING")]), "pong ");
    assert_eq!(shown(&[listener.ask("PING x")]), "pong x");
    assert_eq!(listener.ask("RESET"), Resp::Status("RESET".into()));
    assert_eq!(listener.ask("PING"), Resp::Status("PONG".into()));
    let mut free = Listener::new(server.stream(), 3);
    free.ask("SUBSCRIBE c");
    assert_eq!(free.ask("SET k v"), Resp::Status("OK".into()));
    assert_eq!(free.ask("PING"), Resp::Status("PONG".into()));
    // Its own message comes before the reply.
    free.send("PUBLISH c hello");
    assert_eq!(shown(&free.drained()), "message c hello, :1");
}

#[test]
fn subscribers_are_listed_counted_and_killed_by_type() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let mut listener = Listener::new(server.stream(), 2);
    listener.send("SUBSCRIBE a b");
    listener.send("PSUBSCRIBE c*");
    listener.send("SSUBSCRIBE d");
    listener.drained();
    let list = reply_text(&mut client, "CLIENT LIST TYPE pubsub");
    assert!(list.contains(" flags=P") && list.contains(" sub=2 psub=1 ssub=1 "), "{list}");
    assert_eq!(list.lines().count(), 1);
    assert_eq!(info(&mut client, "clients", "pubsub_clients"), 1);
    assert_eq!(info(&mut client, "stats", "pubsub_channels"), 2);
    assert_eq!(info(&mut client, "stats", "pubsub_patterns"), 1);
    assert_eq!(ask(&mut client, "CLIENT KILL TYPE pubsub"), Resp::Int(1));
    until("nobody listens", || info(&mut client, "stats", "pubsub_channels") == 0);
    assert_eq!(ask(&mut client, "PUBLISH a x"), Resp::Int(0));
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let limit = ask(&mut client, "CONFIG GET client-output-buffer-limit");
    assert!(format!("{limit:?}").contains("pubsub 33554432 8388608 60"), "{limit:?}");
    let command = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 0 0"];
    assert_eq!(client.call(&command).unwrap(), Resp::Status("OK".into()));
    let mut slow = Listener::new(server.stream(), 2);
    slow.ask("SUBSCRIBE c");
    let before = server.resident_bytes();
    let message = "x".repeat(100_000);
    let mut sent = 0;
    while client.call(&["PUBLISH", "c", &message]).unwrap() == Resp::Int(1) {
        sent += 1;
        assert!(sent < 1000, "never cut off");
    }
    assert!(sent >= 40, "{sent}");
    until("it is closed", || info(&mut client, "clients", "pubsub_clients") == 0);
    assert!(server.log().contains("cut off"), "{}", server.log());
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown}");
}

/// `LSMKV_CHANNELS` says how many; a million takes a minute.
#[test]
fn a_client_with_many_channels_is_served_and_gives_all_back() {
    let count = number("LSMKV_CHANNELS", 20_000) as usize;
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut other = server.connect();
    let before = server.resident_bytes();
    for (subscribe, publish, figure) in [
        ("SUBSCRIBE", "PUBLISH", "pubsub_channels"),
        ("PSUBSCRIBE", "PUBLISH", "pubsub_patterns"),
        ("SSUBSCRIBE", "SPUBLISH", "pubsubshard_channels"),
    ] {
        let mut listener = Listener::new(server.stream(), 2);
        for first in (0..count).step_by(1000) {
            let names = (first..first + 1000).map(|n| format!("channel:{n}"));
            let words: Vec<String> = std::iter::once(subscribe.to_owned()).chain(names).collect();
            listener.send_words(&words);
            (0..1000).for_each(|_| drop(listener.read()));
            assert_eq!(ask(&mut other, "PING"), Resp::Status("PONG".into()));
        }
        assert_eq!(info(&mut other, "stats", figure), count as u64, "{subscribe}");
        let grown = server.resident_bytes().saturating_sub(before);
        assert!(grown < (64 << 20) + count as u64 * 1024, "{subscribe}: {grown}");
        assert_eq!(ask(&mut other, &format!("{publish} channel:7 x")), Resp::Int(1));
        assert!(shown(&[listener.read()]).ends_with("channel:7 x"), "{subscribe}");
        drop(listener);
        until("its subscriptions are gone", || info(&mut other, "stats", figure) == 0);
    }
}

/// Names are memory of the client that listens: `maxmemory-clients` bounds them.
#[test]
fn a_client_that_subscribes_without_end_is_closed() {
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut other = server.connect();
    let set = ask(&mut other, "CONFIG SET maxmemory-clients 8mb");
    assert_eq!(set, Resp::Status("OK".into()));
    let mut greedy = server.connect();
    let mut subscribed = 0;
    // A server that has closed the connection answers no more.
    while greedy.call(&["SSUBSCRIBE", &format!("{subscribed:02000}")]).is_ok() {
        subscribed += 1;
        assert!(subscribed < 50_000, "never closed");
    }
    assert!(subscribed > 1000, "{subscribed}");
    until("its channels are gone", || info(&mut other, "stats", "pubsubshard_channels") == 0);
    assert_eq!(ask(&mut other, "SPUBLISH c x"), Resp::Int(0));
}

#[test]
fn messages_of_exec_follow_its_commit_and_wake_others() {
    let server = Lsmkv::start(&["--threads", "2"]);
    let mut listeners: Vec<_> = (0..4).map(|_| Listener::new(server.stream(), 2)).collect();
    for listener in &mut listeners {
        listener.ask("SUBSCRIBE c");
    }
    let mut client = server.connect();
    for line in ["MULTI", "PUBLISH c 1", "SET k v", "PUBLISH c 2"] {
        ask(&mut client, line);
    }
    let replies = ask(&mut client, "EXEC");
    assert_eq!(format!("{replies:?}"), "[:4, +OK, :4]");
    for listener in &mut listeners {
        assert_eq!(shown(&[listener.read(), listener.read()]), "message c 1, message c 2");
    }
}

/// A number that follows from a seed.
pub(crate) fn next(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn random_command(state: &mut u64) -> String {
    const NAMES: [&str; 8] =
        ["a", "b", "ab", "abc", "x", "news.it", "__keyspace@0__:a", "__keyevent@0__:set"];
    const PATTERNS: [&str; 8] =
        ["*", "a*", "?b", "[ab]", "news.*", "x", "__keyevent@*__:*", "__keyspace@?__:[ab]"];
    const WRITES: [&str; 10] = [
        "SET a 1",
        "SET b 1",
        "APPEND a x",
        "DEL a b",
        "SET a 1 EX 100",
        "RENAME a b",
        "INCR n",
        "COPY a b REPLACE",
        "SADD s m",
        "SREM s m",
    ];
    const CLASSES: [&str; 8] = ["KEA", "KEA", "KEA", "KEAnm", "E$", "Kg", "KE", "Q"];
    let name = |state: &mut u64| NAMES[next(state, 8) as usize].to_owned();
    let pattern = |state: &mut u64| PATTERNS[next(state, 8) as usize].to_owned();
    let several = |state: &mut u64, of: &dyn Fn(&mut u64) -> String| {
        (0..=next(state, 3)).map(|_| of(state)).collect::<Vec<_>>().join(" ")
    };
    match next(state, 32) {
        0..3 => format!("SUBSCRIBE {}", several(state, &name)),
        3..5 => format!("PSUBSCRIBE {}", several(state, &pattern)),
        5 => format!("SSUBSCRIBE {}", several(state, &name)),
        6 | 7 => format!("UNSUBSCRIBE {}", several(state, &name)),
        8 => format!("PUNSUBSCRIBE {}", several(state, &pattern)),
        9 => format!("SUNSUBSCRIBE {}", several(state, &name)),
        10 => "UNSUBSCRIBE".to_owned(),
        11 => ["PUNSUBSCRIBE", "SUNSUBSCRIBE"][next(state, 2) as usize].to_owned(),
        12..18 => format!("PUBLISH {} {}", name(state), next(state, 1000)),
        18 => format!("SPUBLISH {} {}", name(state), next(state, 1000)),
        19 => format!("PUBSUB NUMSUB {}", several(state, &name)),
        20 => ["PUBSUB NUMPAT", "PUBSUB CHANNELS", "PUBSUB SHARDCHANNELS a*", "PUBSUB"]
            [next(state, 4) as usize]
            .to_owned(),
        21 => format!("PUBSUB SHARDNUMSUB {}", several(state, &name)),
        22 => {
            ["RESET", "PING", "GET k", "PUBSUB x", "SUBSCRIBE"][next(state, 5) as usize].to_owned()
        }
        23 => format!("PUBSUB CHANNELS {}", pattern(state)),
        24 => format!("CONFIG SET notify-keyspace-events {}", CLASSES[next(state, 8) as usize]),
        25 => format!("SELECT {}", next(state, 2)),
        _ => WRITES[next(state, 10) as usize].to_owned(),
    }
}

/// Redis names channels and confirms the end of all subscriptions in an order of its own. Where events
/// stand before or after the reply of their command is not compared, nor is their order: `key_events` does.
fn in_some_order(command: &str, mut replies: Vec<Resp>) -> Vec<Resp> {
    if !command.contains("SUBSCRIBE") {
        for reply in &mut replies {
            if let Resp::Array(Some(items)) = reply
                && command.contains("CHANNELS")
            {
                items.sort();
            }
        }
        replies.sort();
    } else if !command.contains(' ') {
        // Which count belongs to which name is Redis's choice.
        let mut parts: Vec<Resp> =
            replies.iter().flat_map(|reply| reply.items().to_vec()).collect();
        if !parts.is_empty() {
            parts.sort();
            return parts;
        }
    }
    replies
}

#[test]
fn random_subscriptions_are_answered_as_by_redis() {
    let Some(redis) = Server::start("server::messages") else { return };
    let ours = Lsmkv::start(&["--threads", "2"]);
    let seed = number("LSMKV_MESSAGE_SEED", 20_240_601);
    let commands = number("LSMKV_MESSAGE_COMMANDS", 3000);
    let connect = |stream: &dyn Fn() -> UnixStream| -> Vec<Listener> {
        [2, 2, 3, 3].into_iter().map(|version| Listener::new(stream(), version)).collect()
    };
    let mut ours_clients = connect(&|| ours.stream());
    let mut redis_clients = connect(&|| redis.stream());
    let (mut state, mut events) = (seed, 0);
    for step in 0..commands {
        let (client, command) = (next(&mut state, 4) as usize, random_command(&mut state));
        let mut both = Vec::new();
        for clients in [&mut ours_clients, &mut redis_clients] {
            clients[client].send(&command);
            // The caller first: then the command has run.
            let mut arrived = vec![in_some_order(&command, clients[client].drained())];
            for (_, other) in clients.iter_mut().enumerate().filter(|(n, _)| *n != client) {
                arrived.push(in_some_order(&command, other.drained()));
            }
            both.push(arrived);
            if command == "RESET" && clients[client].version == 3 {
                clients[client].ask("HELLO 3");
            }
        }
        assert_eq!(both[0], both[1], "seed {seed}, step {step}, client {client}: {command}");
        let told = both[1].iter().flatten().map(|reply| shown(std::slice::from_ref(reply)));
        events += told.filter(|it| it.contains("message ") && it.contains("__:")).count() as u64;
    }
    println!("seed {seed}: {commands} commands and {events} events of keys compared");
    assert!(events > commands / 20, "{events}");
}

/// Where clients of a cluster find the slot of a shard channel, keys of scripts, and what EXEC may
/// subscribe to.
#[test]
fn places_of_keys_and_subscriptions_in_exec_are_answered_as_by_redis() {
    let Some(redis) = Server::start("server::messages_in_exec") else { return };
    let ours = Lsmkv::start(&[]);
    let mut sides = [ours.stream(), redis.stream()].map(|stream| Listener::new(stream, 3));
    for name in
        ["PUBLISH", "SPUBLISH", "SUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "EVAL", "FCALL_RO"]
    {
        let places = sides.each_mut().map(|side| {
            let row = side.ask(&format!("COMMAND INFO {name}"));
            // Arity, and the first, the last and the step of keys.
            [1, 3, 4, 5].map(|at| row.items()[0].items()[at].clone())
        });
        assert_eq!(places[0], places[1], "{name}");
    }
    for line in [
        "COMMAND GETKEYS SPUBLISH c m",
        "COMMAND GETKEYS SSUBSCRIBE a b",
        "COMMAND GETKEYS EVAL s 2 a b c",
        "COMMAND GETKEYS EVALSHA s 0",
        "COMMAND GETKEYS EVAL s x",
        "COMMAND GETKEYS FCALL f 1 a b",
        "COMMAND GETKEYS FCALL_RO f 0",
        "EVAL return(redis.call('wait',0,0)) 0",
        "EVAL return(redis.call('role')) 0",
        "EVAL return(redis.call('nosuch')) 0",
        "FCALL nosuch x",
        "MULTI",
        "EVAL return(redis.call('set',KEYS[1],1)) 1 x",
        "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
        "FCALL nosuch x",
        "SUBSCRIBE a b",
        "SSUBSCRIBE s",
        "PSUBSCRIBE p*",
        "PING x",
        "EXEC",
        "PUBSUB SHARDCHANNELS",
    ] {
        let replies = sides.each_mut().map(|side| {
            side.send(line);
            // Until EXEC a marker would be queued.
            vec![side.read()]
        });
        assert_eq!(replies[0], replies[1], "{line}");
    }
}

/// Publishes to a thousand subscribers, and tells how long a message takes to reach all of them.
#[test]
fn a_thousand_subscribers_are_reached() {
    let rounds = number("LSMKV_PUBLISHES", 20) as u32;
    let measure = |stream: &dyn Fn() -> UnixStream, publisher: &mut Client| {
        let mut listeners: Vec<_> = (0..1000).map(|_| Listener::new(stream(), 2)).collect();
        for listener in &mut listeners {
            listener.ask("SUBSCRIBE c");
        }
        let begun = std::time::Instant::now();
        for _ in 0..rounds {
            assert_eq!(ask(publisher, "PUBLISH c message"), Resp::Int(1000));
        }
        for listener in &mut listeners {
            for _ in 0..rounds {
                listener.read();
            }
        }
        begun.elapsed() / rounds
    };
    let ours = Lsmkv::start(&[]);
    let took = measure(&|| ours.stream(), &mut ours.connect());
    let Some(redis) = Server::start("server::messages") else { return };
    let theirs = measure(&|| redis.stream(), &mut redis.connect());
    println!("ours {took:?}, redis {theirs:?}: {:.2}", theirs.as_secs_f64() / took.as_secs_f64());
}

/// The long form has a million channels of one client.
#[test]
fn many_channels_are_bounded_and_given_back() {
    let thousands = number("LSMKV_THOUSAND_CHANNELS", 100);
    let server = Lsmkv::start(&[]);
    let before = server.resident_bytes();
    let mut listener = Listener::new(server.stream(), 2);
    for chunk in 0..thousands {
        let names: Vec<String> = (0..1000).map(|n| format!("channel:{chunk}:{n}")).collect();
        listener.send(&format!("SUBSCRIBE {}", names.join(" ")));
        (0..1000).for_each(|_| drop(listener.read()));
    }
    let grown = (server.resident_bytes() - before) / (thousands * 1000);
    println!("{grown} bytes each");
    assert!(grown < 400, "{grown} bytes each");
    drop(listener);
    let mut client = server.connect();
    until("all are gone", || info(&mut client, "stats", "pubsub_channels") == 0);
}

/// Redis counts a command of EXEC once, however many channels it confirms.
#[test]
fn subscriptions_in_exec_are_confirmed_as_by_redis() {
    let Some(redis) = Server::start("server::messages") else { return };
    let ours = Lsmkv::start(&[]);
    for version in [2, 3] {
        let run = |stream: UnixStream| {
            let mut listener = Listener::new(stream, version);
            for line in ["MULTI", "SUBSCRIBE a b", "SET k v", "PSUBSCRIBE c*", "EXEC"] {
                listener.send(line);
            }
            format!("{:?}", listener.drained())
        };
        assert_eq!(run(ours.stream()), run(redis.stream()), "version {version}");
    }
}
