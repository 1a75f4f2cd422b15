//! Redis structures: what must cost the same whatever their size, and members drawn at random.
//! The command fails when deleting a large hash takes more than thrice as long as a small one, or
//! leaves more than a hundredth of its bytes.

use std::time::Instant;

use lsmkv::{Db, Options, SyncMode};

use super::expect_count;
use crate::Result;
use crate::args::Types;
use crate::scratch;

const SMALL: u64 = 10;
const MOST_TIMES: f64 = 3.0;
/// Fields of one HSET.
const CHUNK: u64 = 10_000;

/// Whether the limits held.
pub(crate) fn command(args: &Types) -> Result<bool> {
    let scratch = scratch::create(args.dir.as_deref())?;
    let options = Options { sync: SyncMode::Off, ..Options::default() };
    let db = Db::open(scratch.path(), options)?;
    let start = Instant::now();
    hash(&db, b"big", args.fields)?;
    println!("HSET of {} fields: {:.1} s", args.fields, start.elapsed().as_secs_f64());
    draw(&db, args)?;
    let quick = delete(&db, args)?;
    let returned = reclaim(&db)?;
    db.close()?;
    Ok(quick && returned)
}

fn hash(db: &Db, key: &[u8], fields: u64) -> Result<()> {
    for from in (0..fields).step_by(usize::try_from(CHUNK)?) {
        let names: Vec<String> = (from..fields.min(from + CHUNK)).map(|n| n.to_string()).collect();
        let pairs: Vec<(&[u8], &[u8])> =
            names.iter().map(|name| (name.as_bytes(), &b"value"[..])).collect();
        db.hset(key, &pairs)?;
    }
    let found = u64::try_from(db.hlen(key)?)?;
    expect_count("fields", found, fields)
}

/// HRANDFIELD, as written and from tables.
fn draw(db: &Db, args: &Types) -> Result<()> {
    for place in ["as written", "from tables"] {
        if place == "from tables" {
            db.compact()?;
        }
        let (one, hundred) = (sampled(db, 1, args)?, sampled(db, 100, args)?);
        println!("HRANDFIELD {place}: 1 {one:.1} us, 100 {hundred:.1} us");
    }
    Ok(())
}

/// The median microseconds of a call.
fn sampled(db: &Db, count: i64, args: &Types) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..args.samples.max(1) * 50 {
        let start = Instant::now();
        let found = db.hrandfield_count(b"big", count)?.len();
        times.push(start.elapsed().as_secs_f64());
        expect_count("fields drawn", found as u64, count.unsigned_abs())?;
    }
    Ok(median(times) * 1e6)
}

/// DEL of copies of the hash, and of small ones in between.
fn delete(db: &Db, args: &Types) -> Result<bool> {
    let (mut small, mut big, mut copied) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.samples.max(1) {
        let start = Instant::now();
        db.copy(b"big", b"copy", true)?;
        copied.push(start.elapsed().as_secs_f64());
        hash(db, b"small", SMALL)?;
        big.push(timed_delete(db, b"copy")?);
        small.push(timed_delete(db, b"small")?);
    }
    let (small, big) = (median(small), median(big));
    let held = big <= small * MOST_TIMES;
    println!("COPY of {} fields: {:.2} s", args.fields, median(copied));
    println!(
        "DEL: {SMALL} fields {:.1} us, {} fields {:.1} us, at most {MOST_TIMES} times as much: {}",
        small * 1e6,
        args.fields,
        big * 1e6,
        if held { "yes" } else { "NO" },
    );
    Ok(held)
}

fn timed_delete(db: &Db, key: &[u8]) -> Result<f64> {
    let start = Instant::now();
    let deleted = db.del(&[key])?;
    let seconds = start.elapsed().as_secs_f64();
    expect_count("keys deleted", deleted.unsigned_abs(), 1)?;
    Ok(seconds)
}

fn reclaim(db: &Db) -> Result<bool> {
    db.compact()?;
    let full = table_bytes(db);
    db.del(&[b"big"])?;
    let start = Instant::now();
    db.compact()?;
    let left = table_bytes(db);
    let held = left * 100 < full;
    println!(
        "compact after DEL: {:.1} s, {left} of {full} bytes left, less than 1%: {}",
        start.elapsed().as_secs_f64(),
        if held { "yes" } else { "NO" },
    );
    Ok(held)
}

fn table_bytes(db: &Db) -> u64 {
    let stats = db.engine_stats();
    stats.trees.iter().flat_map(|tree| &tree.levels).map(|level| level.bytes).sum()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
