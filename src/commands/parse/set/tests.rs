use crate::commands::reply::Reply;
use crate::options::Options;
use crate::txn::Db;

fn run(db: &Db, command: &str) -> Reply {
    db.command(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>()).unwrap()
}

fn store() -> Db {
    let db = Db::open(":memory:", Options::default()).unwrap();
    assert_eq!(run(&db, "SADD s 1 2 3"), Reply::Int(3));
    assert_eq!(run(&db, "SET string x"), Reply::OK);
    db
}

/// Expected replies come from redis-server 7.0.15.
#[test]
fn mistakes_are_answered_in_the_words_of_the_reference() {
    let db = store();
    let range = "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807";
    let positive = "ERR value is out of range, must be positive";
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let numkeys = "ERR numkeys should be greater than 0";
    for (command, error) in [
        ("SRANDMEMBER string x", "ERR value is not an integer or out of range"),
        ("SRANDMEMBER s -9223372036854775808", range),
        ("SRANDMEMBER s 1 2", "ERR syntax error"),
        ("SRANDMEMBER string 0", wrong_type),
        ("SPOP string -1", positive),
        ("SPOP s x", positive),
        ("SPOP s 99999999999999999999", positive),
        ("SPOP s 1 2", "ERR syntax error"),
        ("SPOP string 0", wrong_type),
        ("SINTERCARD 0 s", numkeys),
        ("SINTERCARD x s", numkeys),
        ("SINTERCARD 9223372036854775808 s", numkeys),
        ("SINTERCARD 2 s", "ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 1 s LIMIT", "ERR syntax error"),
        ("SINTERCARD 1 s LIMIT x", "ERR LIMIT can't be negative"),
        ("SINTERCARD 1 string LIMIT -1", "ERR LIMIT can't be negative"),
        ("SINTERCARD 1 s foo", "ERR syntax error"),
        ("SINTERCARD 2 none string", wrong_type),
        ("SINTERSTORE d s string", wrong_type),
        ("SMISMEMBER string a", wrong_type),
    ] {
        assert_eq!(run(&db, command), Reply::Error(error.to_owned()), "{command}");
    }
    assert_eq!(run(&db, "SCARD s"), Reply::Int(3));
}

#[test]
fn replies_have_the_kinds_of_the_reference() {
    let db = store();
    assert!(matches!(run(&db, "SMEMBERS s"), Reply::Set(members) if members.len() == 3));
    assert!(matches!(run(&db, "SUNION s none"), Reply::Set(members) if members.len() == 3));
    assert_eq!(run(&db, "SINTER s none"), Reply::Set(Vec::new()));
    assert_eq!(run(&db, "SINTERCARD 1 s LIMIT 1 limit 2"), Reply::Int(2));
    assert_eq!(run(&db, "SINTERCARD 1 s LIMIT 0"), Reply::Int(3));
    assert_eq!(run(&db, "SRANDMEMBER none"), Reply::Nil);
    assert_eq!(run(&db, "SRANDMEMBER none 0"), Reply::Array(Vec::new()));
    assert!(matches!(run(&db, "SRANDMEMBER s -5"), Reply::Array(members) if members.len() == 5));
    assert!(matches!(run(&db, "SRANDMEMBER s"), Reply::Bulk(_)));
    assert_eq!(run(&db, "SPOP none"), Reply::Nil);
    assert_eq!(run(&db, "SPOP none 1"), Reply::Set(Vec::new()));
    assert_eq!(run(&db, "SPOP s 0"), Reply::Set(Vec::new()));
    assert!(matches!(run(&db, "SPOP s 9"), Reply::Set(members) if members.len() == 3));
    assert_eq!(run(&db, "EXISTS s"), Reply::Int(0));
    let zeros = vec![Reply::Int(0), Reply::Int(0)];
    assert_eq!(run(&db, "SMISMEMBER none a b"), Reply::Array(zeros));
}
