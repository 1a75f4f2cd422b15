use crate::commands::reply::Reply;
use crate::options::Options;
use crate::txn::Db;

fn run(db: &Db, command: &str) -> Reply {
    db.command(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>()).unwrap()
}

fn bulk(text: &'static str) -> Reply {
    Reply::Bulk(bytes::Bytes::from_static(text.as_bytes()))
}

fn store() -> Db {
    let db = Db::open(":memory:", Options::default()).unwrap();
    assert_eq!(run(&db, "HSET h f v n 10"), Reply::Int(2));
    assert_eq!(run(&db, "SET string x"), Reply::OK);
    db
}

/// Expected replies come from redis-server 7.0.15, those of HGETDEL from the documentation of 8.0.
#[test]
fn mistakes_are_answered_in_the_words_of_the_reference() {
    let db = store();
    db.hset(b"h", &[(b"infinite", b"inf")]).unwrap();
    let range = "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807";
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for (command, error) in [
        ("HRANDFIELD h x", "ERR value is not an integer or out of range"),
        ("HRANDFIELD h -9223372036854775808", range),
        ("HRANDFIELD h 4611686018427387904 WITHVALUES", "ERR value is out of range"),
        ("HRANDFIELD h -4611686018427387905 WITHVALUES", "ERR value is out of range"),
        ("HRANDFIELD h -4611686018427387905 WITHVALUE", "ERR syntax error"),
        ("HRANDFIELD h 1 WITHVALUES 3", "ERR syntax error"),
        ("HRANDFIELD h x WITHVALUE", "ERR value is not an integer or out of range"),
        ("HRANDFIELD string 0", wrong_type),
        ("HINCRBY string f x", "ERR value is not an integer or out of range"),
        ("HINCRBY string f 1", wrong_type),
        ("HINCRBYFLOAT string f x", "ERR value is not a valid float"),
        ("HINCRBYFLOAT string f 1e5000", "ERR value is not a valid float"),
        ("HINCRBYFLOAT string f -inf", "ERR value is NaN or Infinity"),
        ("HINCRBYFLOAT string f 1", wrong_type),
        ("HINCRBYFLOAT h f 1", "ERR hash value is not a float"),
        ("HINCRBYFLOAT h infinite 1", "ERR increment would produce NaN or Infinity"),
        ("HSET string a", "ERR wrong number of arguments for 'hset' command"),
        ("HSET string a 1 b", "ERR wrong number of arguments for 'hset' command"),
        ("HMSET h a 1 b", "ERR wrong number of arguments for 'hmset' command"),
        ("HSETNX string a b", wrong_type),
        ("HGETDEL string NO x f", wrong_type),
        ("HGETDEL h FIELDS 1", "ERR wrong number of arguments for 'hgetdel' command"),
        (
            "HGETDEL h 1 FIELDS f",
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ),
        ("HGETDEL h FIELDS 0 f", "ERR Number of fields must be a positive integer"),
        ("HGETDEL h FIELDS x f", "ERR Number of fields must be a positive integer"),
        (
            "HGETDEL h FIELDS 2 f",
            "ERR The `numfields` parameter must match the number of arguments",
        ),
        (
            "HGETDEL h FIELDS 1 f n",
            "ERR The `numfields` parameter must match the number of arguments",
        ),
    ] {
        assert_eq!(run(&db, command), Reply::Error(error.to_owned()), "{command}");
    }
    assert_eq!(run(&db, "HLEN h"), Reply::Int(3));
}

#[test]
fn replies_have_the_kinds_of_the_reference() {
    let db = store();
    let pairs = vec![(bulk("f"), bulk("v")), (bulk("n"), bulk("10"))];
    assert_eq!(run(&db, "HGETALL h"), Reply::Map(pairs.clone()));
    assert_eq!(run(&db, "HGETALL none"), Reply::Map(Vec::new()));
    assert_eq!(run(&db, "HRANDFIELD none"), Reply::Nil);
    assert_eq!(run(&db, "HRANDFIELD none 1"), Reply::Array(Vec::new()));
    assert_eq!(run(&db, "hrandfield h 2 withvalues"), Reply::Pairs(pairs));
    assert_eq!(run(&db, "HMSET h a 1"), Reply::OK);
    let values = vec![bulk("1"), Reply::Nil];
    assert_eq!(run(&db, "HGETDEL h fields 2 a b"), Reply::Array(values));
    assert_eq!(run(&db, "HGETDEL none FIELDS 1 a"), Reply::Array(vec![Reply::Nil]));
    assert_eq!(run(&db, "HEXISTS h f"), Reply::Int(1));
    assert_eq!(run(&db, "HKEYS h"), Reply::Array(vec![bulk("f"), bulk("n")]));
}
