use lsmkv::engine::MemFs;
use lsmkv::io::clock::RealClock;
use lsmkv::types::KeyRange;
use lsmkv::{Db, ErrorKind, Options, Reply};

use std::path::Path;
use std::sync::Arc;

use crate::{get, reader, tiny, writer};

/// What a writer does.
type Step<'a> = &'a dyn Fn(&Db);

fn fill(db: &Db, from: u32, to: u32) {
    for n in from..to {
        let value = format!("{n}-{}", "x".repeat(200));
        db.set(format!("key{n:05}").as_bytes(), value.as_bytes()).unwrap();
    }
}

#[test]
fn a_reader_stays_at_its_moment_and_moves_on_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let written = writer(dir.path());
    written.set(b"k", b"1").unwrap();
    let seen = reader(dir.path());
    assert_eq!(get(&seen, "k").as_deref(), Some("1"));
    let steps: [(&str, Step<'_>); 5] = [
        ("a write", &|_| {}),
        ("a flush", &|db| db.flush().unwrap()),
        ("a compaction", &|db| db.compact().unwrap()),
        ("several log segments", &|db| fill(db, 0, 300)),
        ("everything merged", &|db| {
            fill(db, 100, 900);
            db.compact().unwrap();
        }),
    ];
    for (n, (what, step)) in steps.iter().enumerate() {
        let (before, after) = (get(&seen, "k"), format!("after {n}"));
        written.set(b"k", after.as_bytes()).unwrap();
        step(&written);
        assert_eq!(get(&seen, "k"), before, "{what} shows without a refresh");
        seen.refresh().unwrap();
        assert_eq!(get(&seen, "k"), Some(after), "{what} does not show after a refresh");
        assert_eq!(seen.dbsize().unwrap(), written.dbsize().unwrap(), "{what}");
    }
    assert_eq!(seen.check().unwrap(), [""; 0]);
    assert_eq!(seen.set(b"k", b"2").unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_writer_that_comes_and_goes_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let first = writer(dir.path());
    first.set(b"k", b"0").unwrap();
    let seen = reader(dir.path());
    first.close().unwrap();
    for n in 1..6u32 {
        let again = writer(dir.path());
        again.set(b"k", n.to_string().as_bytes()).unwrap();
        if n % 2 == 0 {
            seen.refresh().unwrap();
            assert_eq!(get(&seen, "k"), Some(n.to_string()), "while it is open");
        }
        // Every second one ends as a process does that is killed.
        if n < 3 {
            again.close().unwrap();
        } else {
            drop(again);
        }
        seen.refresh().unwrap();
        assert_eq!(get(&seen, "k"), Some(n.to_string()), "after it has gone");
    }
}

#[test]
fn snapshots_iterators_and_other_handles_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let written = writer(dir.path());
    fill(&written, 0, 500);
    written.flush().unwrap();
    let seen = reader(dir.path());
    let (one, snapshot) = (seen.select(1).unwrap(), seen.snapshot().unwrap());
    let begun = seen.begin().unwrap();
    let mut keys = seen.iter(KeyRange::default()).unwrap();
    let mut walked = Vec::new();
    while let Some(key) = keys.next().unwrap() {
        walked.push(key);
        if walked.len() == 10 {
            written.select(1).unwrap().set(b"new", b"1").unwrap();
            written.flushdb().unwrap();
            fill(&written, 600, 1200);
            written.compact().unwrap();
            seen.refresh().unwrap();
        }
    }
    assert_eq!(walked.len(), 500, "the iterator keeps its moment");
    assert_eq!(snapshot.dbsize().unwrap(), 500, "so does the snapshot");
    let value = snapshot.get(b"key00499").unwrap().unwrap();
    assert!(value.starts_with(b"499-"));
    assert!(begun.get(b"key00001").unwrap().is_some(), "and the transaction");
    assert_eq!((seen.dbsize().unwrap(), get(&seen, "key00499")), (600, None));
    assert_eq!(get(&one, "new").as_deref(), Some("1"), "handles made before see what is new");
    assert_eq!(seen.snapshot().unwrap().dbsize().unwrap(), 600);
}

#[test]
fn emptied_and_swapped_databases_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let written = writer(dir.path());
    let one = written.select(1).unwrap();
    written.set(b"k", b"zero").unwrap();
    one.set(b"k", b"one").unwrap();
    let seen = reader(dir.path());
    let seen_one = seen.select(1).unwrap();
    written.swapdb(0, 1).unwrap();
    seen.refresh().unwrap();
    assert_eq!((get(&seen, "k"), get(&seen_one, "k")), (Some("one".into()), Some("zero".into())));
    written.flushdb().unwrap();
    written.set(b"other", b"1").unwrap();
    written.compact().unwrap();
    seen.refresh().unwrap();
    assert_eq!(seen.keys(b"*").unwrap(), ["other"]);
    assert_eq!(get(&seen_one, "k"), Some("zero".into()));
}

#[test]
fn whoever_watches_a_key_finds_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    let written = writer(dir.path());
    written.set(b"k", b"1").unwrap();
    let seen = reader(dir.path());
    for changes in [false, true] {
        let mut session = seen.session();
        session.command(&[b"WATCH", b"k"]).unwrap();
        if changes {
            written.set(b"k", b"2").unwrap();
        }
        seen.refresh().unwrap();
        session.command(&[b"MULTI"]).unwrap();
        session.command(&[b"GET", b"k"]).unwrap();
        let reply = session.command(&[b"EXEC"]).unwrap();
        assert_eq!(matches!(reply, Reply::NilArray), changes, "{reply:?}");
    }
}

#[cfg(feature = "scripting")]
#[test]
fn functions_of_the_writer_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let written = writer(dir.path());
    let load = |answer: &str| {
        let code = format!(
            "#!lua name=lib\nredis.register_function{{function_name='f', \
             callback=function() return '{answer}' end, flags={{'no-writes'}}}}"
        );
        let reply = written.command(&[b"FUNCTION", b"LOAD", b"REPLACE", code.as_bytes()]).unwrap();
        assert!(!matches!(reply, Reply::Error(..)), "{reply:?}");
    };
    let seen = reader(dir.path());
    for answer in ["first", "second"] {
        load(answer);
        seen.refresh().unwrap();
        let reply = seen.command(&[b"FCALL_RO", b"f", b"0"]).unwrap();
        assert_eq!(reply, Reply::Bulk(answer.to_owned().into()));
    }
}

#[test]
fn where_nobody_else_writes_there_is_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let written = writer(dir.path());
    written.set(b"k", b"1").unwrap();
    written.refresh().unwrap();
    assert_eq!(get(&written, "k").as_deref(), Some("1"));
    written.close().unwrap();
    assert_eq!(written.refresh().unwrap_err().kind(), ErrorKind::Closed);
    let locked = reader(dir.path());
    locked.refresh().unwrap();
    assert_eq!(Db::open(dir.path(), tiny()).unwrap_err().kind(), ErrorKind::Busy);
    let memory = Db::open(":memory:", Options::default()).unwrap();
    memory.refresh().unwrap();
    // Without the lock, a writer is not kept out.
    locked.close().unwrap();
    let beside = Db::open_beside(dir.path(), &tiny()).unwrap();
    let written = writer(dir.path());
    written.set(b"k", b"2").unwrap();
    beside.refresh().unwrap();
    assert_eq!(get(&beside, "k").as_deref(), Some("2"));
}

#[test]
fn another_store_in_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, gone) = (dir.path().join("store"), dir.path().join("gone"));
    let first = writer(&path);
    fill(&first, 0, 50);
    first.flush().unwrap();
    let seen = reader(&path);
    drop(first);
    std::fs::rename(&path, &gone).unwrap();
    let second = writer(&path);
    fill(&second, 0, 2);
    let error = seen.refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.message().contains("open it again"), "{error}");
    assert_eq!(seen.dbsize().unwrap(), 50, "what was seen stays readable");
}

#[test]
fn a_store_in_memory_is_read_beside_its_writer_too() {
    let (fs, dir) = (Arc::new(MemFs::untracked()), Path::new("/db"));
    let open = |read_only| {
        let options = Options { read_only, ..tiny() };
        Db::open_on(fs.clone(), dir, options, Arc::new(RealClock)).unwrap()
    };
    let (written, seen) = (open(false), open(true));
    fill(&written, 0, 700);
    written.compact().unwrap();
    fill(&written, 700, 710);
    assert_eq!(seen.dbsize().unwrap(), 0);
    seen.refresh().unwrap();
    assert_eq!(seen.dbsize().unwrap(), 710);
}
