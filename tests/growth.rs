//! What commands cost does not grow with the collections, the strings and the keys that they are
//! about, unless docs/COMMANDS.md says so. Work is counted, not time: blocks looked at, lookups,
//! entries and bytes written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

use std::collections::HashSet;

use lsmkv::types::ZAdd;
use lsmkv::{Db, Options, Reply};

/// How often each command is called.
const TIMES: u32 = 16;

/// Commands whose cost grows with what they are about, as docs/COMMANDS.md says.
const GROWING: &str = "HGETALL HKEYS HVALS LREM SMEMBERS SUNION SUNIONSTORE ZINTER ZINTERSTORE ZUNION \
    ZUNIONSTORE COPY DBSIZE KEYS MOVE RENAME RENAMENX SORT SORT_RO";

/// Groups of commands that run others, wait for others or send to others.
const ELSEWHERE: [&str; 3] = ["Scripts", "Blocking commands", "Messages"];

/// Calls whose cost does not grow. In them, `$m` is a member that no other call removes and `$k` such a
/// key, `$n` a member that is not there, `$r` a rank and index in the middle and `$s` one ten further,
/// `$i` the number of the call.
const FLAT: &str = "\
    APPEND $k x|DECR counter|DECRBY counter 2|GET $k|GETDEL $k|GETEX $k EX 1000|GETRANGE $k 1 3\n\
    GETSET $k x|INCR counter|INCRBY counter 3|INCRBYFLOAT fraction 0.5|LCS $k counter|MGET $k counter\n\
    MSET $k x other:$i y|MSETNX new:$i x|PSETEX $k 100000 x|SET $k x|SETEX $k 100 x|SETNX $k x\n\
    SETRANGE $k 2 y|STRLEN $k|SUBSTR $k 0 2\n\
    BITCOUNT $k|BITFIELD $k SET u8 0 65|BITFIELD_RO $k GET u8 0|BITOP AND dest $k counter|BITPOS $k 1\n\
    GETBIT $k 3|SETBIT $k 3 1\n\
    HDEL hash $m|HEXISTS hash $m|HGET hash $m|HGETDEL hash FIELDS 1 $m|HINCRBY hash count:$i 1\n\
    HINCRBYFLOAT hash part:$i 0.5|HLEN hash|HMGET hash $m $n|HMSET hash $n x|HRANDFIELD hash 3\n\
    HSET hash $n x|HSET hash $m x|HSETNX hash $n y|HSTRLEN hash $m\n\
    LINDEX list $r|LINSERT list BEFORE first x|LLEN list|LMOVE list list LEFT RIGHT\n\
    LMPOP 1 list RIGHT COUNT 2|LPOP list|LPOS list none MAXLEN 10|LPUSH list x|LPUSHX list x\n\
    LRANGE list $r $s|LSET list $r x|LTRIM list 1 -2|RPOP list 2|RPOPLPUSH list moved|RPUSH list x\n\
    RPUSHX list x\n\
    SADD set $n|SCARD set|SISMEMBER set $m|SMISMEMBER set $m $n|SMOVE set moved:set $m|SPOP set\n\
    SRANDMEMBER set 3|SREM set $m|SINTER few set|SINTERCARD 2 few set|SINTERCARD 2 set set LIMIT 5\n\
    SINTERSTORE dest few set|SDIFF few set|SDIFFSTORE dest few set\n\
    ZADD zset 7.5 $n|ZADD zset 8.5 $m|ZCARD zset|ZCOUNT zset 100 ($r|ZINCRBY zset 1 $m\n\
    ZLEXCOUNT lex [member:2 [member:b|ZMPOP 1 zset MIN|ZMSCORE zset $m $n|ZPOPMAX zset|ZPOPMIN zset\n\
    ZRANDMEMBER zset 3|ZRANGE zset $r $s|ZRANGE zset -inf +inf BYSCORE LIMIT $r 10\n\
    ZRANGEBYLEX lex - + LIMIT $r 10|ZRANGEBYSCORE zset -inf +inf LIMIT $r 10\n\
    ZRANGESTORE dest zset $r $s|ZRANK zset $m|ZREM zset $m|ZREMRANGEBYLEX lex [$m [$m\n\
    ZREMRANGEBYRANK zset $r $r|ZREMRANGEBYSCORE zset $r $r|ZREVRANGE zset $r $s\n\
    ZREVRANGEBYLEX lex + - LIMIT $r 10|ZREVRANGEBYSCORE zset +inf -inf LIMIT $r 10|ZREVRANK zset $m\n\
    ZSCORE zset $m|ZINTERCARD 2 few set|ZINTERCARD 2 zset zset LIMIT 5|ZDIFF 2 few set\n\
    ZDIFFSTORE dest 2 few set\n\
    EXISTS zset $k|EXPIRE zset 1000|EXPIREAT zset 4102444800|EXPIRETIME zset|MEMORY USAGE zset SAMPLES 5\n\
    OBJECT ENCODING zset|PERSIST zset|PEXPIRE zset 100000|PEXPIREAT hash 4102444800000|PEXPIRETIME hash\n\
    PTTL hash|RANDOMKEY|TOUCH hash zset|TTL hash|TYPE zset\n\
    HSCAN hash 0 COUNT 10|SCAN 0 COUNT 10|SCAN 0 MATCH none* COUNT 10|SSCAN set 0 COUNT 10\n\
    ZSCAN zset 0 COUNT 10\n\
    DEL hash|UNLINK zset set|SWAPDB 0 1|FLUSHDB|FLUSHALL";

fn calls() -> impl Iterator<Item = &'static str> {
    FLAT.split(['|', '\n']).map(str::trim)
}

fn member(n: u32) -> String {
    // In no order, as members come.
    format!("member:{:08x}:{n}", n.wrapping_mul(0x9e37_79b1))
}

/// A store with collections of this many members and as many keys, all of it in tables.
fn filled(count: u32) -> Db {
    let options =
        Options { table_bytes: 512 << 10, ttl_cleaner_interval_s: 0, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    let numbers: Vec<u32> = (0..count).collect();
    db.rpush(b"list", &[b"first"]).unwrap();
    for some in numbers.chunks(1000) {
        let names: Vec<String> = some.iter().map(|n| member(*n)).collect();
        let keys: Vec<String> = some.iter().map(|n| format!("key:{n}")).collect();
        let members: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let scored: Vec<_> = some.iter().map(|n| f64::from(*n)).zip(members.clone()).collect();
        let alike: Vec<_> = members.iter().map(|name| (1.0, *name)).collect();
        let fields: Vec<_> = members.iter().map(|name| (*name, &name[..8])).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (key.as_bytes(), &b"value"[..])).collect();
        db.zadd(b"zset", &scored, ZAdd::default()).unwrap();
        db.zadd(b"lex", &alike, ZAdd::default()).unwrap();
        db.hset(b"hash", &fields).unwrap();
        db.sadd(b"set", &members).unwrap();
        db.rpush(b"list", &members).unwrap();
        db.mset(&pairs).unwrap();
    }
    db.sadd(b"few", &[b"a", b"b", member(5).as_bytes()]).unwrap();
    db.compact().unwrap();
    db
}

/// What a store has done so far.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Blocks of tables that were looked at, in the cache or in files.
    blocks: u64,
    /// Lookups of one row or record.
    gets: u64,
    /// Entries written.
    entries: u64,
    /// Bytes written to the log.
    bytes: u64,
}

impl Work {
    fn so_far(db: &Db) -> Self {
        let stats = db.engine_stats();
        let sum = |of: fn(&lsmkv::engine::TreeStats) -> u64| stats.trees.iter().map(of).sum();
        Self {
            blocks: sum(|tree| tree.cache_hits + tree.block_reads),
            gets: stats.gets,
            entries: sum(|tree| tree.memtable_entries),
            bytes: stats.log_bytes,
        }
    }

    /// What `work` does. Nothing is flushed meanwhile.
    fn of(db: &Db, work: impl FnOnce()) -> Self {
        let before = Self::so_far(db);
        work();
        let after = Self::so_far(db);
        Self {
            blocks: after.blocks - before.blocks,
            gets: after.gets - before.gets,
            entries: after.entries - before.entries,
            bytes: after.bytes - before.bytes,
        }
    }
}

fn run(db: &Db, call: &str) -> Reply {
    let words: Vec<&[u8]> = call.split_whitespace().map(str::as_bytes).collect();
    db.command(&words).unwrap()
}

/// The work of [`TIMES`] calls. `at` is a number of its own for every line of the table.
fn work_of(db: &Db, call: &str, count: u32, at: u32) -> Work {
    Work::of(db, || {
        for i in 0..TIMES {
            // Members and keys in the middle, other ones in every call.
            let (own, middle) = (at * TIMES + i, count / 2 + i);
            let number = (own.wrapping_mul(7919)) % count;
            let words = call
                .replace("$m", &member(number))
                .replace("$k", &format!("key:{number}"))
                .replace("$n", &format!("other:{own}"))
                .replace("$r", &middle.to_string())
                .replace("$s", &(middle + 9).to_string())
                .replace("$i", &i.to_string());
            let reply = run(db, &words);
            assert!(!matches!(reply, Reply::Error(_)), "{words}: {reply:?}");
        }
    })
}

#[test]
fn every_command_is_said_to_grow_or_looked_at() {
    let flat: HashSet<&str> = calls().filter_map(|call| call.split(' ').next()).collect();
    let growing: HashSet<&str> = GROWING.split_whitespace().collect();
    for command in lsmkv::commands().filter(|it| !ELSEWHERE.contains(&it.group())) {
        let (name, known) = (command.name(), flat.contains(command.name()));
        assert!(
            known != growing.contains(name),
            "{name}: is its cost flat? {}",
            command.complexity()
        );
        if growing.contains(name) {
            assert_ne!(command.complexity(), "O(1)", "{name}");
        }
    }
}

#[test]
fn a_hundred_times_as_many_members_and_keys_cost_a_command_no_more() {
    let [few, many] = [1_000, 100_000].map(|count| {
        let db = filled(count);
        let work: Vec<Work> =
            (0..).zip(calls()).map(|(at, call)| work_of(&db, call, count, at)).collect();
        work
    });
    let each = u64::from(TIMES);
    for (call, (few, many)) in calls().zip(few.iter().zip(&many)) {
        println!("{call}: {few:?} {many:?}");
        // A larger tree has a level more. A walk over 100,000 members is hundreds of blocks a call.
        assert!(many.blocks <= 2 * few.blocks + 10 * each, "{call}: {few:?} and {many:?}");
        assert!(many.gets <= few.gets + 2 * each, "{call}: {few:?} and {many:?}");
        assert!(many.entries <= few.entries + each, "{call}: {few:?} and {many:?}");
        assert!(many.bytes <= few.bytes + 60 * each, "{call}: {few:?} and {many:?}");
    }
}

/// Calls on a string whose cost does not grow with its length. `$b` is a bit in the middle, `$r` a
/// byte there and `$s` one ten further.
const OF_A_STRING: &str = "\
    APPEND s tail|GETRANGE s $r $s|SUBSTR s $r $s|SETRANGE s $r other|STRLEN s|SETNX s x|SET s x NX\n\
    INCR s|DECRBY s 2|INCRBYFLOAT s 1|MSETNX s x\n\
    SETBIT s $b 1|GETBIT s $b|BITCOUNT s $r $s|BITPOS s 1 $r $s|BITFIELD s SET u8 $b 7|BITFIELD_RO s GET u8 $b\n\
    EXISTS s|TOUCH s|TYPE s|OBJECT ENCODING s|EXPIRE s 1000|PEXPIRE s 100000|EXPIREAT s 4102444800\n\
    PEXPIREAT s 4102444800000|TTL s|PTTL s|EXPIRETIME s|PEXPIRETIME s|PERSIST s|SCAN 0|RANDOMKEY\n\
    DEL s|UNLINK s";

#[test]
fn eight_thousand_times_the_length_costs_a_command_one_chunk() {
    const CHUNK: u64 = 8 << 10;
    let calls = || OF_A_STRING.split(['|', '\n']).map(str::trim);
    let [short, long] = [1 << 10, 8 << 20].map(|len: u32| {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let bytes: Vec<u8> = (0..len).map(|at| (at / 7 % 250 + 1) as u8).collect();
        db.set(b"s", &bytes).unwrap();
        db.compact().unwrap();
        let work = |call: &str| {
            Work::of(&db, || {
                for i in 0..TIMES {
                    let middle = len / 2 + i;
                    let call = call
                        .replace("$b", &(8 * middle).to_string())
                        .replace("$r", &middle.to_string())
                        .replace("$s", &(middle + 9).to_string());
                    // INCR and the like refuse the value.
                    run(&db, &call);
                }
            })
        };
        calls().map(work).collect::<Vec<_>>()
    });
    let each = u64::from(TIMES);
    for (call, (short, long)) in calls().zip(short.iter().zip(&long)) {
        println!("{call}: {short:?} {long:?}");
        assert!(long.blocks <= short.blocks + 3 * each, "{call}: {short:?} and {long:?}");
        assert!(long.gets <= short.gets + 3 * each, "{call}: {short:?} and {long:?}");
        assert!(long.entries <= short.entries + each, "{call}: {short:?} and {long:?}");
        assert!(long.bytes <= short.bytes + each * (CHUNK + 300), "{call}: {short:?} and {long:?}");
    }
}
