//! Commands about the server itself, as operators and client libraries use them.

use std::process::Command;

use crate::resp::Resp;
use crate::support::{LSMKV, Lsmkv, ask, info, read_until_closed, reply_text, until, words};

#[test]
fn info_has_the_sections_that_clients_read() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    for n in 0..1200 {
        ask(&mut client, &format!("SET k{n} v"));
    }
    ask(&mut client, "SELECT 3");
    ask(&mut client, "SET other v");
    let text = reply_text(&mut client, "INFO");
    for part in [
        "# Server\r\n",
        "redis_version:7.0.",
        "redis_mode:standalone",
        "uptime_in_seconds:",
        "# Clients\r\n",
        "connected_clients:1\r\n",
        "# Memory\r\n",
        "used_memory:",
        "maxmemory:0\r\n",
        "# Persistence\r\n",
        "loading:0\r\n",
        "# Stats\r\n",
        "total_commands_processed:1202",
        "# Replication\r\n",
        "role:master\r\n",
        "# Cluster\r\n",
        "cluster_enabled:0\r\n",
        "# Keyspace\r\n",
        "db0:keys=1",
        "db3:keys=1,",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(
        !text.contains("cmdstat_") && !reply_text(&mut client, "INFO keyspace").contains("Server")
    );
    assert!(reply_text(&mut client, "INFO all").contains("cmdstat_set:calls=1201"));
    assert!(reply_text(&mut client, "INFO lsmkv").contains("write_amplification:"));
    ask(&mut client, "CONFIG RESETSTAT");
    assert!(info(&mut client, "stats", "total_commands_processed") < 10);
}

#[test]
fn info_tells_how_often_commands_were_called_how_long_they_took_and_how_they_ended() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    ask(&mut client, "SET k v");
    ask(&mut client, "CONFIG RESETSTAT");
    for line in ["INCR n", "INCR n", "INCR k", "INCR", "KEYS *", "LRANGE k 0 1"] {
        ask(&mut client, line);
    }
    let lines: Vec<_> = ["INCR p", "INCR k", "INCR"].iter().map(|line| words(line)).collect();
    let bytes = |words: &Vec<&str>| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    client.pipeline(&lines.iter().map(bytes).collect::<Vec<Vec<_>>>()).unwrap();
    let text = reply_text(&mut client, "INFO commandstats");
    let fields = |name: &str| -> Vec<(String, f64)> {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:")));
        let fields = line.unwrap_or_else(|| panic!("no {name} in\n{text}")).split(',');
        let split = |field: &str| field.split_once('=').map(|(a, b)| (a.to_owned(), b.parse()));
        fields
            .map(|field| split(field).map(|(name, value)| (name, value.unwrap())).unwrap())
            .collect()
    };
    let incr = fields("incr");
    let names: Vec<&str> = incr.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["calls", "usec", "usec_per_call", "rejected_calls", "failed_calls"]);
    let value = |at: usize| incr[at].1;
    assert_eq!([value(0), value(3), value(4)], [5.0, 2.0, 2.0]);
    assert!((value(1) / 5.0 - value(2)).abs() < 0.01, "{incr:?}");
    assert!(fields("keys")[1].1 > 0.0, "it writes nothing, but takes its time: {text}");
    assert_eq!(fields("lrange")[4].1, 1.0);
}

#[test]
fn every_run_has_a_name_of_its_own() {
    let run_id = |server: &Lsmkv| {
        let text = reply_text(&mut server.connect(), "INFO server");
        text.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap().trim().to_owned()
    };
    let server = Lsmkv::start(&[]);
    let first = run_id(&server);
    assert!(first.len() == 40 && first.bytes().all(|it| it.is_ascii_hexdigit()), "{first}");
    assert_eq!(run_id(&server), first);
    assert_ne!(run_id(&Lsmkv::start_in(server.stop().1, &[])), first);
}

#[test]
fn info_tells_how_many_keys_have_a_time_to_live() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    for n in 0..40 {
        ask(&mut client, &format!("SET k{n} v"));
        if n % 4 == 0 {
            ask(&mut client, &format!("EXPIRE k{n} 1000"));
        }
    }
    let text = reply_text(&mut client, "INFO keyspace");
    let line = text.lines().find_map(|line| line.strip_prefix("db0:")).unwrap();
    let figures: Vec<_> = line.split(',').filter_map(|part| part.split_once('=')).collect();
    let [("keys", keys), ("expires", expires), ("avg_ttl", ttl)] = figures[..] else {
        panic!("{line}")
    };
    assert_eq!((keys, expires), ("40", "10"));
    let ttl: u64 = ttl.parse().unwrap();
    assert!((900_000..=1_000_000).contains(&ttl), "{ttl}");
    ask(&mut client, "PERSIST k0");
    assert!(reply_text(&mut client, "INFO keyspace").contains("keys=40,expires=9,"));
}

#[test]
fn flushes_every_second_can_be_turned_on_while_it_runs() {
    let server = Lsmkv::start(&["--sync", "off"]);
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "CONFIG GET appendfsync").items()[1].bytes(), Some(&b"no"[..]));
    ask(&mut client, "SET k v");
    let before = info(&mut client, "lsmkv", "syncs");
    assert_eq!(reply_text(&mut client, "CONFIG SET appendfsync everysec"), "+OK");
    until("it is flushed", || {
        ask(&mut client, "SET k v");
        info(&mut client, "lsmkv", "syncs") > before
    });
    assert!(server.stop().0.success());
}

#[test]
fn clients_are_listed_named_and_killed() {
    let server = Lsmkv::start(&[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut other, "CLIENT SETNAME victim");
    ask(&mut other, "CLIENT SETINFO LIB-NAME testlib");
    assert!(reply_text(&mut client, "CLIENT SETNAME a\u{1}b").starts_with("-ERR Client names"));
    assert!(reply_text(&mut client, "CLIENT SETINFO nosuch v").contains("Unrecognized option"));
    let Resp::Int(id) = ask(&mut other, "CLIENT ID") else { panic!("no id") };
    let list = reply_text(&mut client, "CLIENT LIST");
    let line = list.lines().find(|line| line.contains("name=victim")).unwrap();
    assert!(line.starts_with(&format!("id={id} ")), "{line}");
    for part in ["lib-name=testlib", "cmd=client", "db=0", "resp=2", "flags=U"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert_eq!(list.lines().count(), 2);
    assert!(reply_text(&mut client, "CLIENT INFO").contains("multi=-1"));
    assert_eq!(ask(&mut client, &format!("CLIENT KILL ID {id}")), Resp::Int(1));
    until("it is gone", || info(&mut client, "clients", "connected_clients") == 1);
    assert!(other.call(&["PING"]).is_err());
    let mut own = server.connect();
    let Resp::Int(id) = ask(&mut own, "CLIENT ID") else { panic!("no id") };
    assert_eq!(ask(&mut own, &format!("CLIENT KILL ID {id}")), Resp::Int(0));
    assert_eq!(ask(&mut own, &format!("CLIENT KILL ID {id} SKIPME no")), Resp::Int(1));
    assert!(own.call(&["PING"]).is_err());
}

#[test]
fn replies_can_be_turned_off() {
    let server = Lsmkv::start(&[]);
    let mut stream = server.stream();
    std::io::Write::write_all(
        &mut stream,
        b"CLIENT REPLY OFF\r\nSET a 1\r\nNOSUCH\r\nCLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nSET b 2\r\n\
          GET a\r\nQUIT\r\n",
    )
    .unwrap();
    assert_eq!(read_until_closed(&mut stream), "+OK\r\n$1\r\n1\r\n+OK\r\n");
    assert_eq!(reply_text(&mut server.connect(), "GET b"), "2");
}

#[test]
fn the_catalogue_describes_every_command() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let Resp::Int(count) = ask(&mut client, "COMMAND COUNT") else { panic!("no count") };
    assert!(count > 150, "{count}");
    let all = ask(&mut client, "COMMAND");
    assert_eq!(all.items().len() as i64, count);
    assert_eq!(ask(&mut client, "COMMAND LIST").items().len() as i64, count);
    let found = ask(&mut client, "COMMAND INFO get blpop nosuch");
    let [get, blpop, Resp::Bulk(None)] = found.items() else { panic!("{found:?}") };
    let numbers = |row: &Resp| [1, 3, 4, 5].map(|at| row.items()[at].clone());
    assert_eq!(numbers(get), [2, 1, 1, 1].map(Resp::Int));
    assert_eq!(numbers(blpop), [-3, 1, -2, 1].map(Resp::Int));
    let docs = ask(&mut client, "COMMAND DOCS hset");
    assert_eq!(docs.items()[0].bytes(), Some(&b"hset"[..]));
    assert!(format!("{docs:?}").contains("summary"));
}

#[test]
fn saving_and_stopping_are_commands_too() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let Resp::Int(before) = ask(&mut client, "LASTSAVE") else { panic!("no time") };
    ask(&mut client, "SET k v");
    assert_eq!(reply_text(&mut client, "SAVE"), "+OK");
    assert!(info(&mut client, "lsmkv", "table_files") > 0);
    assert_eq!(reply_text(&mut client, "BGSAVE"), "+Background saving started");
    until("it is saved", || info(&mut client, "persistence", "rdb_bgsave_in_progress") == 0);
    assert!(matches!(ask(&mut client, "LASTSAVE"), Resp::Int(after) if after >= before));
    assert!(client.call(&["SHUTDOWN"]).is_err(), "it hangs up without a reply");
    let (status, dir) = server.wait();
    assert!(status.success());
    assert!(!dir.path().join("socket").exists());
    assert_eq!(reply_text(&mut Lsmkv::start_in(dir, &[]).connect(), "GET k"), "v");
}

#[test]
fn the_world_needs_a_password() {
    let serve = |args: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(LSMKV);
        command.arg("serve").arg(dir.path().join("store")).args(args).output().unwrap()
    };
    let refused = serve(&["--bind", "0.0.0.0", "--port", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("--requirepass") && said.contains("--unprotected"), "{said}");
    let nowhere = serve(&["--port", "0"]);
    assert_eq!(nowhere.status.code(), Some(2));
    let unknown = serve(&["--option", "memory_budgt=1"]);
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("did you mean 'memory_budget'"));
    let used = Lsmkv::start(&[]);
    let second = serve(&["--port", "0", "--unixsocket", used.socket().to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1), "the socket of a living server is not taken over");
    assert_eq!(reply_text(&mut used.connect(), "PING"), "+PONG");
}

#[test]
fn test_suites_find_what_they_need_of_debug() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let begun = std::time::Instant::now();
    assert_eq!(reply_text(&mut client, "DEBUG SLEEP 0.1"), "+OK");
    assert!(begun.elapsed().as_millis() >= 100);
    assert_eq!(reply_text(&mut client, "DEBUG JMAP"), "+OK");
    assert_eq!(reply_text(&mut client, "DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
    ask(&mut client, "SET k 12");
    assert!(reply_text(&mut client, "DEBUG OBJECT k").contains("encoding:int"));
    assert_eq!(reply_text(&mut client, "DEBUG OBJECT none"), "-ERR no such key");
    assert!(reply_text(&mut client, "DEBUG SEGFAULT").starts_with("-ERR unknown subcommand"));
}
