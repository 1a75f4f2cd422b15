use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::options::Options;

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

/// A pop that waits, and where its reply arrives.
struct Waits {
    pop: WaitingPop,
    replies: Receiver<Result<Reply>>,
}

fn wait(db: &Db, line: &str) -> Option<Waits> {
    let pop = BlockingPop::parse(&words(line)).unwrap();
    let (sender, replies) = channel();
    let sender = Mutex::new(sender);
    match db.pop_or_wait(pop, move |reply| drop(sender.lock().send(reply))).unwrap() {
        PopOutcome::Ready(_) => None,
        PopOutcome::Waiting(pop) => Some(Waits { pop, replies }),
    }
}

impl Waits {
    /// The popped element, if the pop was served.
    fn element(&self) -> Option<String> {
        match self.replies.try_recv().ok()?.unwrap() {
            Reply::Array(items) => match items.get(1) {
                Some(Reply::Bulk(element)) => Some(String::from_utf8_lossy(element).into_owned()),
                other => panic!("{other:?}"),
            },
            Reply::Bulk(element) => Some(String::from_utf8_lossy(&element).into_owned()),
            other => panic!("{other:?}"),
        }
    }
}

fn run(db: &Db, line: &str) -> Reply {
    db.command(&words(line)).unwrap()
}

#[test]
fn who_came_first_is_served_first_and_each_once() {
    let db = open();
    let waits: Vec<_> = (0..3).map(|_| wait(&db, "BLPOP k other 0").unwrap()).collect();
    assert_eq!(db.waiting_calls(), 3);
    run(&db, "RPUSH k a b");
    assert_eq!(
        waits.iter().map(Waits::element).collect::<Vec<_>>(),
        [Some("a".into()), Some("b".into()), None]
    );
    run(&db, "RPUSH other c d");
    assert_eq!(waits[2].element().as_deref(), Some("c"));
    assert_eq!((db.waiting_calls(), db.llen(b"other").unwrap()), (0, 1));
}

#[test]
fn what_is_there_is_taken_without_waiting() {
    let db = open();
    run(&db, "RPUSH k a");
    assert!(wait(&db, "BLPOP none k 0").is_none());
    assert_eq!((db.waiting_calls(), db.exists(&[b"k"]).unwrap()), (0, 0));
}

#[test]
fn a_move_serves_those_who_wait_for_its_destination() {
    let db = open();
    let last = wait(&db, "BLPOP b 0").unwrap();
    let moves = wait(&db, "BLMOVE a b LEFT RIGHT 0").unwrap();
    run(&db, "RPUSH a x");
    assert_eq!((moves.element().as_deref(), last.element().as_deref()), (Some("x"), Some("x")));
    assert_eq!(db.exists(&[b"a", b"b"]).unwrap(), 0);
}

#[test]
fn types_and_databases_are_told_apart() {
    let db = open();
    let list = wait(&db, "BLPOP k 0").unwrap();
    let elsewhere = wait(&db.select(1).unwrap(), "BZPOPMIN k 0").unwrap();
    let sorted = wait(&db, "BZPOPMIN k 0").unwrap();
    run(&db, "ZADD k 1 m");
    assert_eq!(sorted.element().as_deref(), Some("m"));
    run(&db, "SET k text");
    assert!(list.element().is_none() && elsewhere.element().is_none());
    assert_eq!(db.waiting_calls(), 2);
}

#[test]
fn who_gives_up_is_not_served() {
    let db = open();
    let mut waits = wait(&db, "BLPOP k 0").unwrap();
    assert!(waits.pop.cancel() && !waits.pop.cancel());
    run(&db, "RPUSH k a");
    assert!(waits.element().is_none());
    assert_eq!((db.waiting_calls(), db.llen(b"k").unwrap()), (0, 1));
    drop(wait(&db, "BLPOP none 0"));
    assert_eq!(db.waiting_calls(), 0);
}

#[test]
fn a_closed_store_wakes_those_who_wait_and_takes_nothing_for_them() {
    let db = open();
    let waits = wait(&db, "BLPOP k 0").unwrap();
    db.store().hub().close();
    assert_eq!(waits.replies.recv().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    run(&db, "RPUSH k a");
    assert_eq!(db.llen(b"k").unwrap(), 1);
    let late = wait(&db, "BLPOP none 0").unwrap();
    assert_eq!(late.replies.recv().unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

/// Everything that can make a list or a sorted set, on every kind of handle.
#[test]
fn whatever_makes_a_key_wakes_those_who_wait_for_it() {
    let prepare = ["RPUSH other 1", "ZADD scored 1 m", "SADD set m"];
    for line in [
        "LPUSH k 1",
        "LMOVE other k LEFT LEFT",
        "RPOPLPUSH other k",
        "RENAME other k",
        "RENAMENX other k",
        "COPY other k",
        "SORT other STORE k",
        "LINSERT k BEFORE x y",
    ] {
        for how in 0..5 {
            let db = open();
            prepare.iter().for_each(|line| drop(run(&db, line)));
            let waits = wait(&db, "BRPOP k 0").unwrap();
            match how {
                0 => drop(run(&db, line)),
                1 => {
                    let transaction = db.begin().unwrap();
                    run(&transaction, line);
                    assert!(waits.element().is_none(), "{line} before the commit");
                    transaction.commit().unwrap();
                }
                2 => {
                    let mut batch = db.batch();
                    batch.command(&words(line)).unwrap();
                    batch.commit().unwrap();
                }
                3 => {
                    let mut session = db.session();
                    for line in ["MULTI", line, "EXEC"] {
                        session.command(&words(line)).unwrap();
                    }
                }
                _ => drop(db.pipeline(&[words(line)]).unwrap()),
            }
            let expected = (!line.starts_with("LINSERT")).then_some("1");
            assert_eq!(waits.element().as_deref(), expected, "{line}, {how}");
        }
    }
    for line in
        ["ZADD k 1 m", "ZUNIONSTORE k 1 scored", "ZRANGESTORE k scored 0 -1", "ZINCRBY k 2 m"]
    {
        let db = open();
        prepare.iter().for_each(|line| drop(run(&db, line)));
        let waits = wait(&db, "BZPOPMIN k 0").unwrap();
        run(&db, line);
        assert_eq!(waits.element().as_deref(), Some("m"), "{line}");
    }
    let db = open();
    let waits = wait(&db, "BLPOP k 0").unwrap();
    run(&db.select(1).unwrap(), "RPUSH k 1");
    assert!(waits.element().is_none());
    run(&db, "SWAPDB 0 1");
    assert_eq!(waits.element().as_deref(), Some("1"));
}

#[test]
fn in_a_transaction_nothing_waits() {
    let db = open();
    let mut session = db.session();
    for line in ["MULTI", "BLPOP k 0", "BLMOVE k l LEFT LEFT 0", "RPUSH k a", "BRPOP k 0"] {
        session.command(&words(line)).unwrap();
    }
    let bulk = |text: &'static str| Reply::Bulk(text.into());
    let popped = Reply::Array(vec![bulk("k"), bulk("a")]);
    let expected = vec![Reply::NilArray, Reply::Nil, Reply::Int(1), popped];
    assert_eq!(session.command(&[b"EXEC"]).unwrap(), Reply::Array(expected));
    let transaction = db.begin().unwrap();
    assert_eq!(run(&transaction, "BLPOP k 0"), Reply::NilArray);
}

#[test]
fn a_call_waits_in_its_thread_as_long_as_it_says() {
    let db = open();
    let begun = Instant::now();
    assert_eq!(run(&db, "BLPOP k 0.05"), Reply::NilArray);
    assert!(begun.elapsed().as_millis() >= 50);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| run(&db, "BLMPOP 0 1 k LEFT COUNT 2"));
        while db.waiting_calls() == 0 {
            std::thread::yield_now();
        }
        run(&db, "RPUSH k a b c");
        let Reply::Array(popped) = waits.join().unwrap() else { panic!() };
        assert_eq!(popped[1], Reply::list(["a".into(), "b".into()]));
    });
    assert_eq!(
        run(&db, "BLPOP k x"),
        Reply::Error("ERR timeout is not a float or out of range".into())
    );
    run(&db, "SET s 1");
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(run(&db, "BLPOP s 0"), Reply::Error(wrong.into()));
    assert_eq!(db.waiting_calls(), 0);
}

/// Many threads push and pop: every element arrives once, and nobody waits for ever.
#[test]
fn no_element_and_no_wake_up_is_lost() {
    const EACH: usize = 300;
    let db = open();
    let popped: Vec<String> = std::thread::scope(|scope| {
        let poppers: Vec<_> = (0..4)
            .map(|n| {
                let db = &db;
                scope.spawn(move || {
                    let line =
                        ["BLPOP a b 20", "BRPOP b a 20", "BLMPOP 20 2 a b LEFT", "BLPOP a b 20"][n];
                    let pop = || match run(db, line) {
                        Reply::Array(items) => match &items[1] {
                            Reply::Bulk(element) => String::from_utf8_lossy(element).into_owned(),
                            Reply::Array(all) => match &all[0] {
                                Reply::Bulk(element) => {
                                    String::from_utf8_lossy(element).into_owned()
                                }
                                other => panic!("{other:?}"),
                            },
                            other => panic!("{other:?}"),
                        },
                        other => panic!("{other:?}"),
                    };
                    (0..EACH).map(|_| pop()).collect::<Vec<_>>()
                })
            })
            .collect();
        for pusher in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = if n % 2 == 0 { "a" } else { "b" };
                    run(db, &format!("RPUSH {key} {pusher}-{n}"));
                }
            });
        }
        poppers.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut distinct = popped.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((popped.len(), distinct.len()), (4 * EACH, 4 * EACH));
    assert_eq!((db.waiting_calls(), db.dbsize().unwrap()), (0, 0));
}
