//! Import from real servers and their dump files, and export to real servers.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;

use super::interrupt::names;
use super::redis::Redis;
use super::support::{Scratch, contents, fill, ok, run};

/// Commands that create keys of the five types in every encoding of a version 7 server.
fn every_encoding() -> String {
    let mut text = String::from(
        "SET int 12345\nSET negative -1\nSET embstr short\nSET empty \"\"\n\
         SET binary \"\\x00\\xff\\r\\n\"\n\
         SADD intset16 1 2 -3\nSADD intset32 70000 1\nSADD intset64 9223372036854775807 -5\n\
         SADD set:text a b \"\\xff\"\n\
         HSET hash:small f v number 42 big 9223372036854775807 negative -300 text \"\\x00\"\n\
         RPUSH list:small a 1 -1 127 128 4095 -4096 4096 32767 -32768 8388607 2147483647 \
         9223372036854775807 \"\\x00\"\n\
         ZADD zset:small 1 a 1.5 b -inf c inf d 0.1 e 1e300 f -0 g 3 127\n\
         SELECT 3\nSET elsewhere yes\nHSET elsewhere:hash f v\nPEXPIREAT elsewhere 4102444800001\n\
         SELECT 0\n",
    );
    let _ = writeln!(text, "SET raw {}", "x1y2z3".repeat(20));
    for n in 0..300i64 {
        let long = format!("{n}:{}", "x".repeat(n as usize % 90));
        let _ = writeln!(text, "HSET hash:big {long} value{n}\nSADD set:big {long}");
        let _ = writeln!(text, "ZADD zset:big {} {long}", n as f64 / 7.0);
        let _ =
            writeln!(text, "RPUSH list:big {long} {n}\nHSET hash:ints {n} {}", n * 1000 - 150_000);
    }
    for n in 0..2500 {
        let _ = writeln!(text, "SET key:{n} {n}");
    }
    for n in 0..700usize {
        let _ = writeln!(text, "RPUSH list:long {n} element-{n}-{}", "y".repeat(n % 50));
    }
    for key in ["int", "hash:big", "list:small", "zset:small", "intset16"] {
        let _ = writeln!(text, "PEXPIREAT {key} 4102444800{:03}", key.len());
    }
    // In a later database, so that an import reaches them late.
    let _ = writeln!(text, "SELECT 3\nSET compressed {}", "abc".repeat(5000));
    let _ = writeln!(text, "RPUSH list:plain {} small {}", "p".repeat(20_000), "q".repeat(9000));
    text
}

fn equal(a: &Redis, b: &Redis) {
    let (first, second) = (a.digest(), b.digest());
    assert_eq!(first.1, second.1);
    assert_eq!(first.0, second.0);
}

#[test]
fn a_dump_of_a_real_server_goes_through_a_store_to_another_server_unchanged() {
    let scratch = Scratch::new();
    let test = "tools::import_export::rdb";
    let Some(source) = Redis::start(&scratch, "a", test) else { return };
    let Some(target) = Redis::start(&scratch, "b", test) else { return };
    source.feed(every_encoding().as_bytes(), false);
    for (key, encoding) in [
        ("int", "int"),
        ("embstr", "embstr"),
        ("raw", "raw"),
        ("intset16", "intset"),
        ("set:big", "hashtable"),
        ("hash:small", "listpack"),
        ("hash:big", "hashtable"),
        ("list:small", "quicklist"),
        ("zset:small", "listpack"),
        ("zset:big", "skiplist"),
    ] {
        assert_eq!(source.text(&["OBJECT", "ENCODING", key]), encoding, "{key}");
    }
    source.text(&["XADD", "stream", "*", "f", "v"]);
    source.text(&["XGROUP", "CREATE", "stream", "group", "0"]);
    source.text(&["XREADGROUP", "GROUP", "group", "me", "STREAMS", "stream", ">"]);
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    source.text(&["FUNCTION", "LOAD", library]);
    // Each key in the dump carries its last access time.
    source.text(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    source.text(&["SAVE"]);
    source.text(&["DEL", "stream"]);
    let (store, file) = (scratch.arg("store"), source.dir.join("dump.rdb"));
    let out = ok(&["import", &store, "--rdb", file.to_str().unwrap(), "--quiet"]);
    assert!(out.contains("skipped: 1 streams"), "{out}");
    assert!(out.contains("skipped: 1 functions"), "{out}");
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    ok(&["export", &store, "--to", &target.url(), "--quiet"]);
    equal(&source, &target);
    // A second export replaces keys and does not add to them.
    ok(&["export", &store, "--to", &target.url(), "--quiet"]);
    equal(&source, &target);
}

#[test]
fn a_dump_whose_checksum_is_wrong_is_refused() {
    let scratch = Scratch::new();
    let Some(source) = Redis::start(&scratch, "a", "tools::import_export::checksum") else {
        return;
    };
    source.feed(b"SET a one\nRPUSH l x y z\n", false);
    source.text(&["SAVE"]);
    let file = source.dir.join("dump.rdb");
    let mut bytes = std::fs::read(&file).unwrap();
    // In the value of `a`, which no other check covers.
    let at = bytes.windows(3).position(|three| three == b"one").unwrap();
    bytes[at] = b'O';
    std::fs::write(&file, bytes).unwrap();
    let refused = run(&["import", &scratch.arg("s"), "--rdb", file.to_str().unwrap(), "--quiet"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("checksum"), "{}", refused.err);
}

#[test]
fn an_import_from_a_server_that_failed_goes_on_where_it_was() {
    let scratch = Scratch::new();
    let test = "tools::import_export::import";
    let Some(source) = Redis::start(&scratch, "a", test) else { return };
    let Some(target) = Redis::start(&scratch, "b", test) else { return };
    source.feed(every_encoding().as_bytes(), false);
    let (store, url) = (scratch.arg("store"), source.url());
    // Two of the values exceed the limit of this store at first.
    let limited =
        run(&["import", &store, "--from", &url, "--quiet", "--option", "max_value_bytes=8000"]);
    assert_eq!(limited.code, 1);
    assert!(limited.err.contains("goes on"), "{}", limited.err);
    assert!(scratch.path("store.import").exists(), "{}", limited.err);
    ok(&["import", &store, "--from", &url, "--quiet"]);
    assert!(!scratch.path("store.import").exists());
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    ok(&["export", &store, "--to", &target.url(), "--quiet"]);
    equal(&source, &target);
}

#[test]
fn an_export_that_failed_goes_on_where_it_was() {
    let scratch = Scratch::new();
    let test = "tools::import_export::export";
    let Some(target) = Redis::start(&scratch, "a", test) else { return };
    let (store, copy) = (scratch.arg("store"), scratch.arg("copy"));
    fill(&scratch.path("store"));
    // The server is full after some of the keys.
    let used: u64 = target
        .text(&["INFO", "memory"])
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok())
        .unwrap();
    target.text(&["CONFIG", "SET", "maxmemory", &(used + 150_000).to_string()]);
    let full = run(&["export", &store, "--to", &target.url(), "--quiet"]);
    assert_eq!(full.code, 1);
    assert!(full.err.contains("OOM") && full.err.contains("goes on"), "{}", full.err);
    target.text(&["CONFIG", "SET", "maxmemory", "0"]);
    ok(&["export", &store, "--to", &target.url(), "--quiet"]);
    assert!(!scratch.path("store.export").exists());
    ok(&["import", &copy, "--from", &target.url(), "--quiet"]);
    assert_eq!(contents(&copy), contents(&store));
}

#[test]
fn addresses_that_make_no_sense_or_do_not_answer_are_told() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    assert_eq!(run(&["import", &store]).code, 2);
    assert_eq!(run(&["export", &store, "--to", "http://x"]).code, 2);
    let silent = run(&["export", &store, "--to", "unix:///nowhere/socket", "--quiet"]);
    assert_eq!(silent.code, 1);
    assert!(silent.err.contains("/nowhere/socket"), "{}", silent.err);
}

/// Runs a command whose source cannot be read, and checks that it creates nothing.
fn makes_nothing(scratch: &Scratch, args: &[&str], code: i32, message: &str) {
    let before = names(&scratch.path(""));
    let run = run(args);
    assert_eq!(run.code, code, "{args:?}: {}{}", run.out, run.err);
    assert!(run.err.contains(message), "{args:?}: {}", run.err);
    assert_eq!(names(&scratch.path("")), before, "{args:?} left something");
}

#[test]
fn where_the_source_cannot_be_read_no_store_is_made() {
    let scratch = Scratch::new();
    let (new, out, directory) = (scratch.arg("new"), scratch.arg("out"), scratch.arg("directory"));
    let (missing, no_dump, empty) =
        (scratch.arg("missing"), scratch.arg("no dump"), scratch.arg("empty"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(&no_dump, "REDIX0011 and so on").unwrap();
    std::fs::write(&empty, "").unwrap();
    // The listener is dropped at once, so nobody listens on the port.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = format!("redis://{closed}");
    // The peer is not a Redis server.
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("redis://{}", stranger.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut peer, _) = stranger.accept().unwrap();
        peer.write_all(b"220 ready\r\n").unwrap();
        // Waits until the program has exited: it may lose bytes on a connection that closes early.
        let _ = peer.read_to_end(&mut Vec::new());
    });
    for (args, code, message) in [
        (&["import", &new, "--rdb", &missing][..], 1, "missing: No such file"),
        (&["import", &new, "--rdb", &directory], 1, "directory: Is a directory"),
        (&["import", &new, "--rdb", &no_dump], 1, "no dump: this is no dump of Redis"),
        (&["import", &new, "--rdb", &empty], 1, "empty: this is no dump of Redis"),
        (&["import", &new, "--from", &closed], 1, "refused"),
        (&["import", &new, "--from", &elsewhere], 1, "is no Redis server"),
        (&["import", &new, "--from", "unix:///nowhere/socket"], 1, "/nowhere/socket"),
        (&["import", &new, "--from", "http://x"], 2, "use redis://"),
        (&["load", &new, "-i", &missing], 1, "missing: No such file"),
        (&["load", &new, "-i", &directory], 1, "directory: Is a directory"),
        (&["load", &new, "-i", &directory, "--format", "resp"], 1, "directory: Is a directory"),
        (&["load", &new, "-i", &directory, "--format", "json"], 1, "directory: Is a directory"),
        (&["repair", &missing, &out], 1, "missing: No such file"),
        (&["repair", &empty, &out], 1, "empty: Not a directory"),
        (&["repair", &directory, &out], 1, "directory: there is no file of a store"),
        (&["checkpoint", &missing, &out], 1, "missing: there is no store"),
        (&["checkpoint", &missing, &out, "--copy"], 1, "missing: there is no store"),
        (&["compact", &missing], 1, "missing: there is no store"),
    ] {
        makes_nothing(&scratch, args, code, message);
    }
    answering.join().unwrap();
    assert_eq!(
        names(Path::new(&directory)),
        [""; 0],
        "a directory that is no store was written to"
    );
}
