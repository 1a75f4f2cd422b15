use std::sync::mpsc::channel;
use std::time::Instant;

use super::*;
use crate::options::Options;
use crate::types::list::Side;
use crate::types::zset::End;

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

const SOON: Option<Duration> = Some(Duration::from_millis(1));

#[test]
fn pops_of_lists_return_what_is_there_and_nothing_after_their_time() {
    let db = open();
    let mut session = db.session();
    db.rpush(b"l", &[b"a", b"b", b"c", b"d", b"e", b"f"]).unwrap();
    let keys: [&[u8]; 2] = [b"none", b"l"];
    assert_eq!(session.blpop(&keys, SOON).unwrap(), Some((bytes("l"), bytes("a"))));
    assert_eq!(session.brpop(&keys, SOON).unwrap(), Some((bytes("l"), bytes("f"))));
    let moved = session.blmove(b"l", b"m", Side::Left, Side::Right, SOON);
    assert_eq!(moved.unwrap(), Some(bytes("b")));
    assert_eq!(session.brpoplpush(b"l", b"m", SOON).unwrap(), Some(bytes("e")));
    let popped = session.blmpop(&keys, Side::Right, 5, SOON).unwrap();
    assert_eq!(popped, Some((bytes("l"), vec![bytes("d"), bytes("c")])));
    assert_eq!(db.lrange(b"m", 0, -1).unwrap(), [bytes("e"), bytes("b")]);
    assert_eq!(session.blpop(&keys, SOON).unwrap(), None);
    assert_eq!(session.brpop(&keys, SOON).unwrap(), None);
    assert_eq!(session.blmove(b"l", b"m", Side::Left, Side::Left, SOON).unwrap(), None);
    assert_eq!(session.brpoplpush(b"l", b"m", SOON).unwrap(), None);
    assert_eq!(session.blmpop(&keys, Side::Left, 1, SOON).unwrap(), None);
}

#[test]
fn pops_of_sorted_sets_return_what_is_there_and_nothing_after_their_time() {
    let db = open();
    let mut session = db.session();
    for (score, member) in [(1.0, b"a"), (2.0, b"b"), (3.0, b"c"), (4.5, b"d")] {
        assert!(Commands::zadd(&db, b"z", score, member).unwrap());
    }
    let keys: [&[u8]; 2] = [b"none", b"z"];
    assert_eq!(session.bzpopmin(&keys, SOON).unwrap(), Some((bytes("z"), bytes("a"), 1.0)));
    assert_eq!(session.bzpopmax(&keys, SOON).unwrap(), Some((bytes("z"), bytes("d"), 4.5)));
    let popped = session.bzmpop(&keys, End::Max, 9, SOON).unwrap();
    assert_eq!(popped, Some((bytes("z"), vec![(bytes("c"), 3.0), (bytes("b"), 2.0)])));
    assert_eq!(session.bzpopmin(&keys, SOON).unwrap(), None);
    assert_eq!(session.bzpopmax(&keys, SOON).unwrap(), None);
    assert_eq!(session.bzmpop(&keys, End::Min, 1, SOON).unwrap(), None);
}

#[test]
fn a_pop_waits_for_a_push_and_zero_is_not_for_ever() {
    let db = open();
    let (sender, receiver) = channel();
    let waiting = db.clone();
    let popper = std::thread::spawn(move || {
        let mut session = waiting.session();
        sender.send(()).unwrap();
        session.blpop(&[b"l"], None).unwrap()
    });
    receiver.recv().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    db.rpush(b"l", &[b"late"]).unwrap();
    assert_eq!(popper.join().unwrap(), Some((bytes("l"), bytes("late"))));
    let begun = Instant::now();
    assert_eq!(db.session().blpop(&[b"l"], Some(Duration::ZERO)).unwrap(), None);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!((seconds(None), seconds(Some(Duration::ZERO))), ("0".into(), "0.001".into()));
}

#[test]
fn errors_have_the_kinds_of_methods() {
    let db = open();
    let mut session = db.session();
    db.set(b"s", b"text").unwrap();
    assert_eq!(session.incr(b"s").unwrap_err().kind(), ErrorKind::NotInteger);
    assert_eq!(session.blpop(&[b"s"], SOON).unwrap_err().kind(), ErrorKind::WrongType);
    assert_eq!(session.blpop(&[], SOON).unwrap_err().kind(), ErrorKind::Syntax);
    assert_eq!(Commands::lrange(&db, b"s", 0, -1).unwrap_err().kind(), ErrorKind::WrongType);
    assert_eq!(db.call(&[b"NOSUCH"]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(db.call(&[b"MULTI"]).unwrap_err().kind(), ErrorKind::Misuse);
    session.command(&[b"MULTI"]).unwrap();
    let error = session.blpop(&[b"s"], SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("`command`"), "{error}");
    assert_eq!(session.command(&[b"EXEC"]).unwrap(), Reply::Array(Vec::new()));
}

#[test]
fn typed_calls_return_what_the_methods_of_the_store_return() {
    let db = open();
    let store: &dyn Commands = &db;
    store.mset(&[(b"a", b"1"), (b"b", b"2")]).unwrap();
    let keys: [&[u8]; 3] = [b"a", b"none", b"b"];
    assert_eq!(store.mget(&keys).unwrap(), db.mget(&keys).unwrap());
    assert_eq!(store.get(b"none").unwrap(), None);
    store.hset(b"h", &[(b"f", b"v"), (b"g", b"w")]).unwrap();
    assert_eq!(store.hgetall(b"h").unwrap(), db.hgetall(b"h").unwrap());
    store.zadd(b"z", 1.5, b"m").unwrap();
    assert_eq!(store.zmscore(b"z", &[b"m", b"none"]).unwrap(), [Some(1.5), None]);
    assert_eq!(store.zpopmin_count(b"z", 5).unwrap(), [(bytes("m"), 1.5)]);
    store.sadd(b"s", &[b"x", b"y"]).unwrap();
    assert_eq!(store.smismember(b"s", &[b"x", b"z"]).unwrap(), [true, false]);
    assert_eq!(store.incrbyfloat(b"a", 0.5).unwrap(), 1.5);
    assert_eq!(store.setbit(b"bits", 7, true).unwrap(), 0);
    assert!(store.expire(b"a", 100).unwrap());
}

/// Servers send numbers as text where they speak RESP2, and pairs in several ways.
#[test]
fn replies_of_other_servers_are_understood_or_refused() {
    let pair = |a: &str, score: f64| vec![Reply::Bulk(bytes(a)), Reply::Double(score)];
    let expected = vec![(bytes("a"), 1.0), (bytes("b"), 2.0)];
    for reply in [
        Reply::Array(vec![Reply::Array(pair("a", 1.0)), Reply::Array(pair("b", 2.0))]),
        Reply::Array([pair("a", 1.0), pair("b", 2.0)].concat()),
        Reply::Pairs(vec![
            (Reply::Bulk(bytes("a")), Reply::Bulk(bytes("1"))),
            (Reply::Bulk(bytes("b")), Reply::Bulk(bytes("2"))),
        ]),
    ] {
        assert_eq!(typed::<Vec<(Bytes, f64)>>(Ok(reply)).unwrap(), expected);
    }
    for odd in [Reply::Int(1), Reply::Error("ERR no".into()), Reply::Array(pair("a", 1.0))] {
        let error = typed::<Vec<Bytes>>(Ok(odd)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert!(typed::<()>(Ok(Reply::Error("ERR no".into()))).is_err());
    assert!(typed::<Reply>(Ok(Reply::Error("ERR no".into()))).is_err());
    assert!(typed::<i64>(Ok(Reply::Nil)).is_err());
}
