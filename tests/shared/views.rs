//! Snapshots, transactions, iterators and tickets of a process that does not hold the store.

use std::time::Duration;

use lsmkv::types::{KeyEntry, KeyRange, Type};
use lsmkv::{Error, ErrorKind, Options, Reply, SharedStore, SharedView};

use super::{bulk, open, run};

pub(crate) fn on(view: &SharedView, line: &str) -> Reply {
    try_on(view, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

pub(crate) fn try_on(view: &SharedView, line: &str) -> Result<Reply, Error> {
    let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    view.command(&argv)
}

/// GET of a long string is read at a snapshot, which a transaction does not have.
#[test]
fn a_view_of_a_client_reads_a_long_string() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    let value: Vec<u8> =
        (0..3u32 << 20).map(|n| n.wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect();
    first.command(&[b"SET", b"long", &value]).unwrap();
    let (transaction, snapshot) = (second.begin().unwrap(), second.snapshot().unwrap());
    first.command(&[b"SET", b"long", b"short"]).unwrap();
    assert_eq!(on(&snapshot, "GET long"), Reply::Bulk(value.clone().into()));
    on(&transaction, "DEL long");
    transaction.command(&[b"SETRANGE", b"long", b"0", &value]).unwrap();
    assert_eq!(on(&transaction, "GET long"), Reply::Bulk(value.into()));
    assert_eq!(on(&transaction, "EXISTS long"), Reply::Int(1));
}

/// A page of a walk looks at a limited number of records, and the walk goes on all the same.
#[test]
fn an_iterator_of_a_client_finds_the_few_keys_of_a_type_among_many_others() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    for from in (0..30_000).step_by(1000) {
        let keys: Vec<String> = (from..from + 1000).map(|n| format!("key:{n:05}")).collect();
        let mut argv: Vec<&[u8]> = vec![b"MSET"];
        argv.extend(keys.iter().flat_map(|key| [key.as_bytes(), b"v"]));
        first.command(&argv).unwrap();
    }
    for key in ["key:12345+", "key:9"] {
        run(&first, &format!("SADD {key} member"));
    }
    let range = KeyRange { kind: Some(Type::Set), ..KeyRange::default() };
    let mut keys = second.iter(range).unwrap();
    let mut found = Vec::new();
    while let Some(entry) = keys.next().unwrap() {
        found.push(entry.key);
    }
    assert_eq!(found, [&b"key:12345+"[..], b"key:9"]);
}

#[test]
fn a_transaction_of_a_client_reads_its_writes_and_is_seen_at_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    run(&first, "SET k before");
    let transaction = second.begin().unwrap();
    on(&transaction, "SET k after");
    on(&transaction, "RPUSH l a b");
    on(&transaction, "HSET h f v");
    assert_eq!(on(&transaction, "GET k"), bulk("after"));
    assert_eq!(on(&transaction, "LLEN l"), Reply::Int(2));
    assert!(matches!(on(&transaction, "INCR l"), Reply::Error(text) if text.starts_with("WRONG")));
    // A blocking command has nobody to wait for.
    assert_eq!(on(&transaction, "BLPOP none 0"), Reply::Nil);
    assert_eq!(on(&transaction, "EVAL return(redis.call('GET','k')) 0"), bulk("after"));
    let other = transaction.select(3).unwrap();
    on(&other, "SET k three");
    assert_eq!(on(&transaction, "GET k"), bulk("after"));
    assert_eq!(on(&other, "GET k"), bulk("three"));
    assert_eq!(transaction.select(9999).unwrap_err().kind(), ErrorKind::OutOfRange);
    let mut batch = transaction.batch();
    batch.command(&[b"INCR", b"n"]).unwrap();
    batch.command(&[b"INCR", b"n"]).unwrap();
    batch.commit().unwrap();
    assert_eq!(on(&transaction, "GET n"), bulk("2"));
    // What belongs to a connection is refused, and leaves the transaction as it is.
    for line in ["MULTI", "SELECT 1", "RESET", "QUIT", "HELLO 2", "WATCH k", "MONITOR"] {
        assert_eq!(try_on(&transaction, line).unwrap_err().kind(), ErrorKind::Misuse, "{line}");
    }
    for line in ["LSMKV.SHARED END", "lsmkv.shared COMMIT"] {
        assert_eq!(try_on(&transaction, line).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    for store in [&first, &second] {
        assert_eq!(run(store, "GET k"), bulk("before"), "nobody sees it yet");
        assert_eq!(run(store, "EXISTS l h n"), Reply::Int(0));
    }
    transaction.commit().unwrap();
    assert_eq!(run(&first, "GET k"), bulk("after"));
    assert_eq!(run(&second, "EXISTS l h n"), Reply::Int(3));
    assert_eq!(run(&first.select(3).unwrap(), "GET k"), bulk("three"));
    // It is over, for all its handles.
    assert_eq!(try_on(&transaction, "GET k").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(try_on(&other, "SET k v").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(transaction.rollback().unwrap_err().kind(), ErrorKind::Closed);
    drop(transaction);
    for line in ["GET k", "SET k stray"] {
        assert_eq!(try_on(&other, line).unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(other.iter(KeyRange::default()).unwrap_err().kind(), ErrorKind::Closed);
    drop(other);
    // The connection serves other calls again, on their own database.
    assert_eq!(run(&second, "GET k"), bulk("after"));
    let undone = second.begin().unwrap();
    on(&undone, "SET k undone");
    undone.rollback().unwrap();
    assert_eq!(try_on(&undone, "GET k").unwrap_err().kind(), ErrorKind::Closed);
    drop(second.begin().map(|forgotten| on(&forgotten, "SET k forgotten")));
    assert_eq!(run(&second, "GET k"), bulk("after"));
}

#[test]
fn transactions_of_clients_and_of_the_holder_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [open(dir.path()), open(dir.path()), open(dir.path())];
    assert!(stores[0].is_holder() && !stores[1].is_holder() && !stores[2].is_holder());
    for (late, early) in [(0, 1), (1, 0), (1, 2)] {
        run(&stores[0], "SET n 0");
        let transactions = [late, early].map(|at| stores[at].begin().unwrap());
        for transaction in &transactions {
            on(transaction, "INCR n");
        }
        transactions[1].commit_timeout(Duration::from_secs(60)).unwrap();
        let error = transactions[0].commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{late} after {early}: {error}");
        assert_eq!(run(&stores[2], "GET n"), bulk("1"));
    }
    // A plain write of another process overtakes one, too.
    let transaction = stores[1].begin().unwrap();
    on(&transaction, "GET n");
    on(&transaction, "SET m 1");
    run(&stores[2], "SET n 5");
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(run(&stores[0], "EXISTS m"), Reply::Int(0));
}

#[test]
fn no_update_is_lost_between_processes_that_transact() {
    const ROUNDS: i64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let stores = [open(dir.path()), open(dir.path()), open(dir.path())];
    run(&stores[0], "SET n 0");
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    loop {
                        let transaction = store.begin().unwrap();
                        on(&transaction, "INCR n");
                        match transaction.commit() {
                            Ok(()) => break,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(run(&stores[1], "GET n"), bulk(&(3 * ROUNDS).to_string()));
}

#[test]
fn a_snapshot_of_a_client_stays_as_it_is_and_takes_no_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    run(&second, "SET k before");
    run(&second.select(2).unwrap(), "SET k two");
    let then = second.snapshot().unwrap();
    for line in ["SET k after", "RPUSH l a", "FLUSHALL", "SET k again"] {
        run(&first, line);
    }
    let other = then.select(2).unwrap();
    let same = then.clone();
    assert_eq!(on(&then, "GET k"), bulk("before"));
    assert_eq!(on(&other, "GET k"), bulk("two"));
    assert_eq!(on(&then, "DBSIZE"), Reply::Int(1));
    assert_eq!(on(&then, "EXISTS l"), Reply::Int(0));
    for line in [
        "SET k v",
        "DEL k",
        "INCR n",
        "LPOP l",
        "FLUSHALL",
        "EVAL return(redis.call('SET','k','v')) 0",
    ] {
        let refused = match try_on(&then, line) {
            Err(error) => error.kind() == ErrorKind::ReadOnly,
            Ok(Reply::Error(text)) => text.contains("takes no writes"),
            Ok(_) => false,
        };
        assert!(refused, "{line}");
    }
    let mut batch = then.batch();
    batch.command(&[b"SET", b"k", b"v"]).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(run(&second, "GET k"), bulk("again"));
    drop((then, other));
    assert_eq!(on(&same, "GET k"), bulk("before"), "the last handle keeps it");
    // Several threads may read one.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(on(&same, "GET k"), bulk("before"));
                }
            });
        }
    });
}

fn keys(store: &SharedStore, range: &KeyRange) -> Vec<KeyEntry> {
    let mut walk = store.iter(range.clone()).unwrap();
    let mut found = Vec::new();
    while let Some(entry) = walk.next().unwrap() {
        found.push(entry);
    }
    assert_eq!(walk.next().unwrap(), None, "the end stays");
    found
}

#[test]
fn a_client_walks_over_keys_as_the_holder_does() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    for n in 0..3000 {
        run(&first, &format!("SET key:{n:05} {n}"));
    }
    for line in ["HSET key:00007:h f v", "RPUSH l a", "SADD key:s m", "ZADD z 1 m"] {
        run(&first, line);
    }
    run(&first, &format!("SET long {}", "x".repeat(300_000)));
    let some = |text: &str| Some(text.as_bytes().to_vec());
    let all = KeyRange::default;
    let ranges = [
        all(),
        KeyRange { reverse: true, values: true, ..all() },
        KeyRange { lo: some("key:00100"), hi: some("key:01900"), ..all() },
        KeyRange { lo: some("key:00100"), hi: some("l"), reverse: true, ..all() },
        KeyRange { prefix: some("key:02"), values: true, ..all() },
        KeyRange { kind: Some(Type::Hash), ..all() },
        KeyRange { lo: some("zz"), ..all() },
        KeyRange { hi: some(""), ..all() },
    ];
    for range in &ranges {
        assert!(keys(&first, range) == keys(&second, range), "{range:?}");
    }
    assert_eq!(keys(&second, &all()).len(), 3005);
    // Pieces are as long as asked, whatever the holder sends.
    let mut walk = second.iter(all()).unwrap();
    assert_eq!(walk.next_chunk(1000, usize::MAX).unwrap().len(), 1000);
    assert_eq!(walk.next_chunk(5000, 90).unwrap().len(), 10, "nine bytes each");
    assert_eq!(walk.next_chunk(5000, usize::MAX).unwrap().len(), 1995);
    assert!(walk.next_chunk(1, 1).unwrap().is_empty());
}

#[test]
fn an_iterator_keeps_its_moment_and_outlives_the_handle_that_it_came_from() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    run(&first, "MSET a 1 b 2 c 3");
    let names = |entries: Vec<KeyEntry>| {
        entries.iter().map(|entry| String::from_utf8_lossy(&entry.key).into_owned()).collect()
    };
    let rest = |walk: &mut lsmkv::SharedIter| -> String {
        let names: Vec<String> = names(walk.next_chunk(100, usize::MAX).unwrap());
        names.join(" ")
    };
    let mut live = second.iter(KeyRange::default()).unwrap();
    let then = second.snapshot().unwrap();
    run(&first, "DEL b");
    run(&first, "SET d 4");
    assert_eq!(rest(&mut live), "a b c");
    let mut past = then.iter(KeyRange::default()).unwrap();
    drop(then);
    let transaction = second.begin().unwrap();
    on(&transaction, "SET aa 1");
    on(&transaction, "DEL c");
    let mut pending = transaction.iter(KeyRange::default()).unwrap();
    on(&transaction, "SET ab 1");
    transaction.commit().unwrap();
    drop(transaction);
    run(&first, "FLUSHALL");
    assert_eq!(rest(&mut past), "a b c");
    assert_eq!(rest(&mut pending), "a aa d");
    // The databases of a view are those of its handles.
    run(&second.select(5).unwrap(), "SET five 5");
    let then = second.snapshot().unwrap();
    let five = then.select(5).unwrap();
    assert_eq!(rest(&mut five.iter(KeyRange::default()).unwrap()), "five");
    assert_eq!(rest(&mut then.iter(KeyRange::default()).unwrap()), "");
    // Closing the store ends iterators; they are still dropped at leisure.
    let mut late = second.iter(KeyRange::default()).unwrap();
    second.close().unwrap();
    assert_eq!(late.next().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(try_on(&then, "GET k").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_ticket_is_durable_at_the_holder_and_at_whoever_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { sync: lsmkv::SyncMode::Off, ..Options::default() };
    let shared = || SharedStore::open(dir.path(), &options).unwrap();
    let (first, second) = (shared(), shared());
    let ticket = |store: &SharedStore, key: &str| {
        let transaction = store.begin().unwrap();
        on(&transaction, &format!("SET {key} v"));
        transaction.commit_async().unwrap()
    };
    let mine = ticket(&second, "a");
    assert!(!second.wait(mine, Some(Duration::ZERO)).unwrap(), "it only asks");
    assert!(second.wait(mine, None).unwrap());
    assert!(first.wait(mine, Some(Duration::ZERO)).unwrap());
    let mut batch = second.batch();
    batch.command(&[b"SET", b"b", b"v"]).unwrap();
    let batched = batch.commit_async().unwrap();
    assert!(batched > mine, "later tickets are larger");
    let last = ticket(&second, "c");
    assert!(second.wait(last, Some(Duration::from_secs(60))).unwrap());
    assert!(second.wait(batched, Some(Duration::ZERO)).unwrap(), "a later one covers it");
    let nothing = second.begin().unwrap().commit_async().unwrap();
    assert!(second.wait(nothing, Some(Duration::ZERO)).unwrap());
    let none = lsmkv::Ticket::from_number(u64::MAX >> 2);
    assert_eq!(
        second.wait(none, None).unwrap_err().kind(),
        first.wait(none, None).unwrap_err().kind()
    );
    // More of them wait than the holder has threads for it.
    std::thread::scope(|scope| {
        for n in 0..100 {
            let (second, ticket) = (&second, &ticket);
            scope.spawn(move || {
                let mine = ticket(second, &format!("n{n}"));
                assert!(second.wait(mine, Some(Duration::from_secs(60))).unwrap());
            });
        }
    });
    let pending = ticket(&second, "d");
    first.close().unwrap();
    assert!(second.wait(pending, Some(Duration::ZERO)).unwrap());
    assert!(second.is_holder());
    assert_eq!(run(&second, "EXISTS a b c d n7 n99"), Reply::Int(6));
    let next = ticket(&second, "e");
    assert!(next > pending && second.wait(next, None).unwrap());
}
