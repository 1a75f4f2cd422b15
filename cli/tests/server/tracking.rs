//! CLIENT TRACKING over the wire: a comparison with a real Redis, and what it cannot show.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::messages::{Listener, next, shown};
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{Lsmkv, ask, info, number, reply_text, until};

/// Commands that read or write. K is a key, P a prefix of some.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "GET K", "MGET K K", "STRLEN K", "EXISTS K K", "TYPE K", "TTL K", "GETRANGE K 0 1", "HGET K f",
    "HGETALL K", "LRANGE K 0 -1", "LLEN K", "SMEMBERS K", "SCARD K", "SINTER K K", "ZRANGE K 0 -1",
    "ZSCORE K m", "HLEN K", "TOUCH K", "BITCOUNT K", "SORT_RO K ALPHA", "GET K", "GET K",
    "MGET K K K", "GET", "DBSIZE", "PING x", "SET K 1", "SET K 2 EX 100", "SET K 3 NX", "SET K 3 XX",
    "SETEX K 100 v", "MSET K 1 K 2", "APPEND K x", "INCR K", "GETSET K 5", "GETDEL K",
    "GETEX K EX 100", "GETEX K", "HSET K f v", "HDEL K f", "HINCRBY K f 1", "LPUSH K a", "RPUSH K b",
    "LPOP K", "RPOP K 2", "LSET K 0 x", "LREM K 0 a", "LINSERT K BEFORE a b", "LMOVE K K LEFT RIGHT",
    "SADD K m", "SREM K m", "SMOVE K K m", "SPOP K", "SUNIONSTORE K K K", "SINTERSTORE K K K",
    "ZADD K 1 m", "ZINCRBY K 1 m", "ZREM K m", "ZPOPMIN K", "ZUNIONSTORE K 2 K K", "DEL K",
    "DEL K K", "UNLINK K", "EXPIRE K 100", "EXPIRE K -1", "PERSIST K", "RENAME K K", "RENAMENX K K",
    "COPY K K", "COPY K K REPLACE", "MOVE K 1", "SORT K ALPHA STORE K", "SETBIT K 1 1", "BITOP NOT K K",
    "SETRANGE K 1 x", "FLUSHDB", "FLUSHALL", "SWAPDB 0 1", "SELECT 1", "SELECT 0", "SELECT 0",
    "BLPOP K 0.001", "BLMOVE K K LEFT LEFT 0.001", "SET K v", "SET K w", "DEL K K K",
];
/// Scripts that read, write or do both.
const SCRIPTS: [&str; 6] = [
    "return redis.call('get',KEYS[1])",
    "return redis.call('set',KEYS[1],1)",
    "redis.call('get',KEYS[2]) return redis.call('set',KEYS[1],1)",
    "redis.call('set',KEYS[1],1) return redis.call('get',KEYS[2])",
    "redis.call('set',KEYS[1],1) redis.call('exists',KEYS[1]) return redis.call('del',KEYS[1])",
    "return 1",
];
/// Options of CLIENT TRACKING. C is the number of a client. BCAST stands without NOLOOP: Redis tells
/// such a client of the writes of its own scripts.
#[rustfmt::skip]
const OPTIONS: [&str; 16] = [
    "ON", "ON", "ON NOLOOP", "ON BCAST", "ON BCAST PREFIX P", "ON BCAST PREFIX P PREFIX P",
    "ON REDIRECT C", "ON REDIRECT C", "ON OPTIN", "ON OPTOUT", "ON OPTIN OPTOUT", "OFF", "OFF",
    "ON PREFIX P", "ON REDIRECT 999999999", "ON BCAST OPTIN",
];

fn random_command(state: &mut u64, in_multi: bool) -> String {
    let key = |state: &mut u64| {
        ["a", "b", "ab", "abc", "news:1", "news:2"][next(state, 6) as usize].to_owned()
    };
    let pattern = match next(state, 20) {
        0 | 1 if !in_multi => format!("CLIENT TRACKING {}", OPTIONS[next(state, 16) as usize]),
        2 => ["CLIENT CACHING YES", "CLIENT CACHING NO", "CLIENT CACHING x"]
            [next(state, 3) as usize]
            .to_owned(),
        3 if !in_multi => {
            ["CLIENT TRACKINGINFO", "CLIENT GETREDIR"][next(state, 2) as usize].to_owned()
        }
        4 if !in_multi => ["SUBSCRIBE __redis__:invalidate", "UNSUBSCRIBE", "RESET"]
            [next(state, 3) as usize]
            .to_owned(),
        _ => COMMANDS[next(state, COMMANDS.len() as u64) as usize].to_owned(),
    };
    let word = |word: &str| match word {
        "K" => key(state),
        "P" => ["a", "ab", "n", "x"][next(state, 4) as usize].to_owned(),
        "C" => format!("#{}", 2 + next(state, 3)),
        other => other.to_owned(),
    };
    pattern.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A command, or a script.
fn random_line(state: &mut u64, in_multi: bool) -> String {
    match next(state, 12) {
        0 => format!("EVAL {} 2 a ab", SCRIPTS[next(state, 6) as usize]),
        _ => random_command(state, in_multi),
    }
}

/// The versions of the protocol that the clients speak.
const VERSIONS: [u8; CLIENTS] = [3, 3, 3, 2, 2];
const CLIENTS: usize = 5;

/// The clients of one server.
struct Side {
    clients: Vec<Listener>,
    ids: Vec<i64>,
    /// Keeps the table of keys, which lsmkv forgets when nobody tracks.
    _keeper: Listener,
}

impl Side {
    fn new(stream: &dyn Fn() -> UnixStream) -> Self {
        let clients: Vec<_> = VERSIONS.iter().map(|it| Listener::new(stream(), *it)).collect();
        let mut keeper = Listener::new(stream(), 3);
        assert_eq!(keeper.ask("CLIENT TRACKING ON"), Resp::Status("OK".into()));
        let mut side = Self { clients, ids: Vec::new(), _keeper: keeper };
        for client in &mut side.clients {
            let Resp::Int(id) = client.ask("CLIENT ID") else { panic!("no number") };
            side.ids.push(id);
        }
        side
    }

    /// Runs commands of one client, and tells what all have received.
    fn run(&mut self, client: usize, commands: &[String]) -> Vec<Vec<Resp>> {
        let mut arrived: Vec<Vec<Resp>> = vec![Vec::new(); CLIENTS];
        for (n, command) in commands.iter().enumerate() {
            if n > 0 && commands[0] != "MULTI" {
                std::thread::sleep(Duration::from_millis(12));
            }
            let named = |word: &str| match word.strip_prefix('#') {
                Some(number) => self.ids[number.parse::<usize>().unwrap()].to_string(),
                None => word.to_owned(),
            };
            let words: Vec<String> = match command.strip_prefix("EVAL ") {
                // The script has spaces.
                Some(rest) => {
                    let (script, keys) = rest.rsplit_once(" 2 ").unwrap();
                    let keys = keys.split(' ').map(str::to_owned);
                    ["EVAL".to_owned(), script.to_owned(), "2".to_owned()]
                        .into_iter()
                        .chain(keys)
                        .collect()
                }
                None => command.split(' ').map(named).collect(),
            };
            self.clients[client].send_words(&words);
            // After MULTI the marker would be queued.
            if commands[0] != "MULTI" || n + 1 == commands.len() {
                arrived[client].extend(self.clients[client].drained());
            }
        }
        // A broadcast may follow the reply of the marker.
        for (arrived, client) in arrived.iter_mut().zip(&mut self.clients) {
            arrived.extend(client.drained());
        }
        let own = commands[0].starts_with("CLIENT");
        for (number, arrived) in arrived.iter_mut().enumerate() {
            arrived.iter_mut().for_each(|reply| self.normalize(own && number == client, reply));
            // What another client redirects here comes before the reply in Redis or inside of it, after
            // it in lsmkv: `tracking_order` shows that. Messages of one command for several clients that redirect to one have no order. Nil
            // has one form by now, so it has one place.
            arrived.sort_by_key(|reply| match reply {
                Resp::Push(items) => (true, items.clone()),
                _ => (false, Vec::new()),
            });
        }
        if commands[0] == "RESET" && VERSIONS[client] == 3 {
            self.clients[client].ask("HELLO 3");
        }
        arrived
    }

    /// Replaces numbers of clients by their place, and all forms of nil by one: Redis sends that of
    /// the version of the client that tracks, not of the one that receives.
    fn normalize(&self, own: bool, reply: &mut Resp) {
        match reply {
            Resp::Bulk(None) | Resp::Array(None) => *reply = Resp::Null,
            Resp::Int(number) if own => {
                if let Some(at) = self.ids.iter().position(|id| id == number) {
                    *number = 1_000_000 + at as i64;
                }
            }
            Resp::Array(Some(items)) | Resp::Push(items) | Resp::Map(items) => {
                items.iter_mut().for_each(|item| self.normalize(own, item));
            }
            _ => {}
        }
    }
}

#[test]
fn random_sequences_of_clients_that_track_are_answered_as_by_redis() {
    let Some(redis) = Server::start("server::tracking") else { return };
    let ours = Lsmkv::start(&["--threads", "2"]);
    let seed = number("LSMKV_TRACKING_SEED", 2024);
    let commands = number("LSMKV_TRACKING_COMMANDS", 4000);
    // Redis joins the changes that it finds at once, so a key that its cleaner deletes in the turn of
    // PEXPIRE would be told once, not twice. It expires on the next access instead.
    ask(&mut redis.connect(), "DEBUG SET-ACTIVE-EXPIRE 0");
    let mut sides = [Side::new(&|| ours.stream()), Side::new(&|| redis.stream())];
    let (mut state, mut messages, mut before) = (seed, 0, Vec::new());
    for step in 0..commands {
        let client = next(&mut state, CLIENTS as u64) as usize;
        let mut commands = vec![random_line(&mut state, false)];
        if client == 0 && next(&mut state, 4) == 0 {
            // Redis takes the time twice in PEXPIRE: with 1 it deletes the key at once if a millisecond
            // ends in between, and then the expiry tells nothing.
            commands = vec!["PEXPIRE a 8".to_owned(), "GET a".to_owned()];
        } else if next(&mut state, 12) == 0 {
            let lines = 1 + next(&mut state, 5);
            commands = vec!["MULTI".to_owned()];
            commands.extend((0..lines).map(|_| random_line(&mut state, true)));
            commands.push(["EXEC", "EXEC", "EXEC", "DISCARD"][next(&mut state, 4) as usize].into());
        }
        let [ours, theirs] = sides.each_mut().map(|side| side.run(client, &commands));
        before.push(format!("{client}: {commands:?}"));
        for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let last = before.len().saturating_sub(40);
            assert_eq!(
                shown(ours),
                shown(theirs),
                "seed {seed}, step {step}, client {number} after\n{}",
                before[last..].join("\n")
            );
            messages += theirs.iter().filter(|it| matches!(it, Resp::Push(_))).count();
        }
    }
    let [ours, theirs] = sides.each_ref().map(|side| side.clients[2].interleaved);
    assert_eq!(ours, 0, "messages inside of replies");
    println!("{theirs} messages inside of replies of Redis");
    println!("seed {seed}: {commands} commands and {messages} messages compared");
    assert!(messages as u64 > commands / 8, "{messages}");
}

/// The invariant that caches rely on: whoever reads a value that is then changed learns of it, after
/// the reply, whichever thread changes it.
#[test]
fn a_cache_is_never_stale_while_others_write() {
    let server = Lsmkv::start(&["--threads", "2"]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = server.connect();
            for n in 0..20_000u32 {
                let key = format!("k{}", n % 4);
                client.call(&["SET", &key, &n.to_string()]).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut reader = Listener::new(server.stream(), 3);
        assert_eq!(reader.ask("CLIENT TRACKING ON"), Resp::Status("OK".into()));
        let mut cache: [Option<Resp>; 4] = Default::default();
        let drop_told = |cache: &mut [Option<Resp>; 4], message: &Resp| {
            let text = shown(std::slice::from_ref(message));
            let key = text.trim_start_matches("invalidate [\"k").trim_end_matches("\"]");
            cache[key.parse::<usize>().unwrap()] = None;
        };
        let mut fetched = 0;
        let mut turn = 0;
        while !done.load(std::sync::atomic::Ordering::SeqCst) || fetched < 100 {
            turn += 1;
            let key = turn % 4;
            reader.send_words(&["GET".to_owned(), format!("k{key}")]);
            loop {
                match reader.read() {
                    message @ Resp::Push(_) => drop_told(&mut cache, &message),
                    reply => {
                        cache[key] = Some(reply);
                        break;
                    }
                }
            }
            fetched += 1;
        }
        writer.join().unwrap();
        // All that is known of changes has arrived before the reply to the marker.
        for message in reader.drained() {
            drop_told(&mut cache, &message);
        }
        let mut client = server.connect();
        for (key, cached) in cache.iter().enumerate() {
            if let Some(cached) = cached {
                assert_eq!(cached, &ask(&mut client, &format!("GET k{key}")), "k{key} is stale");
            }
        }
    });
}

#[test]
fn a_client_is_not_told_of_its_own_changes_if_it_says_so() {
    let server = Lsmkv::start(&[]);
    let mut other = server.connect();
    for mode in ["ON NOLOOP", "ON BCAST NOLOOP"] {
        let mut client = Listener::new(server.stream(), 3);
        client.ask(&format!("CLIENT TRACKING {mode}"));
        client.ask("GET a");
        client.ask("SET a 1");
        client.ask("GET a");
        assert_eq!(shown(&client.drained()), "", "{mode}");
        ask(&mut other, "SET a 2");
        assert_eq!(shown(&client.drained()), "invalidate [\"a\"]", "{mode}");
    }
}

#[test]
fn what_expires_is_told_without_a_read() {
    let server = Lsmkv::start(&[]);
    let mut client = Listener::new(server.stream(), 3);
    let mut other = server.connect();
    ask(&mut other, "SET a 1 PX 50");
    client.ask("CLIENT TRACKING ON");
    assert_eq!(client.ask("GET a"), Resp::Bulk(Some(b"1".to_vec())));
    let mut told = Vec::new();
    until("the client is told", || {
        told.extend(client.drained());
        !told.is_empty()
    });
    assert_eq!(shown(&told), "invalidate [\"a\"]");
}

#[test]
fn tracking_is_shown_bounded_and_ends_with_its_client() {
    let server = Lsmkv::start(&[]);
    let mut other = server.connect();
    assert_eq!(
        ask(&mut other, "CONFIG SET tracking-table-max-keys 100"),
        Resp::Status("OK".into())
    );
    let mut client = Listener::new(server.stream(), 3);
    client.ask("CLIENT TRACKING ON");
    for n in 0..1000 {
        client.send_words(&["GET".to_owned(), format!("k{n}")]);
    }
    let evicted = client.drained().iter().filter(|it| matches!(it, Resp::Push(_))).count();
    assert_eq!(evicted, 900);
    for (section, name, value) in [
        ("clients", "tracking_clients", 1),
        ("stats", "tracking_total_keys", 100),
        ("stats", "tracking_total_items", 100),
        ("stats", "tracking_total_prefixes", 0),
    ] {
        assert_eq!(info(&mut other, section, name), value, "{name}");
    }
    let list = reply_text(&mut other, "CLIENT LIST");
    assert!(list.contains(" flags=tU ") && list.contains(" redir=0 "), "{list}");
    drop(client);
    until("nobody tracks", || info(&mut other, "clients", "tracking_clients") == 0);
    assert_eq!(info(&mut other, "stats", "tracking_total_keys"), 0);
}
