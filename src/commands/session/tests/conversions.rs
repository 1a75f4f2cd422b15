//! Collections outgrow their record, and return into it, amid commands that commit together. Some
//! of the commands fail.

use crate::commands::Reply;
use crate::options::Options;
use crate::txn::Db;
use crate::types::testing::{is_packed, opener};

fn packing(packed_max_members: u32, packed_max_bytes: u32) -> Options {
    Options { packed_max_members, packed_max_bytes, max_value_bytes: 100, ..Options::default() }
}

fn argv(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

type Way = fn(&Db, &[String]) -> Vec<Reply>;

/// The ways to commit several commands as one.
const WAYS: [Way; 3] = [
    |db, lines| {
        let mut session = db.session();
        session.command(&[b"MULTI"]).unwrap();
        for line in lines {
            session.command(&argv(line)).unwrap();
        }
        match session.command(&[b"EXEC"]).unwrap() {
            Reply::Array(replies) => replies,
            other => panic!("{other:?}"),
        }
    },
    |db, lines| {
        let commands: Vec<_> = lines.iter().map(|line| argv(line)).collect();
        db.pipeline(&commands).unwrap()
    },
    |db, lines| {
        let txn = db.begin().unwrap();
        let replies = lines.iter().map(|line| txn.command(&argv(line)).unwrap()).collect();
        txn.commit().unwrap();
        replies
    },
];

fn shown(reply: &Reply) -> String {
    let pairs = |pairs: &[(Reply, Reply)]| {
        let pair = |(a, b): &(Reply, Reply)| format!("{}={}", shown(a), shown(b));
        pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
    };
    match reply {
        Reply::Error(_) => "error".to_owned(),
        Reply::Int(number) => number.to_string(),
        Reply::Double(number) => number.to_string(),
        Reply::Status(text) => (*text).to_owned(),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Map(it) | Reply::Pairs(it) => pairs(it),
        other => panic!("{other:?}"),
    }
}

/// The number of entries in the tables of each tree, after compaction has removed everything
/// obsolete.
fn entries(db: &Db) -> [u64; 3] {
    db.compact().unwrap();
    let trees = db.engine_stats().trees;
    [0, 1, 2].map(|tree| trees[tree].levels.iter().map(|level| level.entries).sum())
}

/// The collection that a script leaves: its key, the command that reads all of it, and the reply.
struct Left<'a> {
    key: &'a str,
    ask: &'a str,
    all: &'a str,
    entries: [u64; 3],
}

/// Runs the script in every way. The store must then hold what the script leaves, and again after
/// reopening.
fn runs(before: &[&str], script: &[(&str, &str)], left: &Left<'_>) {
    for way in WAYS {
        let open = opener();
        let db = open(packing(128, 1024));
        before.iter().for_each(|line| drop(db.command(&argv(line)).unwrap()));
        db.close().unwrap();
        let db = open(packing(3, 64));
        let long = "x".repeat(101);
        let lines: Vec<_> = script.iter().map(|(line, _)| line.replace("LONG", &long)).collect();
        let replies: Vec<_> = way(&db, &lines).iter().map(shown).collect();
        let expected: Vec<_> = script.iter().map(|(_, reply)| *reply).collect();
        assert_eq!(replies, expected);
        let holds = |db: &Db| {
            assert_eq!(shown(&db.command(&argv(left.ask)).unwrap()), left.all);
            assert!(!is_packed(db, left.key.as_bytes()));
            assert_eq!(db.keys(b"*").unwrap(), [left.key]);
            assert_eq!(db.check().unwrap(), [""; 0]);
        };
        holds(&db);
        assert_eq!(db.engine_stats().reserved, 0);
        assert_eq!(entries(&db), left.entries, "rows of former versions are gone");
        holds(&db);
        db.close().unwrap();
        holds(&open(packing(3, 64)));
    }
}

#[test]
fn a_hash_gets_rows_and_loses_them_among_commands_that_fail() {
    let script = [
        ("HSET h a 1 b 2", "2"),
        ("HSET h c 3 d 4 e LONG", "error"),
        ("HGETALL h", "a=1 b=2"),
        ("HLEN h", "2"),
        ("HSET h c 3 d 4", "2"),
        ("HSET h d 5 i LONG", "error"),
        ("HDEL h a b", "2"),
        ("HGETALL h", "c=3 d=4"),
        ("RENAME h g", "OK"),
        ("HSET g e 5 f 6 e LONG", "error"),
        ("HGETALL g", "c=3 d=4"),
        ("HSET g e 5 f 6 c 7", "2"),
        ("HGETALL g", "c=7 d=4 e=5 f=6"),
    ];
    let all = "c=7 d=4 e=5 f=6";
    runs(&[], &script, &Left { key: "g", ask: "HGETALL g", all, entries: [1, 4, 0] });
}

#[test]
fn a_sorted_set_whose_scores_change_in_the_command_that_gives_it_rows() {
    let script = [
        ("ZADD z 1 a 2 b", "2"),
        ("ZADD z 9 a 3 c 4 d 8 b 5 LONG", "error"),
        ("ZRANGE z 0 -1 WITHSCORES", "a=1 b=2"),
        ("ZADD z CH 9 a 3 c 4 d 0 b", "4"),
        ("ZRANGE z 0 -1 WITHSCORES", "b=0 c=3 d=4 a=9"),
        ("ZADD z 7 b 7 LONG", "error"),
        ("ZRANK z b", "0"),
        ("ZREM z a b", "2"),
        ("RENAME z y", "OK"),
        ("ZADD y 5 e 6 f 1 c 9 LONG", "error"),
        ("ZRANGE y 0 -1 WITHSCORES", "c=3 d=4"),
        ("ZADD y 5 e 6 f 8 c", "2"),
        ("ZINCRBY y 1 c", "9"),
        ("ZRANGE y 0 -1 WITHSCORES", "d=4 e=5 f=6 c=9"),
    ];
    let all = "d=4 e=5 f=6 c=9";
    let left = Left { key: "y", ask: "ZRANGE y 0 -1 WITHSCORES", all, entries: [1, 4, 4] };
    runs(&[], &script, &left);
}

/// No member is added. A record that was written with larger limits no longer fits when it changes.
#[test]
fn a_change_of_one_score_gives_rows_to_what_no_longer_fits() {
    let script = [
        ("ZADD z 9 b 1 LONG", "error"),
        ("ZRANGE z 0 -1 WITHSCORES", "a=1 b=2 c=3 d=4 e=5"),
        ("ZADD z 0 c", "0"),
        ("ZADD z 0 b 1 LONG", "error"),
        ("ZRANGE z 0 -1 WITHSCORES", "c=0 a=1 b=2 d=4 e=5"),
        ("ZREVRANK z b", "2"),
    ];
    let all = "c=0 a=1 b=2 d=4 e=5";
    let left = Left { key: "z", ask: "ZRANGE z 0 -1 WITHSCORES", all, entries: [1, 5, 5] };
    runs(&["ZADD z 1 a 2 b 3 c 4 d 5 e"], &script, &left);
}
