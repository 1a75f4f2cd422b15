//! Dumps: written and loaded again, here and by a real server.

use super::redis::Redis;
use super::support::{Scratch, contents, fill, lsmkv, ok, run, run_with_input};

#[test]
fn a_dump_of_either_form_loads_into_an_equal_store() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    // Small sorted sets of Redis lose the sign of zero, so this key does not go through one.
    ok(&[store.as_str(), "ZADD", "zero", "-0", "negative", "0", "positive"]);
    let expected = contents(&store);
    assert!(expected.contains("\"-0\""));
    assert!(expected.contains("\"expires\":4102444800123") && expected.contains("base64"));
    for format in ["resp", "json"] {
        let (file, copy) = (scratch.arg("file"), scratch.arg(format));
        ok(&["dump", &store, "--format", format, "-o", &file, "--quiet"]);
        ok(&["load", &copy, "-i", &file, "--quiet"]);
        assert_eq!(contents(&copy), expected, "{format}");
        assert_eq!(ok(&["check", &copy, "--quiet"]), "no problems\n");
        // Collections are written in parts of bounded size.
        let longest =
            std::fs::read(&file).unwrap().split(|byte| *byte == b'*').map(<[u8]>::len).max();
        assert!(format == "json" || longest.unwrap() < 64 << 10);
    }
}

#[test]
fn a_dump_is_what_a_real_server_takes_through_its_pipe() {
    let scratch = Scratch::new();
    let Some(redis) = Redis::start(&scratch, "a", "tools::dump::pipe") else { return };
    let (store, copy) = (scratch.arg("store"), scratch.arg("copy"));
    fill(&scratch.path("store"));
    let dump = lsmkv(&["dump", &store, "--quiet"]).output().unwrap().stdout;
    redis.feed(&dump, true);
    let replaced = lsmkv(&["dump", &store, "--replace", "--quiet"]).output().unwrap().stdout;
    redis.feed(&replaced, true);
    ok(&["import", &copy, "--from", &redis.url(), "--quiet"]);
    assert_eq!(contents(&copy), contents(&store));
}

#[test]
fn a_part_of_a_store_can_be_dumped() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    let one = ok(&["dump", &store, "--format", "json", "--prefix", "string:0001", "--quiet"]);
    assert_eq!(one.lines().count(), 2);
    let other = ok(&["dump", &store, "--format", "json", "--db", "5", "--quiet"]);
    assert_eq!(other.lines().count(), 1);
    assert!(other.contains("in another database"));
}

#[test]
fn lines_of_commands_load_and_errors_are_counted() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    let loaded = run_with_input(
        &["load", &store, "--quiet"],
        b"SET a 1\nLPUSH a x\nSELECT 1\nSET b 'two words'",
    );
    assert_eq!(loaded.code, 1);
    assert_eq!(loaded.out, "4 commands, 1 errors\n");
    assert!(loaded.err.contains("LPUSH a: WRONGTYPE"), "{}", loaded.err);
    assert_eq!(ok(&[store.as_str(), "-n", "1", "GET", "b"]), "\"two words\"\n");
}

#[test]
fn what_is_no_dump_changes_nothing_more_than_it_said() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    let cut = run_with_input(
        &["load", &store, "--quiet"],
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$3\r\n",
    );
    assert_eq!(cut.code, 1);
    assert!(cut.err.contains("ends inside a command"), "{}", cut.err);
    assert_eq!(ok(&[store.as_str(), "GET", "a"]), "\"1\"\n");
    assert_eq!(run_with_input(&["load", &store, "--quiet"], b"{\"key\":1}\n").code, 1);
    assert_eq!(run(&["load", &store, "-i", "/nowhere"]).code, 1);
}
