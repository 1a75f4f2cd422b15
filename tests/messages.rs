//! Messages between handles of one process, through the public API of Rust.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "figures for people")]

#[path = "support/sessions.rs"]
mod sessions;

use std::time::{Duration, Instant};

use lsmkv::{Db, ErrorKind, Options, OutputLimits, Reply};
use sessions::{received, run, text};

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

#[test]
fn a_session_receives_what_it_has_subscribed_to() {
    let db = open();
    let (mut one, mut two) = (db.session(), db.session());
    assert_eq!(text(&run(&mut one, "SUBSCRIBE a b")), "subscribe a 1, subscribe b 2");
    assert_eq!(text(&run(&mut one, "PSUBSCRIBE a*")), "psubscribe a* 3");
    assert_eq!(text(&run(&mut two, "SSUBSCRIBE a")), "ssubscribe a 1");
    assert_eq!(db.publish(b"a", b"1").unwrap(), 2);
    assert_eq!(db.publish(b"ab", b"2").unwrap(), 1);
    assert_eq!(db.publish(b"c", b"3").unwrap(), 0);
    assert_eq!(run(&mut two, "SPUBLISH a 4"), Reply::Int(1));
    assert_eq!(received(&mut one), ["message a 1", "pmessage a* a 1", "pmessage a* ab 2"]);
    assert_eq!(received(&mut two), ["smessage a 4"]);
    assert_eq!(one.subscriptions(), [2, 1, 0]);
    assert_eq!(text(&run(&mut one, "UNSUBSCRIBE a")), "unsubscribe a 2");
    assert_eq!(text(&run(&mut one, "UNSUBSCRIBE")), "unsubscribe b 1");
    assert_eq!(text(&run(&mut one, "UNSUBSCRIBE")), "unsubscribe nil 1");
    assert_eq!(text(&run(&mut one, "SUNSUBSCRIBE")), "sunsubscribe nil 0");
    assert_eq!(run(&mut one, "RESET"), Reply::Status("RESET"));
    assert_eq!(db.publish(b"a", b"5").unwrap(), 0);
    drop(two);
    assert_eq!(db.spublish(b"a", b"6").unwrap(), 0);
}

#[test]
fn key_events_are_on_from_the_open_if_an_option_says_so() {
    let mut options = Options::default();
    let refused = options.set("notify_keyspace_events", "KQ").unwrap_err();
    assert!(refused.message().contains("letters of KEg"), "{refused}");
    options.set("notify_keyspace_events", "K$").unwrap();
    let db = Db::open(":memory:", options).unwrap();
    let mut session = db.session();
    run(&mut session, "PSUBSCRIBE __key*");
    db.set(b"k", b"v").unwrap();
    db.lpush(b"l", &[&b"v"[..]]).unwrap();
    assert_eq!(received(&mut session), ["pmessage __key* __keyspace@0__:k set"]);
}

#[test]
fn pubsub_tells_who_listens() {
    let db = open();
    let (mut one, mut two) = (db.session(), db.session());
    run(&mut one, "SUBSCRIBE news");
    run(&mut two, "SUBSCRIBE news old");
    run(&mut two, "PSUBSCRIBE n* o*");
    run(&mut two, "SSUBSCRIBE shard");
    assert_eq!(text(&run(&mut one, "PUBSUB CHANNELS n*")), "news");
    assert_eq!(text(&run(&mut one, "PUBSUB NUMSUB news old none")), "news, 2, old, 1, none, 0");
    assert_eq!(run(&mut one, "PUBSUB NUMPAT"), Reply::Int(2));
    assert_eq!(text(&run(&mut one, "PUBSUB SHARDCHANNELS")), "shard");
    assert_eq!(text(&run(&mut one, "PUBSUB SHARDNUMSUB shard x")), "shard, 1, x, 0");
    let unknown = "ERR unknown subcommand 'WHO'. Try PUBSUB HELP.";
    assert_eq!(run(&mut one, "PUBSUB WHO"), Reply::Error(unknown.into()));
}

#[test]
fn messages_of_a_transaction_follow_its_commit() {
    let db = open();
    let mut listener = db.session();
    run(&mut listener, "SUBSCRIBE c");
    let transaction = db.begin().unwrap();
    transaction.set(b"k", b"v").unwrap();
    assert_eq!(transaction.publish(b"c", b"1").unwrap(), 1);
    assert_eq!(received(&mut listener), [""; 0]);
    transaction.commit().unwrap();
    assert_eq!(received(&mut listener), ["message c 1"]);

    let transaction = db.begin().unwrap();
    transaction.publish(b"c", b"never").unwrap();
    transaction.rollback().unwrap();

    let mut session = db.session();
    for line in ["MULTI", "PUBLISH c 2", "INCR k", "PUBLISH c 3"] {
        run(&mut session, line);
    }
    assert_eq!(received(&mut listener), [""; 0]);
    let Reply::Array(replies) = run(&mut session, "EXEC") else { panic!() };
    assert_eq!((&replies[0], &replies[2]), (&Reply::Int(1), &Reply::Int(1)));
    assert_eq!(received(&mut listener), ["message c 2", "message c 3"]);

    let mut batch = db.batch();
    batch.command(&[b"PUBLISH", b"c", b"4"]).unwrap();
    batch.put(b"a", b"b").unwrap();
    batch.commit().unwrap();
    let mut failing = db.batch();
    failing.command(&[b"PUBLISH", b"c", b"never"]).unwrap();
    failing.command(&[b"INCR", b"a"]).unwrap();
    failing.commit().unwrap_err();
    assert_eq!(received(&mut listener), ["message c 4"]);
}

#[test]
fn a_wait_ends_with_a_message_at_its_deadline_or_when_the_store_closes() {
    let db = open();
    let mut session = db.session();
    run(&mut session, "SUBSCRIBE c");
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(session.wait(Some(soon)).unwrap(), None);
    assert!(Instant::now() >= soon);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(text(&session.wait(None).unwrap().unwrap()), "message c hello");
            assert_eq!(session.wait(None).unwrap_err().kind(), ErrorKind::Closed);
        });
        while db.publish(b"c", b"hello").unwrap() == 0 {}
        std::thread::sleep(Duration::from_millis(20));
        db.close().unwrap();
    });
}

#[test]
fn a_slow_subscriber_is_cut_off_and_may_subscribe_again() {
    let db = open();
    db.set_message_limits(OutputLimits { hard_bytes: 1 << 20, soft_bytes: 0, soft_seconds: 0 });
    let mut slow = db.session();
    run(&mut slow, "SUBSCRIBE c");
    let message = vec![b'x'; 64 << 10];
    let reached = (0..100).take_while(|_| db.publish(b"c", &message).unwrap() == 1).count();
    assert_eq!(reached, 16, "the sixteenth does not fit any more");
    let error = slow.wait(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("cut off"), "{error}");
    assert!(slow.held_bytes() < 4096, "{}", slow.held_bytes());
    assert_eq!(slow.subscriptions(), [0, 0, 0]);
    run(&mut slow, "SUBSCRIBE c");
    assert_eq!(db.publish(b"c", b"again").unwrap(), 1);
    assert_eq!(received(&mut slow), ["message c again"]);
}

#[test]
fn many_channels_cost_what_they_say_and_give_it_back() {
    let db = open();
    let mut session = db.session();
    for n in 0..20_000 {
        run(&mut session, &format!("SUBSCRIBE channel:{n}"));
    }
    assert_eq!(db.channel_counts(), [20_000, 0, 0]);
    assert!(session.held_bytes() > 20_000 * 100, "{}", session.held_bytes());
    run(&mut session, "UNSUBSCRIBE");
    assert_eq!((db.channel_counts(), session.held_bytes()), ([0; 3], 0));
}

/// All subscribers see the same messages in the same order, whoever publishes.
#[test]
fn every_subscriber_sees_one_order() {
    let db = open();
    let mut sessions: Vec<_> = (0..3).map(|_| db.session()).collect();
    for session in &mut sessions {
        run(session, "SUBSCRIBE c");
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..500 {
                    db.publish(b"c", format!("{thread}-{n}").as_bytes()).unwrap();
                }
            });
        }
    });
    let all: Vec<_> = sessions.iter_mut().map(received).collect();
    assert_eq!(all[0].len(), 2000);
    assert!(all[0] == all[1] && all[1] == all[2]);
}

/// The time from a push to the return of a pop that waits for it in another thread.
#[test]
fn a_pop_wakes_soon() {
    const ROUNDS: usize = 500;
    let db = open();
    let begun = Instant::now();
    let (pushed, woken) = std::thread::scope(|scope| {
        let popper = scope.spawn(|| {
            let pop = |_| {
                db.command(&[b"BLPOP", b"k", b"0"]).unwrap();
                begun.elapsed()
            };
            (0..ROUNDS).map(pop).collect::<Vec<_>>()
        });
        let push = |_| {
            while db.waiting_calls() == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_micros(200));
            let at = begun.elapsed();
            db.rpush(b"k", &[b"x"]).unwrap();
            at
        };
        ((0..ROUNDS).map(push).collect::<Vec<_>>(), popper.join().unwrap())
    });
    let mut took: Vec<Duration> =
        woken.iter().zip(&pushed).map(|(woken, at)| *woken - *at).collect();
    took.sort();
    println!("median {:?}, 99% {:?}", took[ROUNDS / 2], took[ROUNDS * 99 / 100]);
    // On a quiet machine it is 20 us; beside other tests a thread waits for its turn.
    assert!(took[ROUNDS / 2] < Duration::from_millis(20), "{:?}", took[ROUNDS / 2]);
}
