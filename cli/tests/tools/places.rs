//! The shell, import and export on stores of other processes: a server, a cluster.

use super::redis::Redis;
use super::servers::Cluster;
use super::support::{Scratch, contents, ok, run, run_with_input};

#[test]
fn a_shell_runs_on_a_server() {
    let scratch = Scratch::new();
    let Some(redis) = Redis::start(&scratch, "a", "tools::places::server") else { return };
    let url = redis.url();
    let url = url.as_str();
    assert_eq!(ok(&[url, "HSET", "h", "f", "v"]), "(integer) 1\n");
    assert_eq!(ok(&[url, "--json", "HGETALL", "h"]), "{\"f\":\"v\"}\n");
    assert_eq!(ok(&[url, "-n", "3", "EXISTS", "h"]), "(integer) 0\n");
    // The server knows commands that the store does not.
    assert!(ok(&[url, "CONFIG", "GET", "maxmemory-policy"]).contains("noeviction"));
    let wrong = run(&[url, "INCR", "h"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.starts_with("(error) WRONGTYPE"), "{}", wrong.out);
    assert_eq!(run(&[url, "--read-only", "SET", "k", "v"]).code, 1);
    assert_eq!(ok(&[url, "EXISTS", "k"]), "(integer) 0\n");
    let file = scratch.path("commands");
    std::fs::write(&file, "SELECT 4\nSET from:file 1\n").unwrap();
    let lines = format!(
        "MULTI\nINCR n\nEXEC\nSELECT 2\nSET there yes\n.read {}\nGET there\nQUIT\nGET there\n",
        file.display()
    );
    let talk = run_with_input(&[url], lines.as_bytes());
    let expected = "OK\nQUEUED\n1) (integer) 1\nOK\nOK\n2 commands, 0 errors\n\"yes\"\nOK\n";
    assert_eq!((talk.out.as_str(), talk.code), (expected, 0), "{}", talk.err);
    assert_eq!(ok(&[url, "-n", "4", "GET", "from:file"]), "\"1\"\n");
    // What only a store of this process has is refused in words.
    let stats = run_with_input(&[url], b".stats\n");
    assert_ne!(stats.code, 0);
    assert!(stats.err.contains("store of this process"), "{}{}", stats.out, stats.err);
    let nobody = run(&["unix:///nowhere/socket", "GET", "k"]);
    assert_eq!(nobody.code, 1);
    assert!(nobody.err.contains("/nowhere/socket"), "{}", nobody.err);
}

#[test]
fn a_store_moves_to_a_cluster_and_back() {
    let scratch = Scratch::new();
    let Some(cluster) = Cluster::start("tools::places::cluster") else { return };
    let address = cluster.address();
    let address = address.as_str();
    let (store, copy) = (scratch.arg("store"), scratch.arg("copy"));
    let mut lines = String::new();
    for n in 0..300 {
        lines += &format!(
            "SET string:{n} {n}\nHSET hash:{n} f {n} g x\nRPUSH list:{n} a b {n}\n\
             SADD set:{n} a {n}\nZADD zset:{n} 1.5 a {n} b\n"
        );
    }
    for n in 0..2000 {
        lines += &format!("RPUSH list:long {n}\nHSET hash:long {n} {n}\n");
    }
    lines += "PEXPIREAT string:1 4102444800001\nPEXPIREAT list:2 4102444800002\n";
    run_with_input(&[&store], lines.as_bytes());
    assert_eq!(ok(&["export", &store, "--to", address, "--quiet"]).lines().count(), 1);
    assert_eq!(ok(&[address, "DBSIZE"]), "(integer) 1502\n");
    assert_eq!(ok(&[address, "MGET", "string:7", "string:8"]), "1) \"7\"\n2) \"8\"\n");
    let talk = run_with_input(&[address], b"WATCH {t}a\nMULTI\nINCR {t}a\nEXEC\nDEL {t}a\n");
    assert_eq!(talk.out, "OK\nOK\nQUEUED\n1) (integer) 1\n(integer) 1\n", "{}", talk.err);
    ok(&["import", &copy, "--from", address, "--quiet"]);
    assert_eq!(contents(&copy), contents(&store));
    // A second export replaces, and duplicates nothing.
    ok(&["export", &store, "--to", address, "--quiet"]);
    assert_eq!(ok(&[address, "LLEN", "list:long"]), "(integer) 2000\n");
    // A cluster has one database.
    ok(&[&store, "-n", "5", "SET", "k", "v"]);
    let refused = run(&["export", &store, "--to", address, "--quiet"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("database 0 alone"), "{}", refused.err);
    std::fs::remove_file(scratch.path("store.export")).unwrap();
    ok(&["export", &store, "--to", address, "--quiet", "--db", "0"]);
}
