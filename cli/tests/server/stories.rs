//! Sequences of commands, sent line by line to our server and to a real Redis. Every reply must be
//! the same, in both versions of the protocol.

use crate::resp::{Client, Resp};
use crate::server::Server;
use crate::support::{Lsmkv, words};

/// A second connection sends the lines that start with `2>`.
const STORIES: &[(&str, &str)] = &[
    (
        "transactions",
        "
        MULTI
        SET a 1
        INCR a
        LPUSH a x
        GET a
        EXEC
        EXEC
        DISCARD
        MULTI
        MULTI
        DISCARD
        MULTI
        NOSUCH x
        SET a 2
        EXEC
        GET a
        MULTI
        GET
        EXEC
        WATCH a
        MULTI
        SET a mine
        2> SET a theirs
        EXEC
        GET a
        WATCH a
        UNWATCH
        2> SET a theirs2
        MULTI
        GET a
        EXEC
        WATCH a
        2> SELECT 1
        2> SET a other
        MULTI
        GET a
        EXEC
        MULTI
        SELECT 3
        SET in3 v
        EXEC
        GET in3
        SELECT 0
        MULTI
        RESET
        EXEC
        MULTI extra
        EXEC extra",
    ),
    (
        "transactions of what only a server has",
        "
        MULTI
        PING
        ECHO hi
        CLIENT GETNAME
        CLIENT SETNAME me
        CLIENT GETNAME
        BLPOP none 0
        BRPOPLPUSH none other 0
        BZPOPMIN none 0
        BLMPOP 0 1 none LEFT
        WAIT 0 0
        CONFIG SET hash-max-listpack-entries 100
        CONFIG GET hash-max-listpack-entries
        EXEC
        RPUSH l a b c
        ZADD z 1 m 2 n
        MULTI
        BLPOP none l 0
        BRPOP l notatime
        BLMOVE l l2 LEFT RIGHT 0
        BZPOPMAX z 0
        BZMPOP 0 2 none z MIN COUNT 5
        BLMPOP 0 1 l LEFT COUNT 2
        EXEC
        LRANGE l 0 -1
        LRANGE l2 0 -1
        MULTI
        BLPOP
        EXEC
        MULTI
        CLIENT
        EXEC",
    ),
    (
        "blocking pops that need not wait, or not for long",
        "
        RPUSH l a b c d
        ZADD z 1 a 2 b 3 c
        SET s v
        BLPOP l 0
        BRPOP none l 0
        BLMOVE l m RIGHT LEFT 0
        BRPOPLPUSH l m 0
        LRANGE m 0 -1
        BZPOPMIN none z 0
        BZPOPMAX z 0
        BZMPOP 0 1 z MIN
        BLMPOP 0 2 none m LEFT COUNT 10
        BLPOP none 0.01
        BRPOP none also 0.01
        BLMOVE none m LEFT LEFT 0.01
        BRPOPLPUSH none m 0.01
        BLMPOP 0.01 1 none RIGHT
        BZPOPMIN none 0.01
        BZMPOP 0.01 1 none MAX
        BLPOP s 0
        BLPOP s none 0
        BLPOP none s 0
        BZPOPMIN s 0
        BLMOVE s m LEFT LEFT 0
        BLPOP l -1
        BLPOP l abc
        BLMOVE l m UP DOWN 0
        BLMPOP 0 0 l LEFT
        BLMPOP 0 x l LEFT
        BLMPOP 0 1 l UP
        BLMPOP 0 5 l LEFT
        BLMPOP abc 1 l LEFT
        BLMPOP 0 1 l LEFT COUNT 0
        BZMPOP 0 1 z MIN COUNT -1
        BLPOP l
        BLMOVE l m LEFT LEFT
        RPUSH src x
        SET dst text
        BLMOVE src dst LEFT LEFT 0
        LRANGE src 0 -1",
    ),
    (
        "connections",
        "
        PING
        PING hello
        PING a b
        ECHO
        SELECT 1
        SELECT 99
        SELECT x
        SELECT -1
        CLIENT GETNAME
        CLIENT SETNAME a
        CLIENT GETNAME
        CLIENT NOSUCH
        CLIENT ID extra
        CLIENT KILL ID 99999
        CLIENT KILL 1.2.3.4:5
        CLIENT KILL TYPE replica
        CLIENT KILL NOSUCH x
        CLIENT UNBLOCK 99999
        CLIENT UNBLOCK x
        CLIENT UNBLOCK 99999 SOON
        CLIENT NO-EVICT ON
        CLIENT NO-EVICT PERHAPS
        CLIENT REPLY SOMETIMES
        CLIENT REPLY ON
        CLIENT LIST ID 99999
        CLIENT LIST TYPE replica
        CLIENT LIST TYPE nosuch
        AUTH secret
        AUTH default anything
        AUTH nobody anything
        HELLO 9
        HELLO abc
        HELLO 2 NOSUCH
        HELLO 2 AUTH nobody x
        RESET
        CLIENT GETNAME
        QUIT",
    ),
    (
        "the server",
        "
        CONFIG GET nosuchthing
        CONFIG SET nosuchthing 1
        CONFIG SET timeout abc
        CONFIG SET timeout
        CONFIG GET
        CONFIG NOSUCH
        CONFIG SET timeout 17 maxclients 123
        CONFIG GET timeout
        CONFIG SET timeout 0
        CONFIG RESETSTAT
        CONFIG REWRITE
        COMMAND GETKEYS SET k v
        COMMAND GETKEYS MSET a 1 b 2
        COMMAND GETKEYS ZUNIONSTORE d 2 a b
        COMMAND GETKEYS BLPOP a b 0
        COMMAND GETKEYS BZMPOP 0 2 a b MIN
        COMMAND GETKEYS PING
        COMMAND GETKEYS NOSUCH a
        COMMAND GETKEYS SET
        COMMAND INFO nosuch
        COMMAND LIST FILTERBY PATTERN xyz*
        COMMAND COUNT extra
        WAIT 0 0
        WAIT x 0
        WAIT 0 -1
        WAIT 1 x
        WAIT 1 20
        CLUSTER SLOTS
        CLUSTER
        READONLY
        READWRITE
        TIME extra
        SAVE extra
        LASTSAVE extra
        SHUTDOWN NONSENSE
        SHUTDOWN ABORT
        INFO nosuchsection",
    ),
    (
        "shapes",
        "
        ZADD z 1.5 a 2 b inf c
        HSET h f v
        SADD s m
        ZADD one 3 m
        RPUSH l a
        ZRANGE z 0 -1 WITHSCORES
        ZREVRANGE z 0 -1 WITHSCORES
        ZRANGEBYSCORE z -inf +inf WITHSCORES
        ZRANGE z 0 -1
        ZUNION 2 z one WITHSCORES
        ZINTER 1 z WITHSCORES
        ZDIFF 1 z WITHSCORES
        ZRANDMEMBER one 1 WITHSCORES
        ZRANDMEMBER one -2 WITHSCORES
        ZRANDMEMBER one 1
        ZRANDMEMBER one
        ZRANDMEMBER none
        ZRANDMEMBER none 1 WITHSCORES
        HRANDFIELD h 1 WITHVALUES
        HRANDFIELD h -2 WITHVALUES
        HRANDFIELD h 1
        HRANDFIELD h
        HRANDFIELD none 1 WITHVALUES
        HGETALL h
        HGETALL none
        HKEYS h
        HVALS h
        HMGET h f none
        SMEMBERS s
        SMEMBERS none
        SINTER s s
        SUNION s
        SDIFF s
        SRANDMEMBER s
        SRANDMEMBER s 1
        SRANDMEMBER s -2
        SMISMEMBER s m n
        SPOP s 1
        SPOP none
        SPOP none 1
        ZSCORE z a
        ZSCORE z none
        ZMSCORE z a none
        ZINCRBY z 1 a
        ZADD z INCR 1 a
        ZADD z NX INCR 1 a
        ZADD z CH 5 a
        ZRANK z a
        ZRANK z none
        INCRBYFLOAT f 1.5
        HINCRBYFLOAT h n 1.5
        ZPOPMIN one
        ZPOPMIN none
        ZPOPMIN none 2
        ZPOPMIN z 1
        ZPOPMAX z
        ZMPOP 1 z MAX
        ZMPOP 1 none MAX
        LMPOP 1 l LEFT
        LMPOP 1 l LEFT
        LPOP none
        LPOP none 1
        LPOS none x
        LPOS none x COUNT 0
        GETEX none
        EXISTS none
        TYPE z
        OBJECT ENCODING none
        SET a ohmytext
        SET b mynewtext
        LCS a b IDX WITHMATCHLEN
        LCS a b LEN
        LCS a b
        SCAN 0 MATCH nothing*
        SORT none
        BITFIELD bf GET u4 0 INCRBY u2 100 1 OVERFLOW FAIL
        COPY z none2
        MULTI
        ZRANGE z 0 -1 WITHSCORES
        HGETALL h
        ZSCORE z a
        GET none
        EXEC",
    ),
];

/// Sends a story to both servers; returns the differences.
fn differences_in(
    story: &str,
    lines: &str,
    version: &str,
    ours: &Lsmkv,
    redis: &Server,
) -> Vec<String> {
    let mut differences = Vec::new();
    let mut connections: Vec<(Client, Client)> =
        (0..2).map(|_| (ours.connect(), redis.connect())).collect();
    for (ours, redis) in &mut connections {
        for client in [ours, redis] {
            client.call(&["HELLO", version]).unwrap();
            client.call(&["FLUSHALL"]).unwrap();
        }
    }
    for line in lines.trim().lines().map(str::trim) {
        let (who, line) = match line.strip_prefix("2> ") {
            Some(line) => (1, line),
            None => (0, line),
        };
        let (ours, redis) = &mut connections[who];
        let (mine, theirs) = (ours.call(&words(line)).unwrap(), redis.call(&words(line)).unwrap());
        if mine != theirs {
            let place = format!("{story}, RESP{version}: {line}");
            differences.push(format!("{place}\n  ours  {mine:?}\n  redis {theirs:?}"));
        }
    }
    differences
}

#[test]
fn stories_go_as_in_redis() {
    let Some(redis) = Server::start("server::stories") else { return };
    let ours = Lsmkv::start(&[]);
    let mut differences = Vec::new();
    for (story, lines) in STORIES {
        for version in ["2", "3"] {
            differences.extend(differences_in(story, lines, version, &ours, &redis));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_password_closes_everything_but_the_door() {
    let server = Lsmkv::start(&["--requirepass", "secret"]);
    let mut client = server.connect();
    let mut asks = |line: &str| client.call(&words(line)).unwrap();
    let error = |text: &str| Resp::Error(text.into());
    let closed = error("NOAUTH Authentication required.");
    assert_eq!(asks("GET k"), closed);
    assert_eq!(asks("INFO"), closed);
    assert_eq!(asks("MULTI"), closed);
    let wrong = error("WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(asks("AUTH wrong"), wrong);
    assert_eq!(asks("AUTH nobody secret"), wrong);
    assert!(matches!(asks("HELLO 3"), Resp::Error(text) if text.starts_with("NOAUTH HELLO")));
    assert_eq!(asks("AUTH secret"), Resp::Status("OK".into()));
    assert_eq!(asks("SET k v"), Resp::Status("OK".into()));
    assert_eq!(asks("RESET"), Resp::Status("RESET".into()));
    assert_eq!(asks("GET k"), closed);
    assert!(matches!(asks("HELLO 3 AUTH default secret"), Resp::Map(_)));
    assert_eq!(asks("GET k").bytes(), Some(&b"v"[..]));
}
