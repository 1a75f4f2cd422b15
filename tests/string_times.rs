//! What commands on a string cost, a long one beside a short one. `make large-strings` measures times
//! on a string of 64 MiB and asserts limits; otherwise work is counted, on one of 8 MiB.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a table of times")]

use std::path::Path;
use std::time::Instant;

use lsmkv::types::ExpireIf;
use lsmkv::{Db, Options, Type};

const CHUNK: u64 = 8 << 10;
/// The most bytes that records, keys and frames add to what a change writes.
const FRAME: u64 = 300;
const TIMES: u32 = 500;

/// Whether times are measured.
fn is_long() -> bool {
    std::env::var("LSMKV_LARGE_STRINGS").is_ok_and(|form| form == "long")
}

/// A change of the string `s`, which has this length; its number differs from call to call.
type Change = (&'static str, fn(&Db, u64, u32));

/// A place in the string, in no order.
fn place(len: u64, n: u32) -> u64 {
    u64::from(n.wrapping_mul(0x9e37_79b1)) % (len - 16)
}

const CHANGES: [Change; 4] = [
    ("SETBIT", |db, len, n| {
        // All bytes have another first bit.
        db.setbit(b"s", 8 * place(len, n), true).unwrap();
    }),
    ("SETRANGE of 10 bytes", |db, len, n| {
        db.setrange(b"s", place(len, n) as i64, b"ten bytes.").unwrap();
    }),
    ("APPEND of a byte", |db, _, _| {
        db.append(b"s", b"x").unwrap();
    }),
    ("EXPIRE", |db, _, n| {
        assert!(db.expire(b"s", i64::from(10_000 + n), ExpireIf::ALWAYS).unwrap());
    }),
];

type Question = (&'static str, fn(&Db, u64));

const QUESTIONS: [Question; 4] = [
    ("EXISTS", |db, _| assert_eq!(db.exists(&[b"s"]).unwrap(), 1)),
    ("TTL", |db, _| assert_eq!(db.ttl(b"s").unwrap(), -1)),
    ("TYPE", |db, _| assert_eq!(db.kind(b"s").unwrap(), Some(Type::String))),
    ("STRLEN", |db, len| assert_eq!(db.strlen(b"s").unwrap(), len as i64)),
];

/// A store in which the string `s` of this length is in tables.
fn filled(dir: &Path, len: u64) -> Db {
    let db = Db::open(dir, Options::default()).unwrap();
    let bytes: Vec<u8> = (0..len).map(|at| (at / 7 % 120 + 1) as u8).collect();
    db.set(b"s", &bytes).unwrap();
    db.compact().unwrap();
    db
}

/// Microseconds that one call takes.
fn took(call: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    call();
    begin.elapsed().as_secs_f64() * 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A number of bytes that Linux tells about this process.
fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The memory that a bit far away takes is that of the process: nothing else may run beside this.
#[test]
fn a_long_string_costs_what_a_short_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut slow = Vec::new();
    a_bit_far_away(&dir.path().join("bit"), &mut slow);
    let len = if is_long() { 64 << 20 } else { 8 << 20 };
    changes(dir.path(), len, &mut slow);
    questions(&dir.path().join(len.to_string()), len, &mut slow);
    appends(&dir.path().join("appends"));
    assert!(!is_long() || slow.is_empty(), "{slow:?}");
}

/// SETBIT at the last bit that a string may have, on a key that is not there.
fn a_bit_far_away(dir: &Path, slow: &mut Vec<String>) {
    let db = Db::open(dir, Options::default()).unwrap();
    // What the first write of a store takes is not meant.
    db.setbit(b"other", 1, true).unwrap();
    // The peak begins anew.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let time = took(|| assert!(!db.setbit(b"far", (1 << 32) - 1, true).unwrap()));
    let memory = status("VmHWM:").saturating_sub(before);
    println!("| SETBIT at 2^32-1 of a new key | {time:.0} us | {memory} bytes of memory |");
    if time > 1_000.0 || memory > 1_000_000 {
        slow.push(format!("SETBIT at 2^32-1: {time:.0} us, {memory} bytes of memory"));
    }
    assert_eq!(db.strlen(b"far").unwrap(), 512 << 20);
}

fn changes(dir: &Path, long: u64, slow: &mut Vec<String>) {
    let stores = [1 << 10, long].map(|len| (len, filled(&dir.join(len.to_string()), len)));
    println!("\nMedian in us.\n\n| | 1 KiB | {} MiB | ratio |\n|---|---|---|---|", long >> 20);
    for (name, change) in CHANGES {
        let [short, long] = [0, 1].map(|at: usize| {
            let (len, db) = &stores[at];
            let logged = db.engine_stats().log_bytes;
            let time = median((0..TIMES).map(|n| took(|| change(db, *len, n))).collect());
            let logged = (db.engine_stats().log_bytes - logged) / u64::from(TIMES);
            assert!(logged < CHUNK + FRAME, "{name} of {len}: {logged} bytes");
            time
        });
        println!("| {name} | {short:.1} | {long:.1} | {:.1} |", long / short);
        if long > 10.0 * short {
            slow.push(format!("{name}: {short:.1} and {long:.1} us"));
        }
    }
    let (_, db) = &stores[1];
    assert!(db.persist(b"s").unwrap());
    // APPEND made it longer.
    let end = db.strlen(b"s").unwrap() as u64;
    assert_eq!(end, long + u64::from(TIMES));
    db.set(b"s", &db.getrange(b"s", 0, long as i64 - 1).unwrap()).unwrap();
    db.compact().unwrap();
    stores.into_iter().for_each(|(_, db)| db.close().unwrap());
}

/// The first question that a store is asked.
fn questions(dir: &Path, len: u64, slow: &mut Vec<String>) {
    println!("\nMedian in us, right after a reopen.\n\n| | {} MiB |\n|---|---|", len >> 20);
    for (name, question) in QUESTIONS {
        let first = |_| {
            let db = Db::open(dir, Options::default()).unwrap();
            let chunks = db.engine_stats().trees[1].block_reads;
            let time = took(|| question(&db, len));
            assert_eq!(db.engine_stats().trees[1].block_reads, chunks, "{name}");
            db.close().unwrap();
            time
        };
        let time = median((0..9).map(first).collect());
        println!("| {name} | {time:.1} |");
        if time > 20.0 {
            slow.push(format!("{name}: {time:.1} us"));
        }
    }
}

/// A string that grows by a thousand bytes writes a chunk each time.
fn appends(dir: &Path) {
    let db = Db::open(dir, Options::default()).unwrap();
    for _ in 0..3000 {
        db.append(b"s", &[b'x'; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    let stats = db.engine_stats();
    let written = stats.log_bytes + stats.flushed_bytes + stats.merge_written_bytes;
    println!("\n| 3,000 APPENDs of 1,000 bytes | {:.1} MB written |", written as f64 / 1e6);
    assert!(written < 60_000_000, "{written} bytes for 3,000,000");
}
