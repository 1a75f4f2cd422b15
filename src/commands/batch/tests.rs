use super::*;
use crate::options::Options;
use crate::types::ExpireIf;

fn db() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.err().unwrap().kind()
}

fn text(db: &Db, key: &[u8]) -> Option<String> {
    db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn operations_run_at_the_commit_over_what_is_there_then() {
    let db = db();
    let mut batch = db.batch();
    batch.command(&[b"incr", b"n"]).unwrap();
    batch.command(&[b"RPUSH", b"l", b"x"]).unwrap();
    batch.put_with_ttl(b"t", b"v", Duration::from_micros(10_000_100)).unwrap();
    batch.put(b"p", b"v").unwrap();
    batch.expire(b"p", Duration::from_secs(100)).unwrap();
    batch.persist(b"q").unwrap();
    batch.delete(b"gone").unwrap();
    db.set(b"n", b"41").unwrap();
    db.set(b"gone", b"v").unwrap();
    db.set(b"q", b"v").unwrap();
    db.expire(b"q", 100, ExpireIf::ALWAYS).unwrap();
    assert_eq!(batch.len(), 7);
    batch.commit().unwrap();
    assert_eq!(text(&db, b"n"), Some("42".to_owned()));
    assert_eq!(db.keys(b"*").unwrap(), ["l", "n", "p", "q", "t"]);
    assert!((1..=10_001).contains(&db.pttl(b"t").unwrap()));
    assert!(db.ttl(b"p").unwrap() > 0);
    assert_eq!(db.ttl(b"q").unwrap(), -1);
}

#[test]
fn an_operation_that_fails_is_named_and_nothing_is_changed() {
    let db = db();
    db.set(b"s", b"text").unwrap();
    let mut batch = db.batch();
    batch.put(b"a", b"1").unwrap();
    batch.command(&[b"FLUSHALL"]).unwrap();
    batch.put(b"s", b"text").unwrap();
    batch.command(&[b"LPUSH", b"s", b"x"]).unwrap();
    let error = batch.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType);
    assert!(error.message().starts_with("operation 4 of 4, LPUSH: WRONGTYPE"), "{error:?}");
    assert_eq!(db.keys(b"*").unwrap(), ["s"]);
}

#[test]
fn what_does_not_belong_in_a_batch_is_refused_at_once() {
    let db = db();
    let mut batch = db.batch();
    assert_eq!(kind(batch.command(&[b"GET", b"k"])), ErrorKind::Unsupported);
    assert_eq!(kind(batch.command(&[b"NOSUCH", b"k"])), ErrorKind::Invalid);
    assert_eq!(kind(batch.command(&[b"MULTI"])), ErrorKind::Misuse);
    assert_eq!(kind(batch.command(&[b"SET", b"k"])), ErrorKind::Syntax);
    assert_eq!(kind(batch.command(&[])), ErrorKind::Invalid);
    assert_eq!(kind(batch.put_with_ttl(b"k", b"v", Duration::ZERO)), ErrorKind::Invalid);
    let small = Options { max_key_bytes: 4, max_value_bytes: 8, ..Options::default() };
    let small = Db::open(":memory:", small).unwrap();
    assert_eq!(kind(small.batch().put(b"12345", b"v")), ErrorKind::TooLarge);
    assert_eq!(kind(small.batch().put(b"1234", b"123456789")), ErrorKind::TooLarge);
    assert!(batch.is_empty());
    batch.commit().unwrap();
}

#[test]
fn a_batch_is_used_once_unless_it_is_cleared() {
    let db = db();
    let mut batch = db.batch();
    batch.command(&[b"INCR", b"k"]).unwrap();
    batch.commit().unwrap();
    assert_eq!(kind(batch.commit()), ErrorKind::Misuse);
    assert_eq!(kind(batch.commit_async()), ErrorKind::Misuse);
    assert_eq!(kind(batch.put(b"k", b"v")), ErrorKind::Misuse);
    assert_eq!(text(&db, b"k"), Some("1".to_owned()));
    batch.clear();
    batch.command(&[b"INCR", b"k"]).unwrap();
    let ticket = batch.commit_async().unwrap();
    assert!(db.wait(ticket, None).unwrap());
    assert_eq!(text(&db, b"k"), Some("2".to_owned()));
}

#[test]
fn higher_priorities_go_first_and_the_last_to_run_wins() {
    let db = db();
    let mut batch = db.batch();
    for (priority, value) in
        [(0, b"c"), (i32::MIN, b"f"), (7, b"a"), (0, b"d"), (7, b"b"), (-1, b"e")]
    {
        batch.priority(priority);
        batch.command(&[b"APPEND", b"order", value]).unwrap();
        batch.put(b"last", value).unwrap();
    }
    batch.commit().unwrap();
    assert_eq!(text(&db, b"order"), Some("abcdef".to_owned()));
    assert_eq!(text(&db, b"last"), Some("f".to_owned()));
}

#[test]
fn strict_batches_fail_for_a_key_that_is_missing_when_it_is_its_turn() {
    let db = db();
    db.set(b"here", b"v").unwrap();
    let missing: [&[&[u8]]; 4] = [
        &[b"EXPIRE", b"no", b"10"],
        &[b"PERSIST", b"no"],
        &[b"DEL", b"here", b"no"],
        &[b"PEXPIREAT", b"no", b"1"],
    ];
    for operation in missing {
        for strict in [false, true] {
            let mut batch = if strict { db.batch().strict() } else { db.batch() };
            batch.put(b"new", b"v").unwrap();
            batch.put(b"here", b"v").unwrap();
            batch.command(operation).unwrap();
            let result = batch.commit();
            assert_eq!(result.is_err(), strict, "{operation:?}");
            assert_eq!(db.exists(&[b"new"]).unwrap(), i64::from(!strict));
            db.del(&[b"new"]).unwrap();
            db.set(b"here", b"v").unwrap();
        }
    }
    let mut batch = db.batch().strict();
    batch.put(b"made", b"v").unwrap();
    // The key has no expiry to remove, but it exists.
    batch.persist(b"made").unwrap();
    batch.command(&[b"PEXPIRE", b"here", b"10", b"XX"]).unwrap();
    batch.delete(b"made").unwrap();
    batch.commit().unwrap();
    let mut batch = db.batch().strict();
    batch.delete(b"here").unwrap();
    batch.delete(b"here").unwrap();
    assert_eq!(kind(batch.commit()), ErrorKind::NoSuchKey);
    assert_eq!(db.keys(b"*").unwrap(), ["here"]);
}

#[test]
fn a_batch_that_comes_too_late_can_be_committed_again() {
    let db = db();
    let mut batch = db.batch();
    batch.put(b"k", b"v").unwrap();
    let inside = db.write(&[b"k"], |_| Ok(batch.commit_timeout(Duration::from_millis(1))));
    assert_eq!(kind(inside.unwrap()), ErrorKind::Timeout);
    assert_eq!(text(&db, b"k"), None);
    batch.commit_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(text(&db, b"k"), Some("v".to_owned()));
}

#[test]
fn a_batch_of_a_transaction_is_part_of_it_and_one_of_a_snapshot_is_refused() {
    let db = db();
    let txn = db.begin().unwrap();
    let mut batch = txn.batch();
    batch.put(b"k", b"v").unwrap();
    batch.commit().unwrap();
    assert_eq!((text(&txn, b"k"), text(&db, b"k")), (Some("v".to_owned()), None));
    let mut failing = txn.batch();
    failing.put(b"k", b"w").unwrap();
    failing.command(&[b"INCR", b"k"]).unwrap();
    assert_eq!(kind(failing.commit()), ErrorKind::NotInteger);
    txn.commit().unwrap();
    assert_eq!(text(&db, b"k"), Some("v".to_owned()));
    let mut batch = db.snapshot().unwrap().batch();
    batch.put(b"k", b"x").unwrap();
    assert_eq!(kind(batch.commit()), ErrorKind::ReadOnly);
}
