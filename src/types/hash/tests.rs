use std::path::Path;
use std::sync::Arc;

use crate::engine::MemFs;
use crate::error::ErrorKind;
use crate::io::clock::RealClock;
use crate::options::Options;
use crate::txn::Db;
use crate::types::testing::{both, unpacked};

fn text(value: Option<bytes::Bytes>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn a_field_named_twice_counts_once_and_keeps_its_last_value() {
    for db in both() {
        assert_eq!(db.hset(b"h", &[(b"f", b"1"), (b"f", b"2"), (b"g", b"3")]).unwrap(), 2);
        assert_eq!(db.hlen(b"h").unwrap(), 2);
        assert_eq!(text(db.hget(b"h", b"f").unwrap()).as_deref(), Some("2"));
        assert_eq!(db.hset(b"h", &[(b"f", b"4"), (b"i", b"")]).unwrap(), 1);
        assert_eq!(db.hdel(b"h", &[b"f", b"f", b"none"]).unwrap(), 1);
        assert_eq!(db.hlen(b"h").unwrap(), 2);
    }
}

#[test]
fn a_hash_without_fields_does_not_exist() {
    for db in both() {
        db.hset(b"h", &[(b"f", b"1")]).unwrap();
        assert_eq!(db.hdel(b"h", &[b"f"]).unwrap(), 1);
        assert_eq!(db.exists(&[b"h"]).unwrap(), 0);
        db.hset(b"h", &[(b"g", b"2")]).unwrap();
        assert_eq!(db.hkeys(b"h").unwrap(), ["g"], "nothing of the first hash is left");
    }
}

#[test]
fn a_deleted_hash_leaves_no_field_to_the_next_of_its_name() {
    for db in both() {
        db.hset(b"h", &[(b"old", b"1")]).unwrap();
        db.del(&[b"h"]).unwrap();
        assert_eq!(db.hset(b"h", &[(b"new", b"1")]).unwrap(), 1);
        assert_eq!(db.hget(b"h", b"old").unwrap(), None);
        assert_eq!(db.hgetall(b"h").unwrap().len(), 1);
    }
}

#[test]
fn all_fields_come_with_their_values_in_order_and_survive_a_reopen() {
    for options in [Options::default(), unpacked()] {
        let fs = Arc::new(MemFs::untracked());
        let open = || {
            let clock = Arc::new(RealClock);
            Db::open_on(fs.clone(), Path::new("/db"), options.clone(), clock).unwrap()
        };
        let db = open();
        db.hmset(b"h", &[(b"b", b"2"), (b"", b"empty"), (b"a\0", b"1")]).unwrap();
        db.hset(b"h\0", &[(b"a", b"other")]).unwrap();
        for round in 0..2 {
            let db = if round == 0 { db.clone() } else { open() };
            assert_eq!(db.hkeys(b"h").unwrap(), [&b""[..], b"a\0", b"b"]);
            assert_eq!(db.hvals(b"h").unwrap(), ["empty", "1", "2"]);
            let all = db.hgetall(b"h").unwrap();
            assert_eq!(all.last().map(|(f, v)| (&f[..], &v[..])), Some((&b"b"[..], &b"2"[..])));
            assert_eq!(db.hlen(b"h").unwrap(), 3);
            db.close().unwrap();
        }
    }
}

#[test]
fn getting_and_deleting_a_field_twice_finds_it_once() {
    for db in both() {
        db.hset(b"h", &[(b"f", b"1"), (b"g", b"2")]).unwrap();
        let values = db.hgetdel(b"h", &[b"f", b"none", b"f"]).unwrap();
        assert_eq!(
            values.into_iter().map(text).collect::<Vec<_>>(),
            [Some("1".into()), None, None]
        );
        assert_eq!(db.hlen(b"h").unwrap(), 1);
        db.hgetdel(b"h", &[b"g"]).unwrap();
        assert_eq!(db.exists(&[b"h"]).unwrap(), 0);
        assert_eq!(db.hgetdel(b"h", &[b"g"]).unwrap(), [None]);
    }
}

#[test]
fn integers_in_fields_are_counted_exactly() {
    for db in both() {
        assert_eq!(db.hincrby(b"h", b"n", i64::MAX).unwrap(), i64::MAX);
        let error = db.hincrby(b"h", b"n", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overflow);
        assert_eq!(error.message(), "ERR increment or decrement would overflow");
        assert_eq!(db.hincrby(b"h", b"n", i64::MIN).unwrap(), -1);
        assert_eq!(db.hlen(b"h").unwrap(), 1);
        for value in [&b" 1"[..], b"01", b"1.0", b"", b"9223372036854775808"] {
            db.hset(b"h", &[(b"text", value)]).unwrap();
            let error = db.hincrby(b"h", b"text", 1).unwrap_err();
            assert_eq!(error.message(), "ERR hash value is not an integer");
        }
    }
}

#[test]
fn a_failed_increment_makes_no_hash() {
    for db in both() {
        db.set(b"s", b"v").unwrap();
        assert_eq!(db.hincrby(b"s", b"f", 1).unwrap_err().kind(), ErrorKind::WrongType);
        assert_eq!(text(db.get(b"s").unwrap()).as_deref(), Some("v"));
    }
}

#[test]
fn a_field_is_set_only_where_there_is_none() {
    for db in both() {
        assert!(db.hsetnx(b"h", b"f", b"1").unwrap());
        assert!(!db.hsetnx(b"h", b"f", b"22").unwrap());
        assert_eq!(db.hstrlen(b"h", b"f").unwrap(), 1);
        assert_eq!(db.hstrlen(b"h", b"g").unwrap(), 0);
        assert!(db.hexists(b"h", b"f").unwrap());
        assert!(!db.hexists(b"none", b"f").unwrap());
        assert_eq!(db.hmget(b"none", &[b"a", b"b"]).unwrap(), [None, None]);
    }
}

#[test]
fn random_fields_bring_their_own_values() {
    for db in both() {
        assert_eq!(db.hrandfield(b"h").unwrap(), None);
        db.hset(b"h", &[(b"a", b"va"), (b"b", b"vb"), (b"c", b"vc")]).unwrap();
        for count in [-7, -1, 0, 2, 9] {
            let pairs = db.hrandfield_withvalues(b"h", count).unwrap();
            let expected = if count < 0 { -count } else { count.min(3) };
            assert_eq!(pairs.len() as i64, expected);
            assert!(pairs.iter().all(|(field, value)| [b"v", &field[..]].concat() == value[..]));
        }
    }
}

/// The sums are those of redis-server 7.0.15.
#[test]
fn numbers_in_fields_are_added_as_the_reference_adds() {
    for db in both() {
        for (old, increment, sum) in [
            ("10", "0.1", "10.1"),
            ("3.0e3", "200", "3200"),
            ("5.0e3", "-5.0e3", "0"),
            ("-0.0", "0", "0"),
        ] {
            db.hset(b"h", &[(b"f", old.as_bytes())]).unwrap();
            assert_eq!(db.hincrbyfloat(b"h", b"f", increment.as_bytes()).unwrap(), sum);
            assert_eq!(text(db.hget(b"h", b"f").unwrap()).as_deref(), Some(sum));
        }
        assert_eq!(db.hincrbyfloat(b"h", b"new", b"1.50").unwrap(), "1.5");
        assert_eq!(db.hlen(b"h").unwrap(), 2);
    }
}
