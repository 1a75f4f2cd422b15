//! Replies that go to a receiver piece by piece: all or nothing, whatever fails on the way, and no
//! further than the receiver has room.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use libc::EIO;
use lsmkv::engine::{FaultFs, MemFs};
use lsmkv::io::clock::RealClock;
use lsmkv::io::fault::{CallClass, Effect, Fault};
use lsmkv::types::ZAdd;
use lsmkv::{Db, Head, Options, Reply, ReplySink, Session};

const MEMBERS: usize = 3000;

/// The commands that walk while they reply, on keys of [`filled`].
const WALKS: [&str; 10] = [
    "LRANGE list 0 -1",
    "SMEMBERS set",
    "HGETALL hash",
    "HKEYS hash",
    "HVALS hash",
    "ZRANGE zset 0 -1 WITHSCORES",
    "ZRANGE zset -1000 -1",
    "ZREVRANGE zset 0 -1",
    "ZRANGEBYSCORE zset -inf +inf WITHSCORES",
    "ZRANGEBYLEX zset - +",
];

/// Remembers what it is given, one text a piece.
#[derive(Default)]
struct Pieces {
    all: Vec<String>,
    /// Full when it has so many.
    most: Option<usize>,
    /// How many were taken back.
    taken_back: usize,
}

fn head_text(head: Head, len: usize) -> String {
    format!("{head:?} of {len}")
}

impl ReplySink for Pieces {
    fn nil(&mut self) {
        self.all.push("nil".into());
    }

    fn nil_array(&mut self) {
        self.all.push("no array".into());
    }

    fn status(&mut self, text: &'static str) {
        self.all.push(format!("+{text}"));
    }

    fn error(&mut self, text: &str) {
        self.all.push(format!("-{text}"));
    }

    fn integer(&mut self, number: i64) {
        self.all.push(format!(":{number}"));
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.all.push(bytes.escape_ascii().to_string());
    }

    fn double(&mut self, number: f64) {
        self.all.push(format!(",{number:?}"));
    }

    fn head(&mut self, head: Head, len: usize) {
        self.all.push(head_text(head, len));
    }

    fn pair(&mut self) {
        self.all.push("pair".into());
    }

    fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.all.len() >= most)
    }

    fn position(&self) -> usize {
        self.all.len()
    }

    fn insert_head(&mut self, position: usize, head: Head, len: usize) {
        self.all.insert(position, head_text(head, len));
    }

    fn rollback_to(&mut self, position: usize) {
        self.taken_back += self.all.len() - position;
        self.all.truncate(position);
    }
}

fn argv(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

fn say(session: &mut Session, line: &str, sink: &mut Pieces) {
    session.command_into(&argv(line), sink).unwrap();
}

fn filled(db: &Db) {
    fill(db, MEMBERS);
}

fn fill(db: &Db, members: usize) {
    for n in 0..members {
        let (member, value) = (format!("member {n:06}"), format!("value {n:090}"));
        let (member, value) = (member.as_bytes(), value.as_bytes());
        db.rpush(b"list", &[value]).unwrap();
        db.sadd(b"set", &[value]).unwrap();
        db.hset(b"hash", &[(member, value)]).unwrap();
        db.zadd(b"zset", &[(1.0, value)], ZAdd::default()).unwrap();
    }
}

fn built(db: &Db, line: &str) -> Vec<String> {
    let mut pieces = Pieces::default();
    db.command(&argv(line)).unwrap().write_to(&mut pieces);
    pieces.all
}

#[test]
fn a_reply_in_pieces_is_that_of_the_command_and_stands_behind_what_was_there() {
    let db = open_memory();
    filled(&db);
    for line in WALKS {
        let mut pieces = Pieces::default();
        pieces.status("before");
        db.command_into(&argv(line), &mut pieces).unwrap();
        assert_eq!(pieces.all.remove(0), "+before");
        assert!(pieces.all.len() > 1000, "{line}");
        assert_eq!(pieces.all, built(&db, line), "{line}");
    }
    for line in ["GET list", "HGETALL list", "ZRANGE zset 0 x", "HKEYS", "NOSUCH", "LRANGE no 0 1"]
    {
        let mut pieces = Pieces::default();
        db.command_into(&argv(line), &mut pieces).unwrap();
        assert_eq!(pieces.all, built(&db, line), "{line}");
    }
}

#[test]
fn the_walk_ends_when_the_receiver_is_full() {
    let db = open_memory();
    filled(&db);
    for line in WALKS {
        let mut pieces = Pieces { most: Some(50), ..Pieces::default() };
        db.command_into(&argv(line), &mut pieces).unwrap();
        // A pair may be finished, and a head come last.
        assert!((50..54).contains(&pieces.all.len()), "{line}: {}", pieces.all.len());
    }
}

/// Collections that are kept whole in their records.
#[test]
fn a_reply_from_a_record_is_that_of_the_command_and_ends_when_the_receiver_is_full() {
    const FEW: usize = 60;
    let most =
        Options { packed_max_members: 128, packed_max_bytes: 16 << 10, ..Options::default() };
    let none = Options { packed_max_members: 0, ..Options::default() };
    let [packed, rows] = [most, none].map(|options| Db::open(":memory:", options).unwrap());
    [&packed, &rows].iter().for_each(|db| fill(db, FEW));
    let parts = [
        "ZRANGE zset 10 20",
        "ZRANGE zset -20 -10 WITHSCORES",
        "ZREVRANGE zset 3 -50 WITHSCORES",
        "ZRANGEBYSCORE zset (0 1 LIMIT 5 40",
        "ZRANGEBYSCORE zset 2 3",
        "ZREVRANGEBYSCORE zset +inf -inf WITHSCORES",
        "ZREVRANGEBYLEX zset + - LIMIT 1 30",
        "ZRANGE zset 70 80",
    ];
    for line in WALKS.iter().chain(&parts) {
        let expected = built(&rows, line);
        assert_eq!(built(&packed, line), expected, "{line}");
        for most in [None, Some(1), Some(7), Some(30)] {
            let mut pieces = Pieces { most, ..Pieces::default() };
            pieces.status("before");
            packed.command_into(&argv(line), &mut pieces).unwrap();
            assert_eq!(pieces.all.remove(0), "+before");
            let all = expected.len();
            match most {
                // A pair may be finished, and a head come last.
                Some(most) => assert!(pieces.all.len() <= all.min(most + 3), "{line}"),
                None => assert_eq!(pieces.all, expected, "{line}"),
            }
        }
    }
}

#[test]
fn values_that_are_asked_for_by_name_are_streamed_alike() {
    let db = open_memory();
    filled(&db);
    for n in 0..100 {
        db.set(format!("key {n}").replace(' ', ":").as_bytes(), b"v").unwrap();
        db.hset(b"small", &[(format!("f{n}").as_bytes(), b"")]).unwrap();
    }
    let names = |prefix: &str| (0..200).map(|n| format!(" {prefix}{n}")).collect::<String>();
    let mget = format!("MGET hash list{} zset", names("key:"));
    let hmget = format!("HMGET small none{}", names("f"));
    let missing = format!("HMGET nothing{}", names("f"));
    for line in [&mget, &hmget, &missing, "HMGET list f", "HMGET key:1 f g", "MGET list", "HMGET h"]
    {
        let (mut pieces, expected) = (Pieces::default(), built(&db, line));
        pieces.status("before");
        db.command_into(&argv(line), &mut pieces).unwrap();
        assert_eq!(pieces.all.remove(0), "+before");
        assert_eq!(pieces.all, expected, "{line}");
    }
    for line in [&mget, &hmget, &missing] {
        let mut pieces = Pieces { most: Some(50), ..Pieces::default() };
        db.command_into(&argv(line), &mut pieces).unwrap();
        assert_eq!(pieces.all.len(), 50, "{line}");
    }
    for line in ["HMGET list f", "HMGET key:1 f g"] {
        let [error] = &built(&db, line)[..] else { panic!("{line}") };
        assert!(error.starts_with("-WRONGTYPE"), "{error}");
    }
}

#[test]
fn a_read_that_fails_in_the_middle_leaves_an_error_and_nothing_of_the_reply() {
    let mem = MemFs::new();
    let fs = FaultFs::new(Arc::new(mem));
    let options = || Options { ttl_cleaner_interval_s: 0, ..Options::default() };
    let open = || {
        let (fs, clock) = (Arc::new(fs.clone()), Arc::new(RealClock));
        Db::open_on(fs, Path::new("/db"), options(), clock).unwrap()
    };
    let db = open();
    filled(&db);
    db.flush().unwrap();
    db.close().unwrap();
    let mut in_the_middle = 0;
    for line in WALKS {
        let expected = built(&open(), line);
        for skipped in (0..).step_by(3) {
            // A new handle has no blocks in its cache.
            let db = open();
            let mut pieces = Pieces::default();
            pieces.status("before");
            let struck = fs.struck().len();
            fs.arm(
                Fault::once(fs.calls() + 1 + skipped, Effect::Errno(EIO)).only(&[CallClass::Read]),
            );
            let done = db.command_into(&argv(line), &mut pieces);
            let struck = fs.struck().len() > struck;
            fs.disarm();
            let Err(error) = done else {
                assert_eq!(pieces.all.split_off(1), expected, "{line}");
                // The tail of a table is read again in smaller parts.
                if struck {
                    continue;
                }
                break;
            };
            assert_eq!(error.os_errno(), EIO, "{line}: {error}");
            assert_eq!(pieces.all, ["+before"], "{line}");
            in_the_middle += usize::from(pieces.taken_back > 10);
            // The same handle goes on.
            db.command_into(&argv(line), &mut pieces).unwrap();
            assert_eq!(pieces.all.split_off(1), expected, "{line}");
        }
    }
    println!("{in_the_middle} walks were cut off in the middle");
    assert!(in_the_middle > WALKS.len(), "only {in_the_middle} were in the middle");
}

#[test]
fn exec_replies_in_pieces_what_it_replies_otherwise() {
    let (one, other) = (open_memory(), open_memory());
    let (mut built, mut streamed) = (one.session(), other.session());
    for line in [
        "RPUSH list a b c",
        "WATCH list",
        "MULTI",
        "RPUSH list own",
        "LRANGE list 0 -1",
        "HSET list f v",
        "HSET hash f v",
        "HGETALL hash",
        "SELECT 1",
        "HGETALL hash",
        "PING",
        "EXEC",
        "LRANGE list 0 -1",
        "MULTI",
        "NOSUCH",
        "EXEC",
        "MULTI",
        "EXEC now",
        "EXEC",
        "LRANGE list 0 -1",
    ] {
        let (mut expected, mut pieces) = (Pieces::default(), Pieces::default());
        built.command(&argv(line)).unwrap().write_to(&mut expected);
        say(&mut streamed, line, &mut pieces);
        assert_eq!(pieces.all, expected.all, "{line}");
    }
    // A watched key that was changed.
    say(&mut streamed, "WATCH k", &mut Pieces::default());
    other.select(1).unwrap().set(b"k", b"v").unwrap();
    say(&mut streamed, "MULTI", &mut Pieces::default());
    let mut pieces = Pieces::default();
    say(&mut streamed, "EXEC", &mut pieces);
    assert_eq!(pieces.all, ["no array"]);
}

#[test]
fn exec_runs_all_its_commands_also_when_the_receiver_is_full() {
    let db = open_memory();
    filled(&db);
    let mut session = db.session();
    for line in ["MULTI", "LRANGE list 0 -1", "HGETALL hash", "SET k v"] {
        say(&mut session, line, &mut Pieces::default());
    }
    let mut pieces = Pieces { most: Some(20), ..Pieces::default() };
    say(&mut session, "EXEC", &mut pieces);
    assert!(pieces.all.len() < 30, "{}", pieces.all.len());
    assert_eq!(db.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

fn open_memory() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}
