//! The shell and the tools on a store that several processes share.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use lsmkv::{Options, Reply, SharedStore};

use super::redis::Redis;
use super::support::{Scratch, contents, lsmkv, ok, run, run_with_input};

const SHARED: [&str; 2] = ["--option", "shared=on"];

/// Arguments of a program on a shared store.
fn shared<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &SHARED, after].concat()
}

fn text(store: &SharedStore, words: &[&str]) -> String {
    let argv: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    match store.command(&argv).unwrap() {
        Reply::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_shell_is_a_client_of_the_process_that_holds_the_store() {
    let scratch = Scratch::new();
    let dir = scratch.arg("store");
    let dir = dir.as_str();
    let holder = SharedStore::open(dir, &Options::default()).unwrap();
    assert_eq!(ok(&shared(&[], &[dir, "SET", "k", "v"])), "OK\n");
    assert_eq!(text(&holder, &["GET", "k"]), "v");
    assert_eq!(ok(&shared(&[], &["-n", "3", dir, "EXISTS", "k"])), "(integer) 0\n");
    // Without the option, the advice is the option.
    let plain = run(&[dir, "GET", "k"]);
    assert_eq!(plain.code, 1);
    assert!(plain.err.contains("shared=on"), "{}", plain.err);
    let file = scratch.path("commands");
    std::fs::write(&file, "SET from:file 1\n").unwrap();
    let lines = format!(
        "MULTI\nINCR n\nEXEC\nSELECT 2\nSET there yes\n.read {}\nGET from:file\nQUIT\nGET there\n",
        file.display()
    );
    let talk = run_with_input(&shared(&[], &[dir]), lines.as_bytes());
    let expected = "OK\nQUEUED\n1) (integer) 1\nOK\nOK\n1 commands, 0 errors\n\"1\"\nOK\n";
    assert_eq!((talk.out.as_str(), talk.code), (expected, 0), "{}", talk.err);
    let other = holder.select(2).unwrap();
    assert_eq!(
        (text(&other, &["GET", "there"]), text(&holder, &["GET", "n"])),
        ("yes".into(), "1".into())
    );
    // What only a store of its own has is refused in words.
    let stats = run_with_input(&shared(&[], &[dir]), b".stats\n");
    assert_ne!(stats.code, 0);
    assert!(stats.err.contains("a shared store"), "{}{}", stats.out, stats.err);
    let reader = run(&shared(&["--read-only"], &[dir, "GET", "k"]));
    assert!(reader.code != 0 && reader.err.contains("read_only"), "{}", reader.err);
    holder.close().unwrap();
}

#[test]
fn a_shell_holds_the_store_for_others_which_take_over_when_it_ends() {
    let scratch = Scratch::new();
    let dir = scratch.arg("store");
    let dir = dir.as_str();
    let absent = run(&shared(&[], &[dir, "GET", "k"]));
    assert!(absent.code == 1 && absent.err.is_empty(), "{}", absent.err);
    assert!(absent.out.contains("there is no store"), "{}", absent.out);
    assert!(!scratch.path("store").exists(), "a command that reads made a store");
    let mut shell = lsmkv(&shared(&[], &[dir]));
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    let mut output = BufReader::new(shell.stdout.take().unwrap()).lines();
    // The first write creates the store.
    input.write_all(b"SET k v\n").unwrap();
    assert_eq!(output.next().unwrap().unwrap(), "OK");
    let client = SharedStore::open(dir, &Options::default()).unwrap();
    assert!(!client.is_holder());
    assert_eq!(client.holder(), Some(shell.id()));
    assert_eq!(text(&client, &["GET", "k"]), "v");
    input.write_all(b"SET k w\nQUIT\n").unwrap();
    assert!(shell.wait().unwrap().success());
    assert_eq!(text(&client, &["GET", "k"]), "w");
    assert!(client.is_holder());
    client.close().unwrap();
}

#[test]
fn tools_read_and_fill_a_store_that_others_share() {
    let scratch = Scratch::new();
    let (dir, copy, file) = (scratch.arg("store"), scratch.arg("copy"), scratch.arg("dump"));
    let dir = dir.as_str();
    let holder = SharedStore::open(dir, &Options::default()).unwrap();
    let load = shared(&["load", "--quiet"], &[dir]);
    let commands = "SET a 1\nHSET h f v\nSELECT 4\nRPUSH l x y\n";
    assert_eq!(run_with_input(&load, commands.as_bytes()).out, "4 commands, 0 errors\n");
    let dump = ok(&shared(&["dump", "--quiet", "--format", "json", "-o", &file], &[dir]));
    assert_eq!(dump, "");
    assert_eq!(text(&holder.select(4).unwrap(), &["LLEN", "l"]), "Int(2)");
    for tool in ["stats", "levels", "check"] {
        assert_ne!(ok(&shared(&[tool], &[dir])), "");
    }
    assert_ne!(ok(&shared(&["watch", "-c", "1"], &[dir])), "");
    // JSON goes through the store, too.
    let other = SharedStore::open(&copy, &Options::default()).unwrap();
    ok(&shared(&["load", "--quiet", "-i", &file], &[&copy]));
    assert_eq!(contents(&copy), contents(dir));
    other.close().unwrap();
    for tool in
        [&["compact"][..], &["checkpoint"], &["serve", "--port", "0"], &["bench"], &["repair"]]
    {
        let out = scratch.arg("out");
        let more: &[&str] = match tool[0] {
            "checkpoint" | "repair" => &[dir, &out],
            "bench" => &[&out],
            _ => &[dir],
        };
        let refused = run(&shared(tool, more));
        assert_eq!(refused.code, 2, "{tool:?}: {}", refused.err);
        assert!(refused.err.contains("needs the store for itself"), "{tool:?}: {}", refused.err);
    }
    holder.close().unwrap();
}

#[test]
fn keys_are_copied_between_a_shared_store_and_a_server() {
    let scratch = Scratch::new();
    let Some(redis) = Redis::start(&scratch, "a", "tools::shared::server") else { return };
    let url = redis.url();
    let (dir, copy) = (scratch.arg("store"), scratch.arg("copy"));
    let stores = [&dir, &copy].map(|dir| SharedStore::open(dir, &Options::default()).unwrap());
    let lines: String = (0..1500).map(|n| format!("SET s:{n} {n}\nRPUSH l a{n}\n")).collect();
    run_with_input(&shared(&[], &[&dir]), lines.as_bytes());
    ok(&shared(&["export", "--quiet", "--to", &url], &[&dir]));
    assert_eq!(ok(&[url.as_str(), "DBSIZE"]), "(integer) 1501\n");
    ok(&shared(&["import", "--quiet", "--from", &url], &[&copy]));
    assert_eq!(text(&stores[1], &["LLEN", "l"]), "Int(1500)");
    assert_eq!(contents(&copy), contents(&dir));
    stores.iter().for_each(|store| store.close().unwrap());
}
