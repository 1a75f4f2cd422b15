//! `lsmkv bench DIR`: measures a store on this machine with built-in workloads.
//!
//! Each workload runs a number of operations in some threads and times every operation.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Reply};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::store::{OptionArgs, refuse_shared};
use crate::transfer::Interrupt;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// SET of random keys
    Set,
    /// GET of random keys
    Get,
    /// Half GET, half SET
    Mixed,
    /// INCR of random counters
    Incr,
    /// HSET of a field of one of 1,000 hashes
    Hset,
    /// SADD to one of 1,000 sets
    Sadd,
    /// ZADD to one of 1,000 sorted sets
    Zadd,
    /// RPUSH and LPOP on one of 100 queues, in turn
    Queue,
    /// SET with an expiry of an hour
    Expire,
}

/// Arguments of `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Directory of a new store, removed afterwards; must not exist
    dir: PathBuf,
    /// Workloads, in this order [default: all]
    #[arg(short, long = "workload", value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Operations per workload
    #[arg(short, long, default_value_t = 100_000)]
    operations: u64,
    /// Threads
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// Number of different keys
    #[arg(short, long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Size of a value in bytes
    #[arg(short, long, default_value_t = 100)]
    value_bytes: usize,
    /// Keep the store
    #[arg(long)]
    keep: bool,
    /// Print a line of JSON for each workload
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: OptionArgs,
}

struct BenchRun<'a> {
    db: &'a Db,
    args: &'a BenchArgs,
    value: Vec<u8>,
    stop: AtomicBool,
}

pub(crate) fn bench(args: &BenchArgs) -> Outcome {
    if args.dir.exists() {
        let dir = args.dir.display();
        return Err(Failure::usage(format!("{dir}: it exists; the benchmark needs a new store")));
    }
    let interrupt = Interrupt::catch();
    let db = Db::open(&args.dir, refuse_shared(args.options.to_options()?)?)?;
    let outcome = run(args, &db, &interrupt);
    let closed = db.close();
    if !args.keep {
        std::fs::remove_dir_all(&args.dir)?;
    }
    outcome?;
    closed?;
    if interrupt.raised() {
        return Err(Failure::new("stopped; what was measured is incomplete"));
    }
    Ok(ExitCode::SUCCESS)
}

fn run(args: &BenchArgs, db: &Db, interrupt: &Interrupt) -> Result<(), Failure> {
    let workloads = match args.workloads.as_slice() {
        [] => Workload::value_variants(),
        chosen => chosen,
    };
    let mut random = SplitMix64::new(1);
    let value = std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten();
    let value = value.take(args.value_bytes).collect();
    let bench_run = BenchRun { db, args, value, stop: AtomicBool::new(false) };
    let mut out = std::io::stdout().lock();
    if !args.json {
        writeln!(
            out,
            "{:8} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}  microseconds",
            "", "ops/s", "p50", "p95", "p99", "p99.9", "max"
        )?;
    }
    for workload in workloads {
        if interrupt.raised() {
            break;
        }
        let name = workload.to_possible_value().map_or_else(String::new, |it| it.get_name().into());
        let (seconds, times) = bench_run.measure(*workload, interrupt)?;
        let rate = times.len() as f64 / seconds.max(f64::MIN_POSITIVE);
        let at = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1000.0;
        let quantiles = [at(0.5), at(0.95), at(0.99), at(0.999), times.max() as f64 / 1000.0];
        let [p50, p95, p99, p999, max] = quantiles;
        if args.json {
            let line = json!({
                "workload": name, "ops_per_s": rate, "p50_us": p50, "p95_us": p95,
                "p99_us": p99, "p999_us": p999, "max_us": max,
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(
                out,
                "{name:8} {rate:>12.0} {p50:>10.1} {p95:>10.1} {p99:>10.1} {p999:>10.1} {max:>10.1}"
            )?;
        }
        out.flush()?;
    }
    Ok(())
}

type Times = Histogram<u64>;

fn histogram() -> Result<Times, Failure> {
    // Nanoseconds up to an hour, with three significant digits.
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
        .map_err(|error| Failure::new(error.to_string()))
}

impl BenchRun<'_> {
    /// Runs a workload; returns the seconds it took and the times of its operations.
    fn measure(&self, workload: Workload, interrupt: &Interrupt) -> Result<(f64, Times), Failure> {
        let begun = Instant::now();
        let results: Vec<Result<Times, Failure>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.args.threads)
                .map(|thread| scope.spawn(move || self.thread(workload, thread, interrupt)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::new("a thread died"))))
                .collect()
        });
        let seconds = begun.elapsed().as_secs_f64();
        let mut all = histogram()?;
        for times in results {
            all.add(times?).map_err(|error| Failure::new(error.to_string()))?;
        }
        Ok((seconds, all))
    }

    fn thread(
        &self,
        workload: Workload,
        thread: u64,
        interrupt: &Interrupt,
    ) -> Result<Times, Failure> {
        let mut times = histogram()?;
        let mut random = SplitMix64::new(thread + 42);
        let share = self.args.operations / self.args.threads;
        let share = share + u64::from(thread < self.args.operations % self.args.threads);
        for number in 0..share {
            if number.is_multiple_of(256)
                && (interrupt.raised() || self.stop.load(Ordering::Relaxed))
            {
                break;
            }
            let begun = Instant::now();
            let done = self.operation(workload, number, &mut random);
            let elapsed = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            times.saturating_record(elapsed);
            if let Err(failure) = done {
                self.stop.store(true, Ordering::Relaxed);
                return Err(failure);
            }
        }
        Ok(times)
    }

    fn operation(
        &self,
        workload: Workload,
        number: u64,
        random: &mut SplitMix64,
    ) -> Result<(), Failure> {
        let key = format!("key:{:012}", random.below(self.args.keys));
        let member = format!("member:{:012}", random.below(self.args.keys));
        let group = |kind: &str, groups: u64, random: &mut SplitMix64| {
            format!("{kind}:{:04}", random.below(groups))
        };
        let value = self.value.as_slice();
        match workload {
            Workload::Get => self.run(&[b"GET", key.as_bytes()]),
            Workload::Mixed if number.is_multiple_of(2) => self.run(&[b"GET", key.as_bytes()]),
            Workload::Set | Workload::Mixed => self.run(&[b"SET", key.as_bytes(), value]),
            Workload::Expire => self.run(&[b"SET", key.as_bytes(), value, b"EX", b"3600"]),
            Workload::Incr => self.run(&[b"INCR", format!("counter:{key}").as_bytes()]),
            Workload::Hset => {
                let hash = group("hash", 1000, random);
                self.run(&[b"HSET", hash.as_bytes(), member.as_bytes(), value])
            }
            Workload::Sadd => {
                self.run(&[b"SADD", group("set", 1000, random).as_bytes(), member.as_bytes()])
            }
            Workload::Zadd => {
                let (zset, score) =
                    (group("zset", 1000, random), random.below(1 << 20).to_string());
                self.run(&[b"ZADD", zset.as_bytes(), score.as_bytes(), member.as_bytes()])
            }
            Workload::Queue => {
                let queue = format!("queue:{:03}", number / 2 % 100);
                match number % 2 {
                    0 => self.run(&[b"RPUSH", queue.as_bytes(), value]),
                    _ => self.run(&[b"LPOP", queue.as_bytes()]),
                }
            }
        }
    }

    fn run(&self, words: &[&[u8]]) -> Result<(), Failure> {
        match self.db.command(words)? {
            Reply::Error(text) => Err(Failure::new(text)),
            _ => Ok(()),
        }
    }
}
