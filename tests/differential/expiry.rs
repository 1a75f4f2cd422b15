//! Real expiry: keys with short times to live, a pause, and every command that must not see them.

use std::time::Duration;

use lsmkv::engine::MemFs;

use super::plan::{Ours, Step};
use super::resp::{Client, Command};
use super::sequence::{Difference, compare, content, open, sound};

/// Long enough that no key dies before the pause, even on a busy machine.
const ALIVE: Duration = Duration::from_millis(1500);

const BEFORE: &str = "
    SET s v PX 1000
    SET n 41 PX 1000
    SET stay v
    SET long v EX 1000
    SET past v PXAT 1
    SET got v
    GETEX got PX 1000
    HSET h f 1 g 2
    RPUSH l a b c
    SADD t a b
    ZADD z 1 a 2 b
    PEXPIRE h 1000
    PEXPIRE l 1000
    PEXPIRE t 1000
    PEXPIRE z 1000
    COPY h copied
    SADD u a b c
    RPUSH sorted 1 2
    EXISTS s n h l t z got copied past";

const AFTER: &str = "
    EXISTS s n h l t z got copied past stay long
    DBSIZE
    KEYS *
    SCAN 0
    TYPE h
    TTL s
    PTTL l
    EXPIRETIME z
    OBJECT ENCODING t
    GET s
    STRLEN s
    GETRANGE s 0 -1
    HGETALL h
    HINCRBY h f 1
    TTL h
    LRANGE l 0 -1
    LPUSHX l a
    LMOVE l l2 LEFT RIGHT
    RPUSH s a
    TTL s
    TYPE s
    SADD l m
    ZADD t 1 m
    INCR n
    TTL n
    PERSIST z
    EXPIRE z 100
    EXPIRE z 100 NX
    RENAME z y
    RENAMENX got stay
    MOVE copied 1
    COPY z x
    SUNION z u
    SINTERSTORE x z u
    ZUNIONSTORE x 2 z u
    SORT z
    SET got v XX
    SETNX got w
    APPEND past x
    GETDEL z
    DEL z copied
    TOUCH z copied
    RANDOMKEY";

fn steps(lines: &str, ours: &mut Ours) -> Vec<Vec<Step>> {
    let command = |line: &str| -> Command {
        line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
    };
    lines.trim().lines().map(|line| ours.plan(&command(line))).collect()
}

/// Both sides live through it.
pub(crate) fn story(redis: &mut Client, packing: usize) -> Result<(), Difference> {
    let fs = MemFs::new();
    let mut ours = open(&fs, packing);
    compare("before", steps(BEFORE, &mut ours), redis)?;
    ours.compact();
    std::thread::sleep(ALIVE);
    compare("after", steps(AFTER, &mut ours), redis)?;
    compare("at the end", vec![content(&mut ours)], redis)?;
    sound(&ours)?;
    ours.db().close().unwrap();
    let mut again = open(&fs, packing + 1);
    let state = vec![content(&mut again)];
    let result = compare("after reopening", state, redis).and_then(|()| sound(&again));
    again.db().close().unwrap();
    result
}
