//! A store far larger than its memory budget: what the load and random reads cost in memory and
//! in table blocks. The command fails when either exceeds its limit.
//!
//! Runs in this very process, which does nothing else, so the process's memory is the store's.

use std::path::Path;
use std::time::Instant;

use super::{Timed, expect_count};
use crate::Result;
use crate::args::Big;
use crate::keys::{KEY_BYTES, Permutation, Random, stored};
use crate::measure::process::{Memory, memory, written_bytes};
use crate::peers::{Job, Peer, dispatch};
use crate::plan::{Compression, Settings};
use crate::scratch;
use crate::values::Values;

const SAMPLES: u64 = 20;
const MIB: f64 = 1_048_576.0;

/// Whether both limits held.
pub(crate) fn command(args: &Big) -> Result<bool> {
    let scratch = scratch::create(args.dir.as_deref())?;
    dispatch(args.peer, Load { args, dir: scratch.path() })
}

struct Load<'a> {
    args: &'a Big,
    dir: &'a Path,
}

impl Job for Load<'_> {
    type Output = bool;

    fn run<P: Peer>(self) -> Result<bool> {
        let args = self.args;
        let peer = P::open(self.dir, &settings(args), args.bytes)?;
        let num = (args.bytes / (KEY_BYTES + args.value_bytes) as u64).max(1);
        let values = Values::new(args.value_bytes, args.seed);
        load(&peer, args, num, &values)?;
        let per_get = read(&peer, args, num, &values)?;
        println!("on disk: {:.0} MiB", scratch::disk_bytes(self.dir)? as f64 / MIB);
        let peak = sampled()?.peak;
        peer.close()?;
        Ok(report_limits(args, peak, per_get))
    }
}

fn settings(args: &Big) -> Settings {
    Settings {
        write_buffer: 0,
        cache: 0,
        memory_budget: Some(args.memory_budget),
        bloom_bits: 10,
        background_jobs: 2,
        compression: Compression::None,
        synced: false,
    }
}

fn load<P: Peer>(peer: &P, args: &Big, num: u64, values: &Values) -> Result<()> {
    let order = Permutation::new(num, args.seed);
    let written = written_bytes();
    let start = Instant::now();
    let every = (num / SAMPLES).max(1);
    for step in 0..num {
        let index = order.at(step);
        peer.put(&stored(index), values.of(index))?;
        if step % every == every - 1 {
            let Memory { resident, peak } = sampled()?;
            println!(
                "loaded {:>3.0}%: {:>6.0} s, resident {:.0} MiB, peak {:.0} MiB",
                100.0 * (step + 1) as f64 / num as f64,
                start.elapsed().as_secs_f64(),
                resident as f64 / MIB,
                peak as f64 / MIB,
            );
        }
    }
    report("load", Timed::since(start, num));
    peer.settle()?;
    println!("settled after {:.0} s", start.elapsed().as_secs_f64());
    if let (Some(before), Some(after)) = (written, written_bytes()) {
        let ratio = after.saturating_sub(before) as f64 / args.bytes as f64;
        println!("write amplification: {ratio:.2}");
    }
    Ok(())
}

/// Table blocks read per get, where the peer counts them.
fn read<P: Peer>(peer: &P, args: &Big, num: u64, values: &Values) -> Result<Option<f64>> {
    let mut random = Random::new(!args.seed);
    let mut right = 0;
    let blocks_before = peer.block_reads();
    let start = Instant::now();
    for _ in 0..args.reads {
        let index = random.below(num);
        let expected = values.of(index);
        peer.get(&stored(index), |value| right += u64::from(value == expected))?;
    }
    report("random reads", Timed::since(start, args.reads));
    expect_count("values read back", right, args.reads)?;
    let blocks = peer.block_reads().zip(blocks_before).map(|(after, before)| after - before);
    Ok(blocks.map(|blocks| blocks as f64 / args.reads.max(1) as f64))
}

fn report_limits(args: &Big, peak: u64, per_get: Option<f64>) -> bool {
    let memory_held = peak < args.max_rss;
    println!(
        "peak resident memory: {:.0} MiB, below {:.0} MiB: {}",
        peak as f64 / MIB,
        args.max_rss as f64 / MIB,
        yes_or_no(memory_held),
    );
    let Some(per_get) = per_get else {
        println!("table blocks a get: not counted by this peer");
        return memory_held;
    };
    let reads_held = per_get <= args.max_block_reads;
    println!(
        "table blocks a get: {per_get:.3}, at most {:.2}: {}",
        args.max_block_reads,
        yes_or_no(reads_held),
    );
    memory_held && reads_held
}

fn yes_or_no(held: bool) -> &'static str {
    if held { "yes" } else { "NO" }
}

fn sampled() -> Result<Memory> {
    memory().ok_or_else(|| "this system does not tell a process's memory".into())
}

fn report(what: &str, timed: Timed) {
    let thousands = timed.ops as f64 / timed.seconds / 1e3;
    println!("{what}: {} in {:.1} s, {thousands:.1} thousand a second", timed.ops, timed.seconds);
}
