//! Scripts: a corpus and random ones, run by EVAL here and by redis. Errors that a script raises,
//! their texts and lines, conversions, messages and what is left of a script that failed are compared
//! too. Random ones run in process and by `lsmkv serve`.

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Options};

use super::number;
use super::plan::{Ours, words};
use super::resp::{Client, Resp};
use super::script_values::SHOW;
use super::server::Server;

fn open() -> Db {
    // In redis, what a script wrote before it failed stays.
    let options = Options { script_keeps_writes: true, ..Options::default() };
    Db::open(":memory:", options).unwrap()
}

/// First lines of scripts: every flag, several, and wrong ones.
const HEADS: [&str; 18] = [
    "#!lua\n",
    "#!lua flags=\n",
    "#!lua flags=no-writes\n",
    "#!lua flags=allow-oom\n",
    "#!lua flags=allow-stale\n",
    "#!lua flags=no-cluster\n",
    "#!lua flags=allow-cross-slot-keys\n",
    "#!lua flags=no-writes,allow-oom,allow-stale,no-cluster,allow-cross-slot-keys\n",
    "#!lua flags=no-writes flags=allow-oom\n",
    "#!lua flags='no-writes'\n",
    "#!lua flags=no-writes,\n",
    "#!lua flags=NO-WRITES\n",
    "#!lua flags=nosuch\n",
    "#!lua flags=no-writes allow-oom\n",
    "#!lua name=x\n",
    "#!LUA flags=no-writes\n",
    "#!js\n",
    "#!lua flags=no-writes",
];

fn compare(ours: &Ours, redis: &mut Client, command: &str, script: &str) {
    let argv = [command, script, "2", "k0", "k1", "a", "1"];
    let (here, there) = (ours.call(&words(&argv)), redis.call(&argv).unwrap());
    assert_eq!(here, there, "ours first, then redis, for {command}\n{script}");
}

/// Every key that scripts use, as commands that show all of it in a fixed order.
const CONTENT: [&[&str]; 7] = [
    &["TYPE", "KEY"],
    &["TTL", "KEY"],
    &["GET", "KEY"],
    &["LRANGE", "KEY", "0", "-1"],
    &["SORT", "KEY", "ALPHA"],
    &["HMGET", "KEY", "a", "b", "1"],
    &["ZRANGE", "KEY", "0", "-1", "WITHSCORES"],
];

pub(super) fn compare_content(ours: &Ours, redis: &mut Client, seed: u64) {
    for key in ["k0", "k1", "k2"] {
        for command in CONTENT {
            let argv: Vec<&str> =
                command.iter().map(|word| if *word == "KEY" { key } else { word }).collect();
            let (here, there) = (ours.call(&words(&argv)), redis.call(&argv).unwrap());
            assert_eq!(here, there, "{argv:?} after the scripts of seed {seed}");
        }
    }
}

/// Commands with deterministic replies, right and wrong ones. K is a key, V a value, N a number.
const COMMANDS: [&str; 47] = [
    "'SET', K, V",
    "'SET', K, N",
    "'SET', K, V, 'NX'",
    "'SET', K, V, 'XX', 'GET'",
    "'GET', K",
    "'APPEND', K, V",
    "'INCR', K",
    "'INCRBY', K, N",
    "'INCRBYFLOAT', K, N",
    "'STRLEN', K",
    "'SETRANGE', K, 2, V",
    "'GETRANGE', K, 0, N",
    "'MGET', 'k0', 'k1', 'k2'",
    "'MSET', K, V, 'k2', N",
    "'DEL', K",
    "'DEL', 'k0', 'k1'",
    "'EXISTS', K, 'k2'",
    "'TYPE', K",
    "'EXPIRE', K, 10000",
    "'PERSIST', K",
    "'LPUSH', K, V, N",
    "'RPUSH', K, V",
    "'LPOP', K",
    "'RPOP', K, 2",
    "'LLEN', K",
    "'LRANGE', K, 0, -1",
    "'LINDEX', K, N",
    "'LINSERT', K, 'BEFORE', V, N",
    "'HSET', K, V, N",
    "'HGET', K, V",
    "'HINCRBY', K, V, N",
    "'HLEN', K",
    "'HDEL', K, V",
    "'SADD', K, V, N",
    "'SISMEMBER', K, V",
    "'SCARD', K",
    "'SREM', K, V",
    "'ZADD', K, N, V",
    "'ZSCORE', K, V",
    "'ZRANGE', K, 0, -1, 'WITHSCORES'",
    "'ZINCRBY', K, N, V",
    "'ZPOPMIN', K",
    "'PUBLISH', 'c', V",
    "'PUBLISH', K, N",
    "'SPUBLISH', 'c', V",
    "'NOSUCH', K",
    "'GET'",
];

pub(super) struct Writer {
    pub(super) random: SplitMix64,
}

impl Writer {
    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.random.next_u64() % n as u64).unwrap()
    }

    pub(super) fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.below(from.len())]
    }

    fn arguments(&mut self) -> String {
        let template = COMMANDS[self.below(COMMANDS.len())];
        let words = template.split(", ").map(|word| match word {
            "K" => self.pick(&["KEYS[1]", "KEYS[2]", "'k0'", "'k2'", "'k' .. 1"]).to_owned(),
            "V" => self.pick(&["'a'", "ARGV[1]", "'b'", "ARGV[2]", "'x\\0y'"]).to_owned(),
            "N" => self.pick(&["1", "-2", "1.5", "'7'", "1e3", "10/4", "2^40"]).to_owned(),
            other => other.to_owned(),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn statement(&mut self, depth: usize) -> String {
        let arguments = self.arguments();
        match self.below(if depth > 2 { 5 } else { 15 }) {
            0 => format!("add(redis.call({arguments}))"),
            1 | 2 => format!("add(redis.pcall({arguments}))"),
            3 => format!("add(pcall(redis.call, {arguments}))"),
            4 => format!(
                "local v = redis.pcall({arguments}) add(type(v), type(v) == 'table' and #v)"
            ),
            5 => format!("add(pcall(function() {} end))", self.statement(depth + 1)),
            6 => format!(
                "add(xpcall(function() {} end, function(e) return type(e) == 'table' and e.err or e end))",
                self.statement(depth + 1)
            ),
            7 => format!(
                "local co = coroutine.create(function() {} coroutine.yield(1) end) \
                 local ok, e = coroutine.resume(co) add(ok, type(e) == 'table' and e.err or e)",
                self.statement(depth + 1)
            ),
            8 => format!("if #r % 2 == 0 then {} end", self.statement(depth + 1)),
            9 => format!("for i = 1, 2 do {} end", self.statement(depth + 1)),
            10..=12 => self.round_trip(),
            13 => self
                .pick(&[
                    "add(redis.sha1hex(tostring(#r)))",
                    "add(string.format('%5.1f|%d|%q', #r / 3, #r, 'a\"b'))",
                    "add(1 / 3, 2^53, -0.5, {1, {2, {3}}}, {nil, 2})",
                ])
                .to_owned(),
            _ => self
                .pick(&[
                    "add(redis.error_reply('MINE text'))",
                    "add(redis.status_reply('FINE'))",
                    "add({double = 2.5})",
                    "error('plain')",
                    "error({err = 'CODE table'})",
                    "add(nosuch)",
                    "x = 1",
                    "add(('a'):bad())",
                    "return redis.call('GET', 'k2')",
                    "return redis.call('LPUSH', 'k0', 'v')",
                    // Not `r` itself: a table that holds itself has no end in redis's reply.
                    "return {#r, r[1] == nil, {'x'}}",
                    "add(tostring(nil) .. tostring(true))",
                    "redis.setresp(3) add(redis.pcall('GET', 'missing')) redis.setresp(2)",
                ])
                .to_owned(),
        }
    }

    pub(super) fn script(&mut self) -> String {
        let mut lines = vec![
            "local r = {} local function add(...) for i = 1, select('#', ...) do \
             local v = select(i, ...) r[#r + 1] = v == nil and 'nil' or v end end"
                .to_owned(),
            SHOW.to_owned(),
        ];
        for _ in 0..=self.below(8) {
            // A `return` must be the last statement of its block.
            lines.push(format!("do {} end", self.statement(0)));
        }
        lines.push(self.pick(&["return r", "return #r", "return r[#r]", "return r[1]"]).to_owned());
        lines.join("\n")
    }
}

#[test]
fn every_script_of_the_corpus_replies_as_in_redis() {
    let Some(server) = Server::start("differential::script_corpus") else { return };
    let (ours, mut redis) = (Ours::Store(open()), server.connect());
    let corpus = include_str!("../testdata/scripts.txt");
    let scripts: Vec<&str> = corpus.trim_end().split("\n---\n").collect();
    assert!(scripts.len() > 200);
    scripts.into_iter().for_each(|script| compare(&ours, &mut redis, "EVAL", script));
}

#[test]
fn every_flag_of_a_script_has_the_effect_that_it_has_in_redis() {
    let Some(server) = Server::start("differential::script_flags") else { return };
    let (ours, mut redis) = (Ours::Store(open()), server.connect());
    for head in HEADS {
        for command in ["EVAL", "EVAL_RO"] {
            for body in [
                "return redis.call('GET', KEYS[1])",
                "return redis.call('SET', KEYS[1], ARGV[1])",
                "return redis.pcall('DEL', KEYS[2])",
                "return redis.call('DBSIZE')",
                "return ARGV",
            ] {
                compare(&ours, &mut redis, command, &format!("{head}{body}"));
            }
        }
    }
}

/// Subscribes a connection to what scripts publish.
fn subscribed(mut client: Client) -> Client {
    client.call(&["SUBSCRIBE", "c", "k0", "k1"]).unwrap();
    for _ in ["k0", "k1"] {
        client.read().unwrap();
    }
    client.call(&["SSUBSCRIBE", "c"]).unwrap();
    client
}

/// What a connection has received since the last call.
fn messages(client: &mut Client) -> Vec<Resp> {
    let mut all = vec![client.call(&["PING"]).unwrap()];
    while all.last().unwrap().items().first().and_then(Resp::bytes) != Some(b"pong") {
        all.push(client.read().unwrap());
    }
    all.pop();
    all
}

/// Runs twenty random scripts on both sides, and compares their replies, their messages and what
/// they leave. `heard` tells the messages of our side since the last call.
fn compare_random(
    ours: &Ours,
    heard: &mut dyn FnMut() -> Vec<Resp>,
    [redis, listener]: &mut [Client; 2],
    seed: u64,
) {
    let mut writer = Writer { random: SplitMix64::new(seed) };
    redis.call(&["FLUSHALL"]).unwrap();
    for _ in 0..20 {
        let mut script = writer.script();
        if writer.below(8) == 0 {
            script.insert_str(0, writer.pick(&HEADS));
        }
        let command = writer.pick(&["EVAL", "EVAL", "EVAL", "EVAL_RO"]);
        compare(ours, redis, command, &script);
        let (here, there) = (heard(), messages(listener));
        assert_eq!(here, there, "messages, ours first, seed {seed}, for {command}\n{script}");
    }
    compare_content(ours, redis, seed);
}

#[test]
fn random_scripts_reply_and_leave_what_they_do_in_redis() {
    let Some(server) = Server::start("differential::scripts") else { return };
    let mut redis = [server.connect(), subscribed(server.connect())];
    let (first, count) =
        (number("LSMKV_DIFFERENTIAL_SEED", 1), number("LSMKV_DIFFERENTIAL_SCRIPTS", 5000));
    for seed in first..first + count.div_ceil(20) {
        let db = open();
        let mut session = db.session();
        session.command(&[b"SUBSCRIBE", b"c", b"k0", b"k1"]).unwrap();
        session.command(&[b"SSUBSCRIBE", b"c"]).unwrap();
        let mut heard =
            || std::iter::from_fn(|| session.take_message().unwrap()).map(Resp::from).collect();
        compare_random(&Ours::Store(db.clone()), &mut heard, &mut redis, seed);
        assert_eq!(db.check().unwrap(), [""; 0]);
    }
}

/// A fifth of the scripts, over the wire.
#[cfg(feature = "remote")]
#[test]
fn random_scripts_on_a_server_of_ours_reply_and_leave_what_they_do_in_redis() {
    let Some(served) = super::servers::Server::ours("differential::scripts_served") else { return };
    let Some(server) = Server::start("differential::scripts_served") else { return };
    let connect = || {
        let stream = std::os::unix::net::UnixStream::connect(served.socket()).unwrap();
        Client::new(stream).unwrap()
    };
    let (ours, mut listener) = (Ours::Server(connect().into()), subscribed(connect()));
    let mut redis = [server.connect(), subscribed(server.connect())];
    let (first, count) =
        (number("LSMKV_DIFFERENTIAL_SEED", 1), number("LSMKV_DIFFERENTIAL_SCRIPTS", 5000) / 5);
    for seed in first..first + count.div_ceil(20) {
        ours.call(&words(&["FLUSHALL"]));
        compare_random(&ours, &mut || messages(&mut listener), &mut redis, seed);
    }
}
