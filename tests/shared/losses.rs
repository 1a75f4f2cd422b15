//! What the holder keeps for its clients ends with the holder, with the client, or with its handle. It
//! is bounded, and no nonsense on the socket harms the holder.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use lsmkv::types::KeyRange;
use lsmkv::{Options, Reply, SharedStore};

use super::views::on;
use super::worker::{REPLY_MS, Worker};
use super::{bulk, open, run, until};

/// A figure in a line of `name=number`.
fn figure(text: &str, name: &str) -> u64 {
    let at = text.find(&format!("{name}=")).unwrap_or_else(|| panic!("{name}: {text}"));
    let digits = text[at + name.len() + 1..].split(' ').next().unwrap();
    digits.parse().unwrap()
}

/// What the holder keeps: snapshots, transactions and watches.
fn kept(holder: &mut Worker) -> (u64, u64) {
    let text = holder.ask("@figures");
    (figure(&text, "snapshots"), figure(&text, "transactions_and_watches"))
}

/// A holder and a client of it, each in a process of its own.
fn pair(dir: &Path, client_variables: &[(&str, String)]) -> (Worker, Worker) {
    let mut holder = Worker::start(dir, &[]);
    assert_eq!(holder.answer().unwrap(), "holds");
    let mut client = Worker::start(dir, client_variables);
    assert_eq!(client.answer().unwrap(), "connected");
    (holder, client)
}

/// Asserts that a call of the worker failed since its holder ended, and says what that means.
fn is_lost(answer: &str, meaning: &str) {
    assert!(answer.starts_with("Io: ") && answer.contains(meaning), "{answer}");
}

#[test]
fn what_a_killed_holder_kept_is_gone_and_its_clients_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let (mut holder, mut client) = pair(dir.path(), &[]);
    for n in 0..1500 {
        client.ask(&format!("SET key:{n:04} v"));
    }
    assert_eq!(client.ask("@begin"), "ok");
    assert_eq!(client.ask("@in SET k never"), "OK");
    assert_eq!(client.ask("@in SET key:0000 never"), "OK");
    assert_eq!(client.ask("@snapshot"), "ok");
    assert_eq!(client.ask("@iterate"), "ok");
    assert_eq!(client.ask("@next"), "key:0000");
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    is_lost(&client.ask("@in GET k"), "nothing of it was committed");
    is_lost(&client.ask("@commit"), "nothing of it was committed");
    is_lost(&client.ask("@in GET k"), "nothing of it was committed");
    assert_eq!(client.ask("@rollback"), "ok", "it is rolled back");
    for _ in 0..2 {
        is_lost(&client.ask("@then GET k"), "with it this snapshot");
    }
    // What was sent already comes first; nothing is left out after it.
    let mut last = String::new();
    for n in 1..1500 {
        last = client.ask("@next");
        if last.starts_with("Io") {
            break;
        }
        assert_eq!(last, format!("key:{n:04}"));
    }
    for _ in 0..2 {
        is_lost(&last, "with it this iterator");
        last = client.ask("@next");
    }
    // The client goes on by itself, as the holder.
    assert_eq!(client.ask("GET k"), "Nil");
    assert_eq!(client.ask("GET key:0000"), "v");
    assert_eq!(client.ask("@begin"), "ok");
    client.ask("@in SET k now");
    assert_eq!(client.ask("@commit"), "ok");
    assert_eq!(client.ask("GET k"), "now");
}

#[test]
fn what_a_killed_client_had_is_released_at_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let (mut holder, mut client) = pair(dir.path(), &[]);
    let before = kept(&mut holder);
    for command in ["@begin", "@snapshot", "@iterate"] {
        assert_eq!(client.ask(command), "ok");
    }
    client.ask("@in SET k never");
    let while_open = kept(&mut holder);
    assert!(while_open.0 > before.0 && while_open.1 == before.1 + 1, "{while_open:?}");
    client.process.kill().unwrap();
    client.process.wait().unwrap();
    until("the release", || kept(&mut holder) == before);
    assert_eq!(holder.ask("GET k"), "Nil");
    // A handle that is dropped releases at once, before the drop returns.
    let store = open(dir.path());
    for _ in 0..3 {
        let (transaction, snapshot) = (store.begin().unwrap(), store.snapshot().unwrap());
        on(&transaction, "SET k never");
        assert!(kept(&mut holder) != before);
        drop((transaction, snapshot));
        assert_eq!(kept(&mut holder), before);
    }
}

#[test]
fn a_commit_whose_reply_is_lost_may_or_may_not_have_happened_and_is_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let (mut holder, mut client) = pair(dir.path(), &[(REPLY_MS, "1000".to_owned())]);
    let before = kept(&mut holder);
    until("the first write", || client.ask("SET n 0").contains("OK"));
    until("a transaction", || client.ask("@begin") == "ok");
    client.ask("@in INCR n");
    holder.signal("-STOP");
    let answer = client.ask("@commit");
    assert!(answer.starts_with("Timeout") && answer.contains("may or may not"), "{answer}");
    assert!(answer.contains(&format!("process {}", holder.id())), "{answer}");
    let answer = client.ask("@rollback");
    assert!(answer.contains("may or may not"), "{answer}");
    holder.signal("-CONT");
    until("the release", || kept(&mut holder) == before);
    assert!(["0", "1"].contains(&holder.ask("GET n").as_str()));
    // One that was silent before the commit has committed nothing.
    until("a transaction", || client.ask("@begin") == "ok");
    client.ask("@in SET never 1");
    holder.signal("-STOP");
    let answer = client.ask("@in SET never 2");
    assert!(answer.starts_with("Timeout") && answer.contains("nothing of it"), "{answer}");
    holder.signal("-CONT");
    until("the release", || kept(&mut holder) == before);
    assert_eq!(holder.ask("EXISTS never"), "Int(0)");
}

#[test]
fn limits_hold_at_the_holder_and_what_is_not_fetched_does_not_pile_up() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { txn_max_bytes: 256 << 10, ..Options::default() };
    let (first, second) = (SharedStore::open(dir.path(), &options).unwrap(), open(dir.path()));
    let value = "x".repeat(60_000);
    for n in 0..200 {
        run(&first, &format!("SET big:{n:03} {value}"));
    }
    let transaction = second.begin().unwrap();
    let mut replies = (0..200).map(|n| on(&transaction, &format!("SET t:{n} {value}")));
    let full = replies.find_map(|reply| match reply {
        Reply::Error(text) => Some(text),
        _ => None,
    });
    assert!(full.unwrap().contains("txn_max_bytes"));
    assert_eq!(on(&transaction, "EXISTS t:0"), Reply::Int(1), "what fitted is still there");
    transaction.rollback().unwrap();
    // An iterator over twelve megabytes of which one entry is read.
    let range = KeyRange { values: true, ..KeyRange::default() };
    let mut walk = second.iter(range).unwrap();
    assert!(walk.next().unwrap().is_some());
    let list = match second.session().command(&[b"CLIENT", b"LIST"]).unwrap() {
        Reply::Bulk(list) | Reply::Text(list) | Reply::Verbatim(_, list) => list,
        other => panic!("{other:?}"),
    };
    let list = String::from_utf8_lossy(&list);
    let buffered: u64 = list.lines().map(|line| figure(line, "tot-mem")).sum();
    assert!(buffered < 2 << 20, "{buffered}: {list}");
}

/// Sends a command as it is, and returns the first line of the reply.
fn raw(socket: &mut UnixStream, words: &[&[u8]]) -> String {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    socket.write_all(&bytes).unwrap();
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        socket.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

#[test]
fn nonsense_on_private_commands_is_a_clear_error_and_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    run(&store, "SET k v");
    let mut socket = UnixStream::connect(dir.path().join("SHARED")).unwrap();
    let mut say = |line: &str| {
        let mut words: Vec<&[u8]> = vec![b"LSMKV.SHARED"];
        words.extend(line.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes));
        raw(&mut socket, &words)
    };
    let nonsense = [
        "",
        "NONE",
        "VIEW",
        "VIEW x",
        "VIEW SNAPSHOT x",
        "COMMIT",
        "COMMIT x",
        "COMMIT ASYNC x",
        "ROLLBACK",
        "ROLLBACK x",
        "END x",
        "FREE",
        "FREE x",
        "FREE -1",
        "NEXT",
        "NEXT 1",
        "NEXT 1 1 1",
        "NEXT x 1 1",
        "NEXT -1 -1 -1",
        "KEYS x",
        "KEYS LO",
        "KEYS REVERSE LO",
        "KEYS TYPE 9",
        "KEYS TYPE x",
        "WAIT",
        "WAIT x 1",
        "WAIT 1 x",
        "WAIT -1 1",
        "WAIT 99999999999999999999 1",
        "WAIT 9223372036854775807 1000",
        "BATCH",
        "BATCH \u{1}\u{1}",
        "UPKEEP x",
        "BATCH xx ASYNC",
        "BATCH xx -7",
    ];
    for line in nonsense {
        let answer = say(line);
        assert!(answer.starts_with('-'), "{line}: {answer}");
    }
    assert_eq!(say("END"), "+OK", "there is nothing to end");
    assert_eq!(say("FREE 7"), "+OK");
    assert_eq!(say("VIEW TRANSACTION"), "+OK");
    for line in ["VIEW TRANSACTION", "VIEW SNAPSHOT", "COMMIT -1", "COMMIT x", "NEXT 3 1 1"] {
        let answer = say(line);
        assert!(answer.starts_with('-'), "{line}: {answer}");
    }
    for _ in 0..1024 {
        assert!(say("KEYS").starts_with(':'));
    }
    let answer = say("KEYS");
    assert!(answer.starts_with("-LSMKV -17 1024 iterators"), "{answer}");
    assert_eq!(say("FREE 1"), "+OK");
    assert_eq!(say("KEYS"), ":1025");
    assert_eq!(say("NEXT 1025 -1 18446744073709551616"), "*3");
    drop(socket);
    let mut socket = UnixStream::connect(dir.path().join("SHARED")).unwrap();
    assert_eq!(raw(&mut socket, &[b"LSMKV.SHARED", b"VIEW", b"TRANSACTION"]), "+OK");
    assert_eq!(raw(&mut socket, &[b"SET", b"k", b"never"]), "+OK");
    assert_eq!(raw(&mut socket, &[b"MULTI"]), "+OK");
    assert!(raw(&mut socket, &[b"LSMKV.SHARED", b"COMMIT"]).starts_with('-'));
    assert!(raw(&mut socket, &[b"EXEC"]).starts_with("-EXECABORT"));
    // RESET leaves the transaction, which ends.
    assert_eq!(raw(&mut socket, &[b"RESET"]), "+RESET");
    assert!(raw(&mut socket, &[b"LSMKV.SHARED", b"COMMIT"]).starts_with('-'));
    assert_eq!(raw(&mut socket, &[b"LSMKV.SHARED", b"VIEW", b"SNAPSHOT"]), "+OK");
    assert!(raw(&mut socket, &[b"LSMKV.SHARED", b"COMMIT"]).starts_with("-LSMKV -2"));
    assert_eq!(run(&store, "GET k"), bulk("v"));
    assert_eq!(run(&open(dir.path()), "GET k"), bulk("v"));
}
