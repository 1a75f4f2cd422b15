//! What went wrong in other stores of Redis structures, each trap as a story: encodings that let
//! keys meet, sizes that drift, expiry that forgets or returns. Each story also holds after the
//! store was flushed, merged and opened again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::{Db, Options, Reply};

const START: u64 = 1_700_000_000_000;

/// A store in memory with a clock that stands still.
struct Shop {
    fs: MemFs,
    clock: Arc<ManualClock>,
    db: Db,
}

impl Shop {
    fn new() -> Self {
        let (fs, clock) = (MemFs::new(), Arc::new(ManualClock::at(START)));
        let db = open(&fs, &clock);
        Self { fs, clock, db }
    }

    /// Runs a command given as words; its reply as text: arrays in brackets, nil as `nil`.
    fn run(&self, line: &str) -> String {
        self.words(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    fn words(&self, words: &[&[u8]]) -> String {
        text(&self.db.command(words).unwrap())
    }

    fn expect(&self, line: &str, reply: &str) {
        assert_eq!(self.run(line), reply, "{line}");
    }

    /// Everything to tables, merged, and opened again.
    fn reopen(&mut self) {
        self.db.compact().unwrap();
        self.db.close().unwrap();
        self.db = open(&self.fs, &self.clock);
    }
}

/// Every story ends with a store that fits together.
impl Drop for Shop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.db.check().unwrap(), [""; 0]);
        }
    }
}

fn open(fs: &MemFs, clock: &Arc<ManualClock>) -> Db {
    let (fs, clock) = (Arc::new(fs.clone()), Arc::clone(clock));
    Db::open_on(fs, Path::new("/db"), Options::default(), clock).unwrap()
}

fn text(reply: &Reply) -> String {
    let list = |items: &[Reply]| items.iter().map(text).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Nil | Reply::NilArray => "nil".into(),
        Reply::Status(status) => (*status).into(),
        Reply::Error(error) => error.clone(),
        Reply::Int(number) => number.to_string(),
        Reply::Bulk(bytes) => bytes.escape_ascii().to_string(),
        Reply::Double(number) => number.to_string(),
        Reply::Array(items) | Reply::Push(items) => format!("[{}]", list(items)),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let flat: Vec<_> = pairs.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
            format!("[{}]", list(&flat))
        }
        Reply::Set(items) => {
            let mut items: Vec<_> = items.iter().map(text).collect();
            items.sort();
            format!("[{}]", items.join(" "))
        }
        // No command of these stories has such a reply.
        other => panic!("{other:?}"),
    }
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

// Encoding.

#[test]
fn fields_may_hold_any_separator() {
    let mut shop = Shop::new();
    for field in [&b"a,b"[..], b"a:b", b"a\0b", b"a\0\x01b", b"a\0\xffb", b"", b"\0", b"a|b;c"] {
        assert_eq!(shop.words(&[b"HSET", b"h", field, b"v"]), "1");
    }
    for _ in 0..2 {
        shop.expect("HLEN h", "8");
        assert_eq!(shop.words(&[b"HGET", b"h", b"a\0\x01b"]), "v");
        assert_eq!(shop.words(&[b"HGET", b"h", b"a"]), "nil");
        shop.reopen();
    }
}

#[test]
fn key_and_member_have_a_boundary_that_no_byte_can_forge() {
    let mut shop = Shop::new();
    let pairs: [(&[u8], &[u8]); 8] = [
        (b"a", b"b:c"),
        (b"a:b", b"c"),
        (b"a\0", b"x"),
        (b"a", b"\0x"),
        (b"a\0\x01", b"x"),
        (b"a\0\xff", b"x"),
        (b"a", b"\0\x01x"),
        (b"", b"a"),
    ];
    for (key, member) in pairs {
        assert_eq!(shop.words(&[b"SADD", key, member]), "1");
    }
    for _ in 0..2 {
        for (key, size) in [(&b"a"[..], "3"), (b"a:b", "1"), (b"a\0", "1"), (b"a\0\x01", "1")] {
            assert_eq!(shop.words(&[b"SCARD", key]), size, "{}", key.escape_ascii());
        }
        assert_eq!(shop.words(&[b"SISMEMBER", b"a:b", b"b:c"]), "0");
        assert_eq!(shop.words(&[b"SMEMBERS", b"a\0\xff"]), "[x]");
        shop.reopen();
    }
}

#[test]
fn no_key_and_no_field_can_touch_what_the_store_keeps_for_itself() {
    let mut shop = Shop::new();
    shop.expect("HSET x f v", "1");
    for key in ["h_x", "x_f", "__len__", "meta", "db", "next", "expire_x", "_lsmkv"] {
        shop.expect(&format!("SET {key} 1"), "OK");
    }
    shop.expect("HSET x __len__ 99 size 98 version 97", "3");
    for _ in 0..2 {
        shop.expect("HLEN x", "4");
        shop.expect("HGET x f", "v");
        shop.expect("GET h_x", "1");
        shop.expect("DBSIZE", "9");
        shop.reopen();
    }
}

#[test]
fn scores_are_ordered_as_numbers() {
    let mut shop = Shop::new();
    shop.expect("ZADD z 100 c 10.5 b -1 y -10.5 x 9 a 1e300 e -1e300 w 123456789 d", "8");
    shop.expect("ZADD tiny 5e-324 above 0 zero -5e-324 below", "3");
    for _ in 0..2 {
        shop.expect("ZRANGE z 0 -1", "[w x y a b c d e]");
        shop.expect("ZRANGE tiny 0 -1", "[below zero above]");
        shop.expect("ZRANGEBYSCORE z 10 100", "[b c]");
        shop.expect("ZRANGEBYSCORE z -inf -1", "[w x y]");
        shop.reopen();
    }
}

#[test]
fn members_of_equal_score_do_not_overwrite_each_other() {
    let mut shop = Shop::new();
    shop.expect("ZADD z 1 b 1 a 1 c", "3");
    for _ in 0..2 {
        shop.expect("ZCARD z", "3");
        shop.expect("ZRANGEBYSCORE z 1 1", "[a b c]");
        shop.reopen();
    }
    shop.expect("ZREM z b", "1");
    shop.expect("ZRANGEBYSCORE z 1 1", "[a c]");
}

#[test]
fn zero_and_minus_zero_are_one_score() {
    let mut shop = Shop::new();
    shop.expect("ZADD z -0 a 0 b", "2");
    for _ in 0..2 {
        shop.expect("ZRANGEBYSCORE z 0 0", "[a b]");
        shop.expect("ZRANGEBYSCORE z -0 -0", "[a b]");
        shop.expect("ZSCORE z a", "-0");
        shop.reopen();
    }
    shop.expect("ZADD z 0 a", "0");
    shop.expect("ZRANGEBYSCORE z 0 0", "[a b]");
    shop.expect("ZREM z a b", "2");
    shop.expect("EXISTS z", "0");
}

#[test]
fn a_list_is_in_order_beyond_256_elements_at_both_ends() {
    let mut shop = Shop::new();
    for i in 1..=600 {
        shop.run(&format!("RPUSH l r{i}"));
        shop.run(&format!("LPUSH l l{i}"));
    }
    for _ in 0..2 {
        for (index, element) in
            [(0, "l600"), (599, "l1"), (600, "r1"), (1199, "r600"), (300, "l300")]
        {
            shop.expect(&format!("LINDEX l {index}"), element);
        }
        let all = shop.run("LRANGE l 0 -1");
        let left = (1..=600).rev().map(|i| format!("l{i}"));
        let expected: Vec<_> = left.chain((1..=600).map(|i| format!("r{i}"))).collect();
        assert_eq!(all, format!("[{}]", expected.join(" ")));
        shop.reopen();
    }
}

// Semantics.

#[test]
fn hset_replaces_the_value_of_a_field_and_counts_only_new_ones() {
    let mut shop = Shop::new();
    shop.expect("HSET h f 1", "1");
    shop.expect("HSET h f 2 g 3", "1");
    for _ in 0..2 {
        shop.expect("HGET h f", "2");
        shop.expect("HLEN h", "2");
        shop.reopen();
    }
}

#[test]
fn collections_without_members_do_not_exist() {
    let mut shop = Shop::new();
    for (fill, empty, size) in [
        ("HSET k a 1 b 2", "HDEL k a b c", "HLEN k"),
        ("SADD k a b", "SREM k a b c", "SCARD k"),
        ("ZADD k 1 a 2 b", "ZREM k a b c", "ZCARD k"),
        ("RPUSH k a b", "LPOP k 5", "LLEN k"),
        ("RPUSH k a b", "LTRIM k 5 9", "LLEN k"),
        ("SADD k a b", "SPOP k 9", "SCARD k"),
        ("ZADD k 1 a 2 b", "ZREMRANGEBYRANK k 0 -1", "ZCARD k"),
    ] {
        shop.run(fill);
        shop.run(empty);
        for _ in 0..2 {
            shop.expect("EXISTS k", "0");
            shop.expect("TYPE k", "none");
            shop.expect(size, "0");
            shop.expect("DBSIZE", "0");
            shop.reopen();
        }
    }
}

#[test]
fn removing_what_is_not_there_changes_no_count() {
    let mut shop = Shop::new();
    shop.expect("HSET h a 1 b 2", "2");
    shop.expect("HDEL h c c a", "1");
    shop.expect("SADD s a b", "2");
    shop.expect("SREM s c a a", "1");
    for _ in 0..2 {
        shop.expect("HLEN h", "1");
        shop.expect("SCARD s", "1");
        shop.reopen();
    }
}

#[test]
fn both_ends_of_a_list_meet_without_a_hole() {
    let mut shop = Shop::new();
    shop.expect("LPUSH l b a", "2");
    shop.expect("RPUSH l c", "3");
    for _ in 0..2 {
        shop.expect("LRANGE l 0 -1", "[a b c]");
        shop.reopen();
    }
    shop.expect("LPOP l", "a");
    shop.expect("RPOP l", "c");
    shop.expect("RPOP l", "b");
    shop.expect("LPUSH l x", "1");
    shop.expect("RPOP l", "x");
    shop.expect("LPOP l", "nil");
}

#[test]
fn duplicates_in_one_call_count_once_and_leave_one_row() {
    let mut shop = Shop::new();
    shop.expect("SADD s a a b a", "2");
    shop.expect("HSET h f 1 f 2", "1");
    shop.expect("ZADD z 1 m 2 m 3 m", "1");
    shop.expect("SREM s b b", "1");
    for _ in 0..2 {
        shop.expect("SCARD s", "1");
        shop.expect("HLEN h", "1");
        shop.expect("HGET h f", "2");
        shop.expect("ZCARD z", "1");
        shop.expect("ZRANGE z 0 -1 WITHSCORES", "[m 3]");
        shop.expect("ZCOUNT z -inf +inf", "1");
        shop.reopen();
    }
    shop.expect("DEL s s s", "1");
    shop.expect("HDEL h f f", "1");
    shop.expect("ZREM z m m", "1");
    shop.expect("EXISTS s h z", "0");
}

#[test]
fn no_command_replaces_a_key_of_another_type_unasked() {
    let mut shop = Shop::new();
    shop.run("SET s 1");
    shop.run("HSET h f 1");
    shop.run("RPUSH l a");
    for line in [
        "HSET s f v",
        "RPUSH s a",
        "SADD s a",
        "ZADD s 1 a",
        "INCR h",
        "APPEND l x",
        "GET h",
        "LPUSH h a",
        "SADD l a",
        "ZADD h 1 a",
        "SETRANGE l 0 x",
        "GETSET h x",
        "SETBIT h 0 1",
    ] {
        shop.expect(line, WRONG_TYPE);
    }
    for _ in 0..2 {
        shop.expect("GET s", "1");
        shop.expect("HGET h f", "1");
        shop.expect("LRANGE l 0 -1", "[a]");
        shop.reopen();
    }
}

#[test]
fn incr_takes_only_the_one_form_of_an_integer() {
    let shop = Shop::new();
    for bad in [&b" 1"[..], b"1 ", b"01", b"+1", b"1.0", b"", b"-0", b"1\0", b"9223372036854775808"]
    {
        shop.words(&[b"SET", b"n", bad]);
        shop.expect("INCR n", NOT_AN_INTEGER);
        assert_eq!(shop.words(&[b"GET", b"n"]), bad.escape_ascii().to_string());
    }
}

#[test]
fn an_increment_that_overflows_changes_nothing() {
    let shop = Shop::new();
    let overflow = "ERR increment or decrement would overflow";
    shop.run("SET n 9223372036854775807");
    shop.expect("INCR n", overflow);
    shop.expect("GET n", "9223372036854775807");
    shop.run("SET n -9223372036854775808");
    shop.expect("DECR n", overflow);
    shop.run("HSET h f 9223372036854775807");
    shop.expect("HINCRBY h f 1", overflow);
    shop.expect("HGET h f", "9223372036854775807");
}

#[test]
fn a_scan_ends_and_finds_all_that_stayed_while_keys_came_and_went() {
    let shop = Shop::new();
    for i in 0..300 {
        shop.run(&format!("SET stay{i} 1"));
        shop.run(&format!("SET go{i} 1"));
    }
    let (mut cursor, mut found, mut calls) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        let reply = shop.db.command(&[b"SCAN", cursor.as_bytes(), b"COUNT", b"10"]).unwrap();
        let Reply::Array(parts) = reply else { panic!("SCAN said {reply:?}") };
        let Reply::Array(keys) = &parts[1] else { panic!("SCAN said {parts:?}") };
        found.extend(keys.iter().map(text));
        cursor = text(&parts[0]);
        calls += 1;
        shop.run(&format!("DEL go{} go{}", calls * 3, calls * 5));
        shop.run(&format!("SET new{calls} 1"));
        assert!(calls < 1000, "the scan does not end");
        if cursor == "0" {
            break;
        }
    }
    assert!((0..300).all(|i| found.contains(&format!("stay{i}"))), "a key was left out");
}

// Time to live.

#[test]
fn an_expired_key_is_gone_before_its_type_is_checked() {
    let mut shop = Shop::new();
    for (fill, command, reply) in [
        ("SET k v", "RPUSH k a", "1"),
        ("RPUSH k a", "INCR k", "1"),
        ("SADD k a", "HSET k f v", "1"),
        ("ZADD k 1 a", "SADD k m", "1"),
        ("HSET k f v", "ZADD k 1 m", "1"),
        ("HSET k f v", "GET k", "nil"),
    ] {
        shop.run("DEL k");
        shop.run(fill);
        shop.expect("PEXPIRE k 100", "1");
        shop.clock.advance(100);
        shop.expect(command, reply);
        shop.expect("TTL k", if reply == "1" { "-1" } else { "-2" });
        shop.reopen();
    }
}

#[test]
fn incr_of_an_expired_number_begins_at_zero_and_stays() {
    let mut shop = Shop::new();
    shop.run("SET n 41 PX 50");
    shop.clock.advance(50);
    shop.expect("INCR n", "1");
    shop.expect("PTTL n", "-1");
    shop.clock.advance(1_000_000);
    shop.reopen();
    shop.expect("GET n", "1");
}

#[test]
fn what_expired_stays_gone_after_flush_merge_and_reopening() {
    let mut shop = Shop::new();
    shop.run("SET k old");
    shop.db.flush().unwrap();
    shop.run("SET k new PX 100");
    shop.run("SADD s a b");
    shop.db.flush().unwrap();
    shop.run("PEXPIRE s 100");
    shop.clock.advance(100);
    for _ in 0..3 {
        shop.expect("GET k", "nil");
        shop.expect("SMEMBERS s", "[]");
        shop.expect("DBSIZE", "0");
        shop.expect("KEYS *", "[]");
        shop.reopen();
    }
}

#[test]
fn members_of_an_expired_collection_do_not_return_with_its_name() {
    let mut shop = Shop::new();
    shop.run("HSET h a 1 b 2");
    shop.run("ZADD z 1 a 2 b");
    shop.run("PEXPIRE h 10");
    shop.run("PEXPIRE z 10");
    shop.clock.advance(10);
    shop.expect("HSET h c 3", "1");
    shop.expect("ZADD z 3 c", "1");
    for _ in 0..2 {
        shop.expect("HGETALL h", "[c 3]");
        shop.expect("ZRANGE z 0 -1", "[c]");
        shop.expect("ZCARD z", "1");
        shop.expect("TTL h", "-1");
        shop.reopen();
    }
}

#[test]
fn a_time_in_the_past_deletes_and_zero_does_not_mean_never() {
    for when in [
        "EXPIREAT k 0",
        "EXPIREAT k -1",
        "PEXPIREAT k 0",
        "EXPIRE k 0",
        "PEXPIRE k -5",
        "EXPIREAT k 1",
    ] {
        let mut shop = Shop::new();
        shop.run("SET k v");
        shop.expect(when, "1");
        for _ in 0..2 {
            shop.expect("EXISTS k", "0");
            shop.expect("TTL k", "-2");
            shop.expect("DBSIZE", "0");
            shop.reopen();
        }
    }
}

#[test]
fn ttl_is_rounded_to_the_nearest_second() {
    let shop = Shop::new();
    shop.run("SET k v");
    for (ms, seconds) in [(1499, "1"), (1500, "2"), (499, "0"), (500, "1"), (1000, "1")] {
        shop.run(&format!("PEXPIRE k {ms}"));
        shop.expect("TTL k", seconds);
        shop.expect("PTTL k", &ms.to_string());
    }
}

#[test]
fn set_forgets_the_time_to_live_unless_told_to_keep_it() {
    let mut shop = Shop::new();
    shop.run("SET k v EX 100");
    shop.expect("SET k w", "OK");
    shop.expect("TTL k", "-1");
    shop.run("SET k v EX 100");
    shop.expect("SET k w KEEPTTL", "OK");
    shop.expect("TTL k", "100");
    shop.reopen();
    shop.expect("TTL k", "100");
    shop.expect("GETSET k x", "w");
    shop.expect("TTL k", "-1");
}

#[test]
fn changes_of_a_value_keep_its_time_to_live() {
    let shop = Shop::new();
    shop.run("SET n 1 EX 100");
    for line in ["INCR n", "APPEND n 0", "SETRANGE n 0 7", "INCRBYFLOAT n 0.5"] {
        shop.run(line);
        shop.expect("TTL n", "100");
    }
    shop.run("RPUSH l a");
    shop.run("EXPIRE l 100");
    for line in ["RPUSH l b", "LSET l 0 x", "LTRIM l 0 0"] {
        shop.run(line);
        shop.expect("TTL l", "100");
    }
}

#[test]
fn a_key_made_again_inherits_no_time_to_live() {
    let mut shop = Shop::new();
    for (fill, again) in
        [("SET k v", "SET k w"), ("HSET k f v", "HSET k g w"), ("RPUSH k a", "RPUSH k b")]
    {
        shop.run(fill);
        shop.run("EXPIRE k 100");
        shop.run("DEL k");
        shop.run(again);
        shop.expect("TTL k", "-1");
        shop.clock.advance(200_000);
        shop.reopen();
        shop.expect("EXISTS k", "1");
        shop.run("DEL k");
    }
    shop.run("RPUSH l a");
    shop.run("EXPIRE l 100");
    shop.run("LPOP l");
    shop.run("RPUSH l b");
    shop.expect("TTL l", "-1");
}

#[test]
fn persist_and_expire_cannot_bring_an_expired_key_back() {
    let mut shop = Shop::new();
    shop.run("SADD s a");
    shop.run("PEXPIRE s 10");
    shop.clock.advance(10);
    shop.expect("PERSIST s", "0");
    shop.expect("EXPIRE s 100", "0");
    shop.reopen();
    shop.expect("EXISTS s", "0");
}

#[test]
fn what_expired_stays_expired_when_the_clock_steps_back_after_a_merge() {
    let mut shop = Shop::new();
    shop.run("SADD s a b");
    shop.run("PEXPIRE s 1000");
    shop.clock.advance(2000);
    shop.db.compact().unwrap();
    shop.clock.set(START);
    let (exists, size) = (shop.run("EXISTS s"), shop.run("SCARD s"));
    assert!(exists == "0" && size == "0" || exists == "1" && size == "2", "{exists} {size}");
    shop.reopen();
    let (exists, members) = (shop.run("EXISTS s"), shop.run("SMEMBERS s"));
    assert!(exists == "0" && members == "[]" || members == "[a b]", "{exists} {members}");
}

#[test]
fn members_of_a_deleted_collection_do_not_return_after_the_clock_stepped_back() {
    let mut shop = Shop::new();
    shop.run("HSET h old 1");
    shop.run("DEL h");
    shop.clock.set(START - 1_000_000);
    shop.run("HSET h new 1");
    for _ in 0..2 {
        shop.expect("HGETALL h", "[new 1]");
        shop.expect("HLEN h", "1");
        shop.reopen();
    }
}
