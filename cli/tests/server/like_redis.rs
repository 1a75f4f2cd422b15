//! What a table of cases shows to be as in Redis: which commands a WATCH notices, what MULTI refuses,
//! and which keys COMMAND GETKEYS finds.
//!
//! The bugs: SMOVE to a set that has the member, and SETBIT and BITFIELD that change nothing, ended a
//! transaction; APPEND of nothing did not. SAVE and SHUTDOWN were queued. The
//! destination of SORT was no key.

use crate::server::Server;
use crate::support::{Lsmkv, reply_text, words};

/// What is stored before, the watched key, and the command of another client.
const CHANGES: &[(&[&str], &str, &str)] = &[
    (&["SADD s x", "SADD t x"], "s", "SMOVE s t nope"),
    (&["SADD s x", "SADD t x"], "t", "SMOVE s t nope"),
    (&["SADD s x", "SADD t x"], "s", "SMOVE s s x"),
    (&["SADD s x", "SADD t x"], "t", "SMOVE s t x"),
    (&["SADD s x", "SADD t x"], "s", "SMOVE s t x"),
    (&["SADD s x y"], "t", "SMOVE s t x"),
    (&["SADD s x"], "s", "SMOVE s s nope"),
    (&["SADD s x"], "s", "SMOVE missing s x"),
    (&["SETBIT k 7 1"], "k", "SETBIT k 7 1"),
    (&["SETBIT k 7 1"], "k", "SETBIT k 3 0"),
    (&["SETBIT k 7 1"], "k", "SETBIT k 7 0"),
    (&[], "k", "SETBIT k 3 0"),
    (&["SETBIT k 7 1"], "k", "SETBIT k 100 0"),
    (&["SET k v"], "k", "APPEND k \"\""),
    (&[], "k", "APPEND k \"\""),
    (&["SET k v"], "k", "SETRANGE k 0 \"\""),
    (&["SET k v"], "k", "SETRANGE k 0 v"),
    (&[], "k", "SETRANGE k 5 \"\""),
    (&["SET k v"], "k", "SET k v"),
    (&["SET k 1"], "k", "INCRBY k 0"),
    (&["HSET h f v"], "h", "HSET h f v"),
    (&["HSET h f v"], "h", "HSETNX h f w"),
    (&["HSET h f 1"], "h", "HINCRBY h f 0"),
    (&["SADD s x"], "s", "SADD s x"),
    (&["SADD s x"], "s", "SREM s y"),
    (&["SADD s x"], "s", "SPOP s 0"),
    (&["ZADD z 1 a"], "z", "ZADD z 1 a"),
    (&["ZADD z 1 a"], "z", "ZADD z XX 1 a"),
    (&["ZADD z 1 a"], "z", "ZINCRBY z 0 a"),
    (&["ZADD z 1 a"], "z", "ZREM z b"),
    (&["ZADD z 1 a"], "z", "ZPOPMIN z 0"),
    (&["ZADD z 1 a"], "z", "ZREMRANGEBYRANK z 5 9"),
    (&["RPUSH l a"], "l", "LSET l 0 a"),
    (&["RPUSH l a"], "l", "LTRIM l 1 -1"),
    (&[], "l", "LTRIM l 0 -1"),
    (&["RPUSH l a"], "l", "LREM l 0 b"),
    (&["RPUSH l a"], "l", "LPOP l 0"),
    (&["RPUSH l a"], "l", "RPOPLPUSH l l"),
    (&["RPUSH l a"], "l", "LINSERT l BEFORE q x"),
    (&["SET k v"], "k", "PERSIST k"),
    (&["SET k v"], "k", "EXPIRE k 100"),
    (&["SET k v", "EXPIRE k 100"], "k", "EXPIRE k 100"),
    (&["SET k v", "EXPIRE k 100"], "k", "GETEX k"),
    (&["SET k v"], "k", "GETEX k PERSIST"),
    (&["SET k v"], "k", "RENAME k k"),
    (&["SET k v"], "k", "RENAMENX k k"),
    (&["SET k v"], "k", "COPY k k2"),
    (&[], "k", "DEL k"),
    (&[], "d", "SUNIONSTORE d none"),
    (&["SADD d x"], "d", "SUNIONSTORE d d"),
    (&[], "d", "SORT none STORE d"),
    (&[], "d", "ZRANGESTORE d none 0 -1"),
    (&[], "d", "BITOP AND d none"),
    (&["SET k a"], "k", "BITFIELD k GET u8 0"),
    (&["SET k a"], "k", "BITFIELD k SET u8 0 97"),
    (&["SET k a"], "k", "BITFIELD k SET u8 0 98"),
    (&["SET k a"], "k", "BITFIELD k SET u8 0 98 SET u8 0 97"),
    (&["SET k a"], "k", "BITFIELD k SET u8 8 0"),
    (&["SET k a"], "k", "BITFIELD k INCRBY u8 0 0"),
    (&["SET k a"], "k", "BITFIELD k OVERFLOW FAIL INCRBY u8 0 255"),
    (&["SET k a"], "k", "GETSET k a"),
    (&["SET k a"], "k", "SETNX k b"),
    (&["SET k a"], "k", "MSETNX k b j c"),
    (&[], "k", "FLUSHALL"),
    (&["SET k v"], "k", "SWAPDB 0 1"),
    (&[], "k", "SWAPDB 0 1"),
    (&["SET k v"], "k", "MOVE k 1"),
];

/// Lines run by one client, whose replies are compared.
const LINES: &[&str] = &[
    "SET a 1",
    "MULTI",
    "SAVE",
    "EXEC",
    "MULTI",
    "INCR a",
    "SHUTDOWN NOSAVE",
    "EXEC",
    "MULTI",
    "SHUTDOWN nonsense",
    "EXEC",
    "MULTI",
    "SAVE now",
    "DISCARD",
    "MULTI",
    "BGSAVE",
    "EXEC",
    "GET a",
    "COMMAND GETKEYS SORT a",
    "COMMAND GETKEYS SORT a STORE b",
    "COMMAND GETKEYS SORT a store b DESC",
    "COMMAND GETKEYS SORT a BY w* GET # GET x* STORE b",
    "COMMAND GETKEYS SORT a LIMIT 0 1 STORE b",
    "COMMAND GETKEYS SORT a STORE b STORE c",
    "COMMAND GETKEYS SORT a LIMIT STORE b",
    "COMMAND GETKEYS SORT a BY STORE STORE d",
    "COMMAND GETKEYS SORT a GET STORE b",
    "COMMAND GETKEYS SORT a nonsense STORE b",
    "COMMAND GETKEYS SORT a STORE",
    "COMMAND GETKEYS SORT_RO a BY w*",
];

/// The words of a line, with `""` for an empty one.
fn arguments(line: &str) -> Vec<&str> {
    words(line).into_iter().map(|word| if word == "\"\"" { "" } else { word }).collect()
}

#[test]
fn a_watch_notices_the_commands_that_it_notices_in_redis() {
    let Some(redis) = Server::start("server::like_redis") else { return };
    let ours = Lsmkv::start(&[]);
    for (setup, watched, change) in CHANGES {
        let outcomes = [(ours.connect(), ours.connect()), (redis.connect(), redis.connect())].map(
            |(mut client, mut other)| {
                client.call(&["FLUSHALL"]).unwrap();
                for line in *setup {
                    client.call(&arguments(line)).unwrap();
                }
                client.call(&["WATCH", watched]).unwrap();
                let reply = other.call(&arguments(change)).unwrap();
                client.call(&["MULTI"]).unwrap();
                client.call(&["PING"]).unwrap();
                format!("{reply:?}, then {:?}", client.call(&["EXEC"]).unwrap())
            },
        );
        let [ours, redis] = outcomes;
        assert_eq!(ours, redis, "{setup:?}; WATCH {watched}; {change}");
    }
}

#[test]
fn a_transaction_refuses_and_getkeys_finds_what_they_do_in_redis() {
    let Some(redis) = Server::start("server::like_redis") else { return };
    let ours = Lsmkv::start(&[]);
    let (mut client, mut theirs) = (ours.connect(), redis.connect());
    for line in LINES {
        let (reply, expected) = (client.call(&words(line)), theirs.call(&words(line)));
        assert_eq!(format!("{reply:?}"), format!("{expected:?}"), "{line}");
    }
}

/// What would end a real server is checked without Redis at hand.
#[test]
fn a_transaction_does_not_stop_the_server() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    for line in ["SAVE", "SHUTDOWN", "SHUTDOWN ABORT"] {
        assert_eq!(reply_text(&mut client, "MULTI"), "+OK");
        assert_eq!(reply_text(&mut client, "SET k v"), "+QUEUED");
        let refused = "-ERR Command not allowed inside a transaction";
        assert_eq!(reply_text(&mut client, line), refused);
        assert!(reply_text(&mut client, "EXEC").starts_with("-EXECABORT"), "{line}");
        assert_eq!(reply_text(&mut client, "EXISTS k"), ":0");
    }
}
