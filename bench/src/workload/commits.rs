//! Durable commits: one after the other, with tickets outstanding, and of many threads on one key.
//! The command fails when flushes of the device are not shared as they should be.

use std::collections::VecDeque;
use std::time::Instant;

use lsmkv::{Db, Options, SyncMode};

use super::{Timed, expect_count, on_threads};
use crate::Result;
use crate::args::Commits;
use crate::scratch;

/// Tickets one thread has outstanding.
const OUTSTANDING: usize = 64;
/// With them, so many writes share a flush at least.
const SHARED: f64 = 32.0;
const THREADS: u64 = 8;

/// Whether flushes were shared.
pub(crate) fn command(args: &Commits) -> Result<bool> {
    let scratch = scratch::create(args.dir.as_deref())?;
    let options = Options { sync: SyncMode::Always, ..Options::default() };
    let db = Db::open(scratch.path(), options)?;
    let one = measured("one after the other", &db, args.num, one_by_one)?;
    let tickets = measured("64 tickets outstanding", &db, args.num, with_tickets)?;
    let threads = measured("INCR of one key, 8 threads", &db, args.num, increments)?;
    let counter = db.get(b"counter")?.unwrap_or_default();
    let counted: u64 = std::str::from_utf8(&counter)?.parse()?;
    expect_count("increments", counted, args.num / THREADS * THREADS)?;
    db.close()?;
    println!(
        "tickets: {:.1} times the writes a second; threads: {:.1} times",
        tickets.0 / one.0,
        threads.0 / one.0
    );
    let held = tickets.1 >= SHARED && threads.1 > 1.0;
    println!("at least {SHARED} writes a flush with tickets: {}", if held { "yes" } else { "NO" });
    Ok(held)
}

/// Writes per second, and writes per flush.
fn measured(
    what: &str,
    db: &Db,
    num: u64,
    work: impl FnOnce(&Db, u64) -> Result<Timed>,
) -> Result<(f64, f64)> {
    let before = db.engine_stats().syncs;
    let timed = work(db, num)?;
    let syncs = db.engine_stats().syncs - before;
    let rate = timed.ops as f64 / timed.seconds;
    let shared = timed.ops as f64 / syncs.max(1) as f64;
    println!("{what:28}{rate:>9.0} writes a second,{shared:>7.1} writes a flush");
    Ok((rate, shared))
}

fn one_by_one(db: &Db, num: u64) -> Result<Timed> {
    let start = Instant::now();
    for n in 0..num {
        db.set(&n.to_be_bytes(), b"value")?;
    }
    Ok(Timed::since(start, num))
}

fn with_tickets(db: &Db, num: u64) -> Result<Timed> {
    let start = Instant::now();
    let mut outstanding = VecDeque::new();
    for n in 0..num {
        let mut batch = db.batch();
        batch.put(&n.to_be_bytes(), b"value")?;
        outstanding.push_back(batch.commit_async()?);
        if outstanding.len() >= OUTSTANDING {
            // The oldest half is waited for at once: the newest of it is durable after the others.
            let newest = outstanding.drain(..OUTSTANDING / 2).next_back();
            newest.map_or(Ok(true), |ticket| db.wait(ticket, None))?;
        }
    }
    let newest = outstanding.pop_back();
    newest.map_or(Ok(true), |ticket| db.wait(ticket, None))?;
    Ok(Timed::since(start, num))
}

fn increments(db: &Db, num: u64) -> Result<Timed> {
    let start = Instant::now();
    on_threads(THREADS, |_| {
        for _ in 0..num / THREADS {
            db.incr(b"counter")?;
        }
        Ok(())
    })?;
    Ok(Timed::since(start, num / THREADS * THREADS))
}
