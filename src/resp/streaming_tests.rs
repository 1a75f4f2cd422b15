//! A streamed reply equals, byte for byte, the reply that is built first and then written. Two
//! stores run the same random commands, one in each way.

use crate::commands::{ReplySink as _, Session};
use crate::io::splitmix::SplitMix64;
use crate::options::Options;
use crate::txn::Db;

use super::{Protocol, Writer};

const RUNS: u64 = 12;
const COMMANDS: usize = 500;
const KEYS: [&str; 7] = ["list", "hash", "set", "zset", "equal", "text", "none"];
const READS: [&str; 40] = [
    "LRANGE list N N",
    "LRANGE list 0 -1",
    "LRANGE KEY N N",
    "LRANGE list x 1",
    "LRANGE list 1",
    "SMEMBERS set",
    "SMEMBERS KEY",
    "HGETALL hash",
    "HGETALL KEY",
    "HKEYS hash",
    "HKEYS KEY",
    "HVALS hash",
    "HVALS KEY",
    "HMGET hash M M M",
    "HMGET KEY M M",
    "MGET text none list text",
    "GET text",
    "GETRANGE text N N",
    "HGET hash M",
    "ZSCORE zset M",
    "ZRANGE zset N N",
    "ZRANGE zset N N WITHSCORES",
    "ZRANGE zset N N REV",
    "ZRANGE zset N N REV WITHSCORES",
    "ZRANGE zset S S BYSCORE LIMIT C N WITHSCORES",
    "ZRANGE equal - + BYLEX REV LIMIT C N",
    "ZRANGE zset 0 -1 LIMIT 1 2",
    "ZRANGE KEY 0 -1",
    "ZREVRANGE zset N N",
    "ZREVRANGE zset N N WITHSCORES",
    "ZRANGEBYSCORE zset S S",
    "ZRANGEBYSCORE zset -inf +inf WITHSCORES LIMIT C N",
    "ZRANGEBYSCORE zset (S inf WITHSCORES",
    "ZRANGEBYSCORE zset x 1",
    "ZREVRANGEBYSCORE zset S S WITHSCORES",
    "ZREVRANGEBYSCORE KEY +inf -inf",
    "ZRANGEBYLEX equal [M [M",
    "ZRANGEBYLEX zset [M +",
    "ZREVRANGEBYLEX equal + (M",
    "NOSUCH KEY",
];
const WRITES: [&str; 20] = [
    "RPUSH list M M M",
    "LPUSH list M B M",
    "LPOP list",
    "RPOP list C",
    "LTRIM list C N",
    "LSET list N B",
    "HSET hash M M M B",
    "HDEL hash M",
    "SADD set M M M",
    "SREM set M M",
    "ZADD zset S M S M S M",
    "ZADD equal 1 M 1 M",
    "ZREM zset M",
    "ZADD zset -0 M",
    "SET text B",
    "APPEND text M",
    "DEL KEY",
    "RENAME list KEY",
    "INCR text",
    "SELECT 1",
];

fn below(random: &mut SplitMix64, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

fn one_of<'a>(random: &mut SplitMix64, texts: &[&'a str]) -> &'a str {
    texts[below(random, texts.len())]
}

/// A command of this form with its placeholders replaced.
fn command(random: &mut SplitMix64, form: &str) -> Vec<Vec<u8>> {
    let text = |random: &mut SplitMix64, word: &str| match word {
        "KEY" => one_of(random, &KEYS).to_owned(),
        "N" => (random.below(60) as i64 - 30).to_string(),
        "C" => random.below(5).to_string(),
        "S" => (random.below(30) as f64 / 4.0 - 3.0).to_string(),
        "M" => format!("m{}", random.below(60)),
        "B" => format!("big {}", "\r\n".repeat(below(random, 3000))),
        other => other.to_owned(),
    };
    let word = |word: &str| match word.split_at_checked(1) {
        Some((mark @ ("(" | "["), rest)) => mark.to_owned() + &text(random, rest),
        _ => text(random, word),
    };
    form.split(' ').map(word).map(String::into_bytes).collect()
}

/// The commands of one run: reads and writes, alone and between MULTI and EXEC.
fn commands_of_run(seed: u64) -> Vec<Vec<Vec<u8>>> {
    let mut random = SplitMix64::new(seed);
    let mut in_multi = false;
    let mut next = |_| {
        let random = &mut random;
        if random.one_in(10) {
            in_multi = !in_multi;
            return command(random, if in_multi { "MULTI" } else { "EXEC" });
        }
        let forms: &[&str] = if random.one_in(2) { &READS } else { &WRITES };
        let form = one_of(random, forms);
        command(random, form)
    };
    let mut commands: Vec<_> = (0..COMMANDS).map(&mut next).collect();
    // A transaction with an unknown command does not run, so most runs have none.
    commands.retain(|command| command[0] != b"NOSUCH" || seed.is_multiple_of(3));
    commands
}

fn session() -> Session {
    Db::open(":memory:", Options::default()).unwrap().session()
}

#[test]
fn a_streamed_reply_is_the_reply_that_is_built_first() {
    let mut longest = 0;
    for seed in 0..RUNS {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let (mut building, mut streaming) = (session(), session());
            for command in commands_of_run(seed) {
                let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
                // The buffer already holds other bytes.
                let (mut built, mut streamed) = (b"before".to_vec(), b"before".to_vec());
                let reply = building.command(&argv).unwrap();
                Writer::new(&mut built, protocol).reply(&reply);
                let mut writer = Writer::new(&mut streamed, protocol);
                streaming.command_into(&argv, &mut writer).unwrap();
                assert!(!writer.is_full());
                let line = String::from_utf8_lossy(&argv.join(&b' ')).into_owned();
                assert!(built == streamed, "seed {seed}, {protocol:?}: {line}: {reply:?}");
                longest = longest.max(built.len());
            }
        }
    }
    assert!(longest > 10_000, "no reply had more than {longest} bytes");
}
