//! Key events over the wire, compared with a real Redis: random commands run on both, and a
//! subscriber of all events sees the same ones in the same order.

use std::time::Duration;

use crate::messages::{Listener, next, shown};
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{Lsmkv, ask, info, number, until};

/// Commands whose effect does not depend on chance. K is a key, V a small number, M a member.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "SET K V", "SET K V EX 100", "SET K V XX", "SET K V NX", "SET K V KEEPTTL", "SET K V GET",
    "SETEX K 100 V", "PSETEX K 100000 V", "SETNX K V", "GETSET K V", "GETDEL K", "GETEX K",
    "GETEX K EX 100", "GETEX K PERSIST", "MSET K V K V", "MSETNX K V K V", "APPEND K V",
    "SETRANGE K 2 V", "INCR K", "DECR K", "INCRBY K 5", "DECRBY K 3", "INCRBYFLOAT K 1.5",
    "SETBIT K 3 1", "BITFIELD K SET u8 0 V", "BITFIELD K GET u8 0", "BITOP AND K K K", "GET K",
    "STRLEN K", "MGET K K", "GETRANGE K 0 1", "HSET K M V", "HSET K M V M V", "HMSET K M V",
    "HSETNX K M V", "HDEL K M", "HDEL K M M M", "HINCRBY K M 2", "HINCRBYFLOAT K M 1.5", "HGET K M",
    "HGETALL K", "HLEN K", "LPUSH K M", "RPUSH K M M", "LPUSHX K M", "RPUSHX K M", "LPOP K",
    "RPOP K", "LPOP K 2", "RPOP K 0", "LMPOP 2 K K LEFT COUNT 2", "LMOVE K K LEFT RIGHT",
    "RPOPLPUSH K K", "LINSERT K BEFORE M M", "LSET K 0 M", "LREM K 0 M", "LTRIM K 0 1",
    "LTRIM K 5 9", "LRANGE K 0 -1", "BLPOP K 0.001", "BLMOVE K K LEFT LEFT 0.001", "SADD K M",
    "SADD K M M", "SREM K M", "SREM K M M M", "SMOVE K K M", "SCARD K", "SMEMBERS K",
    "SINTERSTORE K K K", "SUNIONSTORE K K K", "SDIFFSTORE K K K", "SPOP K 100", "ZADD K 1 M",
    "ZADD K 2 M 3 M", "ZADD K XX 5 M", "ZADD K NX 5 M", "ZADD K INCR 1 M", "ZINCRBY K 1 M",
    "ZREM K M", "ZREM K M M M", "ZPOPMIN K", "ZPOPMAX K 2", "ZMPOP 1 K MIN", "BZPOPMIN K 0.001",
    "ZREMRANGEBYRANK K 0 0", "ZREMRANGEBYSCORE K 0 3", "ZREMRANGEBYLEX K - +",
    "ZUNIONSTORE K 2 K K", "ZINTERSTORE K 2 K K", "ZDIFFSTORE K 2 K K", "ZRANGESTORE K K 0 1",
    "ZSCORE K M", "ZRANGE K 0 -1", "DEL K", "DEL K K", "UNLINK K", "EXPIRE K 100", "EXPIRE K -1",
    "PEXPIREAT K 1", "EXPIRE K 100 NX", "PERSIST K", "RENAME K K", "RENAMENX K K", "COPY K K",
    "COPY K K REPLACE", "COPY K K DB 1", "MOVE K 1", "SORT K ALPHA STORE K", "TYPE K", "TTL K",
    "EXISTS K K", "TOUCH K", "SELECT 1", "SELECT 0", "FLUSHDB", "SWAPDB 0 1", "DBSIZE", "MULTI",
    "EXEC", "DISCARD", "PEXPIRE K 1",
];

/// Commands that meet a key.
#[rustfmt::skip]
const MEETING: [&str; 12] = [
    "TYPE K", "GET K", "SET K v", "SET K v GET", "LPUSH K m", "HDEL K m", "SADD K m", "ZADD K 1 m",
    "RENAME K k9", "DEL K", "SUNIONSTORE k9 K", "COPY K k9 REPLACE",
];

fn random_command(state: &mut u64) -> String {
    let pattern = COMMANDS[next(state, COMMANDS.len() as u64) as usize];
    let word = |word: &str| match word {
        "K" => format!("k{}", next(state, 6)),
        "V" => next(state, 100).to_string(),
        "M" => format!("m{}", next(state, 4)),
        other => other.to_owned(),
    };
    pattern.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A caller, and a subscriber of all events.
struct Side {
    caller: Listener,
    events: Listener,
}

impl Side {
    fn new(stream: &dyn Fn() -> std::os::unix::net::UnixStream, classes: &str) -> Self {
        let mut side =
            Self { caller: Listener::new(stream(), 2), events: Listener::new(stream(), 2) };
        let set = format!("CONFIG SET notify-keyspace-events {classes}");
        assert_eq!(side.caller.ask(&set), Resp::Status("OK".into()));
        side.events.ask("PSUBSCRIBE __key*__:*");
        side
    }

    /// Runs commands, with a pause between them. The last reply, and all events.
    fn run(&mut self, commands: &[impl AsRef<str>]) -> (Resp, Vec<Resp>) {
        let (mut reply, mut events) = (Resp::Null, Vec::new());
        for (n, command) in commands.iter().enumerate() {
            if n > 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
            reply = self.caller.ask(command.as_ref());
            events.extend(self.events.drained());
        }
        (reply, events)
    }
}

#[test]
fn every_event_is_that_of_redis() {
    let Some(redis) = Server::start("server::key_events") else { return };
    let ours = Lsmkv::start(&[]);
    let (seed, commands) = (number("LSMKV_EVENT_SEED", 4711), number("LSMKV_EVENT_COMMANDS", 3000));
    let classes = "AKEnm";
    let mut sides = [Side::new(&|| ours.stream(), classes), Side::new(&|| redis.stream(), classes)];
    let (mut state, mut events) = (seed, 0);
    let mut before = Vec::new();
    let mut in_multi = false;
    for step in 0..commands {
        let mut commands = vec![random_command(&mut state)];
        in_multi = match commands[0].as_str() {
            "MULTI" => true,
            "EXEC" | "DISCARD" => false,
            _ => in_multi,
        };
        // What expires is met by the next command: both servers look for expired keys on their own
        // too, each at its own time.
        if let Some(key) = commands[0].strip_prefix("PEXPIRE ").and_then(|it| it.split(' ').next())
        {
            let next = MEETING[next(&mut state, MEETING.len() as u64) as usize];
            let next = next.replace('K', key);
            commands = if in_multi { vec![next] } else { vec![commands[0].clone(), next] };
        }
        let [(our_reply, our_events), (reply, theirs)] =
            sides.each_mut().map(|it| it.run(&commands));
        before.extend(commands);
        let last = before.len().saturating_sub(6);
        let told = || format!("seed {seed}, step {step}, after {:?}", &before[last..]);
        let same =
            our_events.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
        let rest = |events: &[Resp]| shown(&events[same.min(events.len())..]);
        assert_eq!(rest(&our_events), rest(&theirs), "{}", told());
        // A hash or set has no order.
        if !matches!(reply, Resp::Array(_)) {
            assert_eq!(our_reply, reply, "{}", told());
        }
        events += theirs.len();
    }
    println!("seed {seed}: {commands} commands and {events} events compared");
    assert!(events as u64 > commands / 2);
}

#[test]
fn expired_keys_are_announced_once_by_the_cleaner_or_a_read() {
    let server = Lsmkv::start(&[]);
    let mut side = Side::new(&|| server.stream(), "Ex");
    side.run(&["PSETEX read 20 v"]);
    side.run(&["PSETEX left 20 v"]);
    std::thread::sleep(Duration::from_millis(40));
    let (_, mut all) = side.run(&["GET read"]);
    until("both are announced", || {
        all.extend(side.events.drained());
        all.len() >= 2
    });
    std::thread::sleep(Duration::from_millis(700));
    all.extend(side.events.drained());
    let mut keys: Vec<String> =
        all.iter().map(|event| shown(std::slice::from_ref(event))).collect();
    keys.sort();
    let event = |key: &str| format!("pmessage __key*__:* __keyevent@0__:expired {key}");
    assert_eq!(keys, [event("left"), event("read")]);
}

#[test]
fn events_are_off_until_they_are_turned_on() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let mut events = Listener::new(server.stream(), 2);
    events.ask("PSUBSCRIBE *");
    ask(&mut client, "SET k v");
    assert_eq!(shown(&events.drained()), "");
    let wrong = ask(&mut client, "CONFIG SET notify-keyspace-events Q");
    assert!(wrong.is_error(), "{wrong:?}");
    ask(&mut client, "CONFIG SET notify-keyspace-events Kg$");
    assert_eq!(
        format!("{:?}", ask(&mut client, "CONFIG GET notify-keyspace-events")),
        "[\"notify-keyspace-events\", \"g$K\"]"
    );
    ask(&mut client, "SET k v");
    ask(&mut client, "LPUSH l v");
    ask(&mut client, "DEL k l");
    let seen = shown(&events.drained());
    let expected = "pmessage * __keyspace@0__:k set, pmessage * __keyspace@0__:k del, \
                    pmessage * __keyspace@0__:l del";
    assert_eq!(seen, expected);
    assert_eq!(info(&mut client, "stats", "pubsub_patterns"), 1);
}
