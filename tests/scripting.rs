//! Scripts: what they return, what they may do, what happens when they fail, and how they run beside
//! each other.
#![cfg(feature = "scripting")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lsmkv::{Db, ErrorKind, Options, Reply, RestorePolicy, Script};

fn open() -> Db {
    with(|_| {})
}

fn with(set: impl FnOnce(&mut Options)) -> Db {
    let mut options = Options::default();
    set(&mut options);
    Db::open(":memory:", options).unwrap()
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec().into())
}

/// Runs EVAL with these keys and no arguments.
fn eval(db: &Db, script: &str, keys: &[&str]) -> Reply {
    run(db, "EVAL", script, keys)
}

fn run(db: &Db, command: &str, script: &str, keys: &[&str]) -> Reply {
    let count = keys.len().to_string();
    let mut argv = vec![command.as_bytes(), script.as_bytes(), count.as_bytes()];
    argv.extend(keys.iter().map(|key| key.as_bytes()));
    match db.command(&argv) {
        Ok(reply) => reply,
        Err(error) => Reply::Error(error.message().to_owned()),
    }
}

fn error_of(reply: &Reply) -> &str {
    match reply {
        Reply::Error(text) => text,
        other => panic!("{other:?} is no error"),
    }
}

const ADD_BOTH: &str = "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])";

#[test]
fn a_script_is_one_commit() {
    let db = open();
    let before = db.snapshot().unwrap();
    let commits = |db: &Db| {
        let stats = db.command(&[b"DBSIZE"]).unwrap();
        assert_eq!(stats, Reply::Int(2));
    };
    assert_eq!(eval(&db, ADD_BOTH, &["a", "b"]), Reply::Int(1));
    commits(&db);
    assert_eq!(before.get(b"a").unwrap(), None);
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_script_that_fails_leaves_nothing() {
    let db = open();
    let script = "redis.call('SET', KEYS[1], 'x') error('half way')";
    let reply = eval(&db, script, &["a"]);
    assert!(error_of(&reply).starts_with("ERR user_script:1: half way script: "), "{reply:?}");
    assert_eq!(db.get(b"a").unwrap(), None);
    let script = "redis.call('SET', KEYS[1], 'x') redis.call('LPUSH', KEYS[1], 'y')";
    assert!(error_of(&eval(&db, script, &["a"])).starts_with("WRONGTYPE "));
    assert_eq!(db.get(b"a").unwrap(), None);
}

#[test]
fn with_the_option_what_was_written_before_the_error_stays_as_in_redis() {
    let db = with(|options| options.script_keeps_writes = true);
    let script = "redis.call('SET', KEYS[1], 'x') error('half way')";
    assert!(error_of(&eval(&db, script, &["a"])).contains("half way"));
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"x"[..]));
}

#[test]
fn an_error_that_a_script_returns_does_not_undo_its_writes() {
    let db = open();
    let script = "redis.call('SET', KEYS[1], 'x') return redis.error_reply('MINE done')";
    assert_eq!(eval(&db, script, &["a"]), Reply::Error("MINE done".into()));
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"x"[..]));
}

#[test]
fn an_error_that_is_caught_undoes_only_its_command() {
    let db = open();
    let script = "redis.call('SET', KEYS[1], 'x') \
                  local e = redis.pcall('LPUSH', KEYS[1], 'y') \
                  redis.call('APPEND', KEYS[1], 'z') return e.err";
    assert!(
        matches!(eval(&db, script, &["a"]), Reply::Bulk(text) if text.starts_with(b"WRONGTYPE"))
    );
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"xz"[..]));
}

#[test]
fn scripts_are_known_by_their_digest_until_they_are_flushed() {
    let db = open();
    let sha1 = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let missing = eval_sha(&db, sha1);
    assert_eq!(missing, Reply::Error("NOSCRIPT No matching script. Please use EVAL.".into()));
    let load = db.command(&[b"SCRIPT", b"LOAD", b"return 1"]).unwrap();
    assert_eq!(load, bulk(sha1));
    assert_eq!(eval_sha(&db, sha1), Reply::Int(1));
    assert_eq!(eval_sha(&db, &sha1.to_uppercase()), Reply::Int(1));
    let exists = |db: &Db| db.command(&[b"SCRIPT", b"EXISTS", sha1.as_bytes(), b"x"]).unwrap();
    assert_eq!(exists(&db), Reply::Array(vec![Reply::Int(1), Reply::Int(0)]));
    assert_eq!(db.command(&[b"SCRIPT", b"FLUSH"]).unwrap(), Reply::OK);
    assert_eq!(exists(&db), Reply::Array(vec![Reply::Int(0), Reply::Int(0)]));
    assert!(matches!(db.command(&[b"SCRIPT", b"HELP"]).unwrap(), Reply::Array(_)));
}

fn eval_sha(db: &Db, sha1: &str) -> Reply {
    run(db, "EVALSHA", sha1, &[])
}

#[test]
fn read_only_scripts_write_nothing_and_run_on_snapshots() {
    let db = open();
    db.set(b"a", b"1").unwrap();
    let then = db.snapshot().unwrap();
    db.set(b"a", b"2").unwrap();
    let get = "return redis.call('GET', KEYS[1])";
    assert_eq!(run(&then, "EVAL_RO", get, &["a"]), bulk("1"));
    assert_eq!(run(&db, "EVAL_RO", get, &["a"]), bulk("2"));
    let refused = run(&db, "EVAL_RO", "return redis.call('SET', KEYS[1], 'x')", &["a"]);
    assert!(error_of(&refused).contains("Write commands are not allowed"), "{refused:?}");
    let argv: [&[u8]; 3] = [b"EVAL", get.as_bytes(), b"0"];
    assert_eq!(then.command(&argv).unwrap_err().kind(), ErrorKind::ReadOnly);
    let keys = run(&then, "EVAL_RO", "return redis.call('KEYS', '*')", &[]);
    assert_eq!(keys, Reply::Array(vec![bulk("a")]));
}

#[test]
fn scripts_run_in_transactions_sessions_batches_and_pipelines() {
    let db = open();
    let txn = db.begin().unwrap();
    assert_eq!(eval(&txn, ADD_BOTH, &["a", "b"]), Reply::Int(1));
    assert!(
        error_of(&eval(&txn, "redis.call('SET', 'a', 'x') error('no')", &["a"])).contains("no")
    );
    assert_eq!(db.get(b"a").unwrap(), None);
    txn.commit().unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));

    let txn = db.begin().unwrap();
    assert_eq!(eval(&txn, ADD_BOTH, &["a", "b"]), Reply::Int(2));
    db.incr(b"b").unwrap();
    assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Conflict);

    let mut session = db.session();
    let argv: Vec<&[u8]> = vec![b"EVAL", ADD_BOTH.as_bytes(), b"2", b"a", b"b"];
    session.command(&[b"MULTI"]).unwrap();
    assert_eq!(session.command(&argv).unwrap(), Reply::Status("QUEUED"));
    session.command(&[b"EVAL", b"error('x')", b"0"]).unwrap();
    let Reply::Array(replies) = session.command(&[b"EXEC"]).unwrap() else { panic!() };
    assert_eq!(replies[0], Reply::Int(3));
    assert!(error_of(&replies[1]).contains("user_script:1: x"));

    let mut batch = db.batch();
    batch.command(&argv).unwrap();
    batch.command(&[b"SET", b"c", b"v"]).unwrap();
    batch.commit().unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"3"[..]));
    let mut batch = db.batch();
    batch.command(&[b"SET", b"c", b"w"]).unwrap();
    batch.command(&[b"EVAL", b"error('x')", b"0"]).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(db.get(b"c").unwrap().as_deref(), Some(&b"v"[..]));

    let replies = db.pipeline(&[argv.clone(), vec![b"GET", b"a"]]).unwrap();
    assert_eq!(replies, [Reply::Int(5), bulk("4")]);
}

#[test]
fn scripts_that_look_at_all_keys_run_alone_and_reply_the_same() {
    let db = open();
    db.mset(&[(&b"a"[..], &b"1"[..]), (b"b", b"2")]).unwrap();
    let script = "redis.call('SET', 'c', '3') \
                  local n = redis.call('DBSIZE') redis.call('SET', 'count', n) \
                  return {n, #redis.call('KEYS', '*'), #redis.call('SCAN', 0)[2]}";
    let expected = Reply::Array(vec![Reply::Int(3), Reply::Int(4), Reply::Int(4)]);
    assert_eq!(eval(&db, script, &[]), expected);
    assert_eq!(eval(&db, "redis.call('FLUSHALL') return redis.call('DBSIZE')", &[]), Reply::Int(0));
    assert_eq!(eval(&db, "return redis.call('RANDOMKEY')", &[]), Reply::Nil);
    // Once a script must start again, nothing that it catches keeps it going.
    let stubborn = "while not pcall(redis.call, 'DBSIZE') do end return 'alone'";
    assert_eq!(eval(&db, stubborn, &[]), bulk("alone"));
}

#[test]
fn a_second_run_sees_the_same_time_and_the_same_random_numbers() {
    let db = open();
    // The first run leaves the numbers in a coroutine's error; only the second run returns.
    let script = "local t, r = redis.call('TIME'), math.random() redis.call('DBSIZE') \
                  local u = redis.call('TIME') return {t[1] == u[1] and t[2] == u[2], r < 1}";
    assert_eq!(eval(&db, script, &[]), Reply::Array(vec![Reply::Int(1), Reply::Int(1)]));
}

#[test]
fn scripts_beside_other_writers_lose_no_update_whether_or_not_they_declare_their_keys() {
    let db = open();
    let declared = "local v = redis.call('GET', KEYS[1]) or 0 redis.call('SET', KEYS[1], v + 1)";
    let undeclared = "local v = redis.call('GET', 'n') or 0 redis.call('SET', 'n', v + 1)";
    let alone = "redis.call('DBSIZE') local v = redis.call('GET', 'n') or 0 \
                 redis.call('SET', 'n', v + 1)";
    const EACH: i64 = 300;
    std::thread::scope(|scope| {
        scope.spawn(|| (0..EACH).for_each(|_| drop(eval(&db, declared, &["n"]))));
        scope.spawn(|| (0..EACH).for_each(|_| drop(eval(&db, undeclared, &[]))));
        scope.spawn(|| (0..EACH).for_each(|_| drop(eval(&db, alone, &["other"]))));
        scope.spawn(|| (0..EACH).for_each(|_| assert!(db.incr(b"n").unwrap() > 0)));
    });
    assert_eq!(db.get(b"n").unwrap().as_deref(), Some((4 * EACH).to_string().as_bytes()));
}

/// Money moves between accounts that no script declares; every sum that another script sees is the
/// same.
#[test]
fn scripts_see_each_other_whole() {
    let db = open();
    for account in 0..8 {
        db.set(format!("acc{account}").as_bytes(), b"100").unwrap();
    }
    let transfer = "local from, to = 'acc' .. ARGV[1], 'acc' .. ARGV[2] \
                    redis.call('DECRBY', from, 7) redis.call('INCRBY', to, 7)";
    let sum = "local s = 0 for i = 0, 7 do s = s + redis.call('GET', 'acc' .. i) end return s";
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, over) = (&db, &over);
        for thread in 0..2u32 {
            scope.spawn(move || {
                for n in 0..200u32 {
                    let (from, to) = ((n * 3 + thread) % 8, (n * 5 + 1) % 8);
                    let (from, to) = (from.to_string(), to.to_string());
                    let argv: [&[u8]; 5] =
                        [b"EVAL", transfer.as_bytes(), b"0", from.as_bytes(), to.as_bytes()];
                    assert_eq!(db.command(&argv).unwrap(), Reply::Nil);
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(eval(db, sum, &[]), Reply::Int(800));
                assert_eq!(run(db, "EVAL_RO", sum, &[]), Reply::Int(800));
            }
        });
    });
    assert_eq!(db.check().unwrap(), [""; 0]);
}

const ENDLESS: [&str; 9] = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "xpcall(function() error('x') end, function() while true do end end)",
    "coroutine.wrap(function() while true do end end)()",
    "while true do pcall(redis.call, 'NOSUCH') end",
    "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "return setmetatable({}, {__index = function() while true do end end}).x",
    "table.sort({3, 2, 1}, function() while true do end end)",
    "string.gsub('aaa', 'a', function() while true do end end)",
];

#[test]
fn endless_loops_end_with_an_error_and_leave_nothing() {
    for keeps_writes in [false, true] {
        let db = with(|options| {
            options.script_max_ms = 60;
            options.script_keeps_writes = keeps_writes;
        });
        for script in ENDLESS {
            let script = format!("redis.call('SET', KEYS[1], 'x') {script}");
            let started = Instant::now();
            let reply = eval(&db, &script, &["a"]);
            assert!(error_of(&reply).contains("script_max_ms"), "{script}: {reply:?}");
            assert!(started.elapsed() < Duration::from_secs(5), "{script}");
            assert_eq!(db.get(b"a").unwrap(), None, "{script}");
            assert_eq!(eval(&db, "return 1", &[]), Reply::Int(1));
        }
        assert_eq!(db.check().unwrap(), [""; 0]);
    }
}

#[test]
fn memory_depth_and_writes_are_bounded() {
    let db = with(|options| {
        options.script_max_memory = 16 << 20;
        options.script_max_bytes = 1 << 20;
        options.script_max_ms = 5000;
    });
    for script in [
        "return string.rep('x', 1e10)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
        "local function f() return 1 + f() end return f()",
        "local function f(...) return f(1, ...) end return f()",
        "return ('x'):rep(5000):find(('a?'):rep(5000))",
        "return table.concat({('x'):rep(1e7), ('x'):rep(1e7)})",
        "return cjson.encode({('x'):rep(1e7), ('y'):rep(1e7)})",
        "local t = {} for i = 1, 300 do t = {t} end return cjson.encode(t)",
        "return loadstring(('('):rep(100000) .. '1' .. (')'):rep(100000))()",
        "for i = 1, 100000 do redis.call('SET', 'k' .. i, ('v'):rep(100)) end",
        "for i = 0, 99 do redis.call('SETRANGE', 'k', i * 20000, ('x'):rep(20000)) end",
        "return string.format('%999999d', 1)",
        "return unpack({}, 1, 1e8)",
    ] {
        let full = format!("redis.call('SET', KEYS[1], 'x') {script}");
        let reply = eval(&db, &full, &["a"]);
        assert!(matches!(reply, Reply::Error(_)), "{script}: {reply:?}");
        assert_eq!(db.dbsize().unwrap(), 0, "{script}");
        assert_eq!(eval(&db, "return 1", &[]), Reply::Int(1), "{script}");
    }
    let reply = eval(&db, "for i = 1, 1e5 do redis.call('SET', i, ('v'):rep(100)) end", &[]);
    assert!(error_of(&reply).contains("script_max_bytes"), "{reply:?}");
    let nested = "local t = {} for i = 1, 100000 do t = {t} end return t";
    assert_eq!(eval(&db, nested, &[]), Reply::Error("ERR reached lua stack limit".into()));
    let itself = "local t = {} t[1] = t return t";
    assert_eq!(eval(&db, itself, &[]), Reply::Error("ERR reached lua stack limit".into()));
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn nothing_that_a_script_does_reaches_the_next_one() {
    let db = open();
    for script in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "string.rep = nil",
        "table.insert(string, 1)",
        "table.insert(redis, 1)",
        "setmetatable(_G, nil)",
        "setmetatable(string, {})",
        "getmetatable('').__index = {}",
        "getmetatable(_G).__index = {}",
        "redis.call = nil",
        "local f, t = pairs(redis) t.call = nil",
        "local f, t = pairs(_G) rawset(t, 'x', 1)",
        "for k, v in pairs(_G) do if type(v) == 'table' then v.x = 1 end end",
        "table.sort(_G)",
        "table.remove(cjson)",
        "KEYS = 1",
        "local g = loadstring('return _G')() g.x = 1",
        "coroutine.wrap(function() x = 1 end)()",
        "load(function() return nil end) x = 2",
        "os.exit()",
        "io.write('x')",
        "debug.getregistry()",
        "getfenv()",
        "setfenv(1, {})",
        "require('os')",
        "dofile('/etc/passwd')",
        "loadfile('/etc/passwd')",
        "package.loadlib('x', 'y')",
        "newproxy()",
        "print('x')",
        "loadstring(string.dump(function() return 1 end))()",
        "load(function() return string.dump(function() end) end)()",
    ] {
        let reply = eval(&db, script, &[]);
        assert!(matches!(reply, Reply::Error(_)), "{script}: {reply:?}");
        let check = "local n = 0 for _ in pairs(_G) do n = n + 1 end \
                     return {n, ('ab'):rep(2), type(redis.call), #string, rawget(_G, 'x') == nil}";
        // The globals of Redis 7.0, without its error handler.
        let sound =
            vec![Reply::Int(34), bulk("abab"), bulk("function"), Reply::Int(0), Reply::Int(1)];
        assert_eq!(eval(&db, check, &[]), Reply::Array(sound), "{script}");
    }
    let bytecode: [&[u8]; 3] = [b"EVAL", b"\x1bLua nonsense", b"0"];
    assert!(error_of(&db.command(&bytecode).unwrap()).contains("Error compiling script"));
}

#[test]
fn a_script_can_be_killed_and_those_who_wait_for_it_are_told_busy() {
    let db = with(|options| {
        options.script_busy_ms = 50;
        options.script_max_ms = 0;
    });
    assert_eq!(
        db.command(&[b"SCRIPT", b"KILL"]).unwrap(),
        Reply::Error("NOTBUSY No scripts in execution right now.".into())
    );
    std::thread::scope(|scope| {
        let endless = "redis.call('SET', KEYS[1], 'x') while true do end";
        let script = scope.spawn(|| eval(&db, endless, &["a"]));
        let busy = loop {
            match db.command(&[b"SET", b"a", b"y"]).unwrap() {
                Reply::Error(text) => break text,
                _ => std::thread::yield_now(),
            }
        };
        assert!(busy.starts_with("BUSY "), "{busy}");
        assert_eq!(db.set(b"a", b"z").unwrap_err().kind(), ErrorKind::Busy);
        // Readers and writers of other keys do not wait.
        assert_eq!(db.command(&[b"GET", b"a"]).unwrap(), db.command(&[b"GET", b"a"]).unwrap());
        let other =
            (0..).map(|n| format!("other{n}")).find(|key| db.set(key.as_bytes(), b"v").is_ok());
        assert!(other.is_some());
        assert_eq!(db.command(&[b"SCRIPT", b"KILL"]).unwrap(), Reply::OK);
        let reply = script.join().unwrap();
        assert!(error_of(&reply).contains("killed by user with SCRIPT KILL"), "{reply:?}");
    });
    assert_ne!(db.get(b"a").unwrap().as_deref(), Some(&b"x"[..]));
    db.set(b"a", b"y").unwrap();
}

/// Values that the library makes for a script count as those that the script makes: keys,
/// arguments and replies.
#[test]
fn replies_keys_and_arguments_count_as_memory_of_the_script() {
    let db = with(|options| options.script_max_memory = 4 << 20);
    // Equal texts are one value in Lua.
    let large = |n: u8| [&[n][..], &vec![b'x'; (1 << 20) - 1]].concat();
    let values: Vec<Vec<u8>> = (0..6).map(large).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    db.rpush(b"list", &values).unwrap();
    let all = "return #redis.call('LRANGE', KEYS[1], 0, -1)";
    let one = "return #redis.call('LINDEX', KEYS[1], 0)";
    let kept = "local t = {} for i = 1, 6 do t[i] = redis.call('LINDEX', KEYS[1], i - 1) end";
    for _ in 0..3 {
        for script in [all, kept] {
            let error = db.eval(script, &[b"list"], &[]).unwrap_err();
            assert!(error.message().contains("not enough memory"), "{error}");
        }
        assert_eq!(db.eval(one, &[b"list"], &[]).unwrap(), Reply::Int(1 << 20));
        assert!(db.eval("return #ARGV", &[], &values).is_err());
        assert_eq!(db.eval("return #ARGV", &[], &values[..2]).unwrap(), Reply::Int(2));
    }
}

#[test]
fn a_script_value_runs_by_its_digest_and_survives_a_flush_of_the_cache() {
    let (db, other) = (open(), open());
    let script = Script::new("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}");
    for n in 1..4 {
        let reply = script.run(&db, &[b"n"], &[b"x"]).unwrap();
        let text = |text: &'static str| Reply::Bulk(text.into());
        assert_eq!(reply, Reply::Array(vec![text("n"), text("x"), Reply::Int(n)]));
        db.script_flush().unwrap();
    }
    let digest = script.load(&db).unwrap();
    assert_eq!(db.script_exists(&[&digest, "0"]).unwrap(), [true, false]);
    assert_eq!(
        db.evalsha(&digest, &[b"n"], &[]).unwrap(),
        Reply::Array(vec![Reply::Bulk("n".into())])
    );
    // A store that has never seen it.
    assert!(script.run(&other, &[b"n"], &[b"x"]).is_ok());
    // It writes.
    let refused = script.run_ro(&db, &[b"n"], &[]).unwrap_err();
    assert!(refused.message().contains("Write commands are not allowed"), "{refused}");
    assert!(Script::new("syntax error").run(&db, &[], &[]).is_err());
    let own = Script::new("return redis.error_reply('NOSCRIPT mine')");
    assert_eq!(own.run(&db, &[], &[]).unwrap(), Reply::Error("NOSCRIPT mine".into()));
}

#[test]
fn functions_are_methods_too() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let code = "#!lua name=one\nredis.register_function{function_name='get', flags={'no-writes'}, \
                callback=function(keys) return redis.call('GET', keys[1]) end}";
    assert_eq!(db.function_load(code, false).unwrap(), "one");
    assert!(db.function_load(code, false).unwrap_err().message().contains("already exists"));
    assert_eq!(db.function_load(code, true).unwrap(), "one");
    db.set(b"k", b"v").unwrap();
    let dump = db.function_dump().unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let value = Reply::Bulk("v".into());
    assert_eq!(db.fcall("GET", &[b"k"], &[]).unwrap(), value);
    assert_eq!(db.fcall_ro("get", &[b"k"], &[]).unwrap(), value);
    let listed = |db: &Db| match db.function_list("O*", true).unwrap() {
        Reply::Array(libraries) => libraries.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(listed(&db), 1);
    assert!(db.function_restore(&dump, RestorePolicy::Append).is_err());
    db.function_restore(&dump, RestorePolicy::Replace).unwrap();
    db.function_flush().unwrap();
    assert_eq!(listed(&db), 0);
    db.function_restore(&dump, RestorePolicy::Append).unwrap();
    db.function_restore(&dump, RestorePolicy::Flush).unwrap();
    db.function_delete("one").unwrap();
    assert!(db.function_delete("one").is_err() && db.function_kill().is_err());
    assert!(matches!(db.function_stats().unwrap(), Reply::Map(_)));
}

#[test]
fn wrong_numbers_of_keys_and_arguments_are_named() {
    let db = open();
    let library = "#!lua name=known\nredis.register_function('known', function() return 1 end)";
    db.command(&[b"FUNCTION", b"LOAD", library.as_bytes()]).unwrap();
    for (argv, text) in [
        (&["EVAL", "return 1", "x"][..], "ERR value is not an integer or out of range"),
        (&["EVAL", "return 1", "1"], "ERR Number of keys can't be greater than number of args"),
        (&["EVAL", "return 1", "-1"], "ERR Number of keys can't be negative"),
        (&["EVAL", "return 1"], "ERR wrong number of arguments for 'eval' command"),
        (&["SCRIPT", "LOAD"], "ERR wrong number of arguments for 'script|load' command"),
        (&["SCRIPT", "NOSUCH"], "ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP."),
        (&["SCRIPT", "FLUSH", "x"], "ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
        (&["FCALL", "known", "x"], "ERR Bad number of keys provided"),
        (&["FCALL", "known", "1"], "ERR Number of keys can't be greater than number of args"),
        (&["FCALL_RO", "known", "-1"], "ERR Number of keys can't be negative"),
        // As in Redis, the name comes before the number.
        (&["FCALL", "nosuch", "x"], "ERR Function not found"),
    ] {
        let words: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(db.command(&words).unwrap(), Reply::Error(text.into()), "{argv:?}");
    }
}

#[test]
fn what_a_script_wrote_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    assert_eq!(eval(&db, ADD_BOTH, &["a", "b"]), Reply::Int(1));
    db.close().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    assert_eq!(db.get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.check().unwrap(), [""; 0]);
}

/// The messages that a session has received, as text.
fn received(session: &mut lsmkv::Session) -> Vec<String> {
    std::iter::from_fn(|| session.take_message().unwrap())
        .map(|reply| format!("{reply:?}"))
        .collect()
}

#[test]
fn what_a_script_publishes_is_sent_after_its_commit_and_only_then() {
    let db = open();
    let mut session = db.session();
    session.command(&[b"SUBSCRIBE", b"news"]).unwrap();
    let failing = "redis.call('PUBLISH', 'news', 'lost') error('half way')";
    assert!(error_of(&eval(&db, failing, &[])).contains("half way"));
    assert_eq!(received(&mut session), [""; 0]);
    let publishing = "return redis.call('PUBLISH', 'news', 'sent')";
    assert_eq!(eval(&db, publishing, &[]), Reply::Int(1));
    let messages = received(&mut session);
    assert!(messages.len() == 1 && messages[0].contains("sent"), "{messages:?}");
}

#[test]
fn a_push_by_a_script_wakes_those_who_wait() {
    let db = open();
    for script in [
        "return redis.call('LPUSH', KEYS[1], 'v')",
        // Not declared, and alone because of KEYS.
        "return redis.call('LPUSH', 'queue', 'v')",
        "redis.call('KEYS', '*') return redis.call('LPUSH', KEYS[1], 'v')",
    ] {
        let waiter = {
            let db = db.clone();
            std::thread::spawn(move || db.command(&[b"BLPOP", b"queue", b"30"]).unwrap())
        };
        // Whether it waits already or finds the element at once, it gets it.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(eval(&db, script, &["queue"]), Reply::Int(1));
        let popped = waiter.join().unwrap();
        assert_eq!(popped, Reply::Array(vec![bulk("queue"), bulk("v")]));
    }
}

#[test]
fn blocking_pops_in_a_script_do_not_wait() {
    let db = open();
    let began = Instant::now();
    let script = "return redis.call('BLPOP', KEYS[1], 0) == false";
    assert_eq!(eval(&db, script, &["none"]), Reply::Int(1));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn key_events_of_a_script_follow_its_commit() {
    let db = open();
    db.set_keyspace_events("KEA").unwrap();
    let mut session = db.session();
    session.command(&[b"PSUBSCRIBE", b"__keyevent@0__:*"]).unwrap();
    let script = "redis.call('SET', KEYS[1], 'x') redis.call('DEL', KEYS[1]) return 1";
    assert_eq!(eval(&db, script, &["a"]), Reply::Int(1));
    let events = received(&mut session);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[0].contains(":set") && events[1].contains(":del"), "{events:?}");
}

#[test]
fn an_expired_key_that_a_script_meets_is_announced_once() {
    let db = open();
    db.set_keyspace_events("Ex").unwrap();
    let mut session = db.session();
    session.command(&[b"PSUBSCRIBE", b"__keyevent@0__:*"]).unwrap();
    for (script, keys) in [
        ("return redis.call('GET', KEYS[1])", &["k"][..]),
        ("redis.call('SET', 'other', 'x') return redis.call('GET', 'k')", &[]),
        ("redis.call('DBSIZE') return redis.call('GET', 'k')", &[]),
    ] {
        db.command(&[b"SET", b"k", b"v", b"PX", b"1"]).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(eval(&db, script, keys), Reply::Nil, "{script}");
        // The cleaner looks for what is left twice a second.
        std::thread::sleep(Duration::from_millis(700));
        let events = received(&mut session);
        assert!(events.len() == 1 && events[0].contains("expired"), "{script}: {events:?}");
    }
}
