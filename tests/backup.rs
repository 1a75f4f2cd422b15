//! Copies of a database that threads write to, on a real disk and from memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lsmkv::types::{KeyRange, ZAdd};
use lsmkv::{Db, ErrorKind, Options};

const WRITERS: usize = 4;

/// Small enough that flushes, compactions and segments of the log come and go during a copy.
fn busy() -> Options {
    Options {
        write_buffer: 64 << 10,
        table_bytes: 32 << 10,
        log_segment_bytes: 64 << 10,
        memory_budget: 4 << 20,
        ..Options::default()
    }
}

/// How far a writer is known to have come.
#[derive(Default)]
struct Reached {
    begun: AtomicU64,
    done: AtomicU64,
}

fn name(kind: &str, writer: usize) -> Vec<u8> {
    format!("{kind}{writer}").into_bytes()
}

/// Round `n` of a writer, whose commands leave traces in all trees and in this order.
fn round(db: &Db, writer: usize, n: u64) {
    let text = n.to_string();
    let (a, b) = (name("a", writer), name("b", writer));
    db.mset(&[(&a, text.as_bytes()), (&b, text.as_bytes())]).unwrap();
    db.zadd(&name("z", writer), &[(n as f64, text.as_bytes())], ZAdd::default()).unwrap();
    let filler = [b'v'; 100];
    db.hset(&name("h", writer), &[(text.as_bytes(), &filler)]).unwrap();
    db.rpush(&name("q", writer), &[text.as_bytes()]).unwrap();
    if n.is_multiple_of(3) {
        db.lpop(&name("q", writer)).unwrap();
    }
    if n.is_multiple_of(50) {
        db.del(&[&name("h", writer)]).unwrap();
    }
}

fn number(db: &Db, key: &[u8]) -> u64 {
    let value = db.get(key).unwrap();
    value.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}

/// A copy is a prefix of what each writer did, with all that had returned before it was begun.
fn check_copy(dir: &Path, before: &[u64], after: &[u64]) {
    let db = Db::open(dir, busy()).unwrap();
    assert_eq!(db.check().unwrap(), [""; 0]);
    for writer in 0..WRITERS {
        let a = number(&db, &name("a", writer));
        assert_eq!(a, number(&db, &name("b", writer)), "one batch is there whole");
        assert!(
            before[writer] <= a && a <= after[writer],
            "{} {a} {}",
            before[writer],
            after[writer]
        );
        let members = u64::try_from(db.zcard(&name("z", writer)).unwrap()).unwrap();
        assert!(members == a || members + 1 == a, "{members} of {a}: no holes");
        assert!(members >= before[writer]);
    }
    db.set(b"mine", b"alone").unwrap();
    db.compact().unwrap();
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.close().unwrap();
    let db = Db::open(dir, busy()).unwrap();
    assert_eq!(db.get(b"mine").unwrap().unwrap(), "alone");
}

/// Sets the flag when dropped.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn copies_made_while_four_threads_write_are_each_a_prefix_of_what_they_wrote() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path().join("db"), busy()).unwrap();
    let reached: [Reached; WRITERS] = Default::default();
    let enough = AtomicBool::new(false);
    let seen = |which: fn(&Reached) -> &AtomicU64| {
        reached.each_ref().map(|reached| which(reached).load(Ordering::SeqCst))
    };
    std::thread::scope(|scope| {
        // Also when a check fails: the scope waits for the writers.
        let _in_the_end = Raise(&enough);
        for (writer, reached) in reached.iter().enumerate() {
            let (db, enough) = (&db, &enough);
            scope.spawn(move || {
                for n in 1.. {
                    if enough.load(Ordering::SeqCst) {
                        return;
                    }
                    reached.begun.store(n, Ordering::SeqCst);
                    round(db, writer, n);
                    reached.done.store(n, Ordering::SeqCst);
                }
            });
        }
        let mut last = [0; WRITERS];
        for copy in 0..6 {
            while seen(|reached| &reached.done).iter().zip(last).any(|(now, then)| *now < then + 25)
            {
                std::thread::yield_now();
            }
            let before = seen(|reached| &reached.done);
            let dir = scratch.path().join(format!("copy{copy}"));
            if copy % 2 == 0 {
                db.checkpoint(&dir).unwrap();
            } else {
                assert!(db.backup(&dir, |_, _| ControlFlow::Continue(())).unwrap());
            }
            check_copy(&dir, &before, &seen(|reached| &reached.begun));
            last = before;
        }
    });
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.close().unwrap();
}

#[test]
fn a_checkpoint_shares_its_tables_a_backup_does_not_and_both_are_private() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    // So that no compaction replaces the tables that are shared.
    let db = Db::open(at("db"), Options::default()).unwrap();
    for n in 0..2000 {
        db.set(format!("key{n}").as_bytes(), &[b'v'; 50]).unwrap();
    }
    db.flush().unwrap();
    db.set(b"late", b"in the log").unwrap();
    // Links in the way to it are followed.
    std::os::unix::fs::symlink(scratch.path(), at("link")).unwrap();
    db.checkpoint(at("link").join("checkpoint")).unwrap();
    db.backup(at("backup"), |_, _| ControlFlow::Continue(())).unwrap();
    let files = |name: &str| {
        let entries = std::fs::read_dir(at(name)).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.file_name(), entry.metadata().unwrap())).collect::<Vec<_>>()
    };
    for (name, links) in [("checkpoint", 2), ("backup", 1)] {
        assert_eq!(std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o777, 0o700);
        let files = files(name);
        let ends = |file: &std::ffi::OsStr, with: &str| file.to_str().unwrap().ends_with(with);
        assert!(files.iter().any(|(file, _)| ends(file, ".table")));
        for (file, metadata) in files {
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
            let expected = if ends(&file, ".table") { links } else { 1 };
            assert_eq!(metadata.nlink(), expected, "{name} {}", file.display());
        }
        let copy = Db::open(at(name), busy()).unwrap();
        assert_eq!(copy.dbsize().unwrap(), 2001);
        assert_eq!(copy.get(b"late").unwrap().unwrap(), "in the log");
    }
    let error = db.checkpoint(at("backup")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let hidden = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(hidden.filter(|name| name.to_str().unwrap().starts_with('.')).count(), 0);
}

#[test]
fn a_store_in_memory_is_saved_by_a_backup_with_all_its_databases() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("saved");
    let db = Db::open(":memory:", Options::default()).unwrap();
    let other = db.select(3).unwrap();
    db.flushdb().unwrap();
    db.set(b"a", b"0").unwrap();
    other.hset(b"h", &[(b"f", b"v")]).unwrap();
    assert_eq!(db.checkpoint(&dir).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut told = Vec::new();
    let done = other.backup(&dir, |done, total| {
        told.push((done, total));
        ControlFlow::Continue(())
    });
    assert!(done.unwrap());
    let (last, total) = told.last().copied().unwrap();
    assert!(last == total && told[0] == (0, total));
    let saved = Db::open(&dir, Options { create_if_missing: false, ..Options::default() }).unwrap();
    let keys = |db: &Db| {
        db.iter(KeyRange::default()).unwrap().map(|key| key.unwrap().key).collect::<Vec<_>>()
    };
    assert_eq!(
        (keys(&saved), keys(&saved.select(3).unwrap())),
        (vec!["a".into()], vec!["h".into()])
    );
    assert_eq!(saved.check().unwrap(), [""; 0]);
}
