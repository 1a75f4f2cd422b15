//! The story of a store in random schedules, by seed.
//!
//! `LSMKV_SCHEDULES` is the number of seeds, and `LSMKV_SEED` the first. A failure prints the seed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::story;

/// Schedules per seed. The scheduler of the first kind learns from each how long the story is.
const SCHEDULES: usize = 20;
/// Points at which the order of the threads changes; in between, the first that can run does.
const DEPTH: usize = 4;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs a story with each seed, in both kinds of schedules.
fn run(name: &'static str, story: fn(u64)) {
    let first = number("LSMKV_SEED", 1);
    for seed in first..first + number("LSMKV_SCHEDULES", 20) {
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        let outcome = catch_unwind(AssertUnwindSafe(|| match seed % 2 {
            0 => Runner::new(RandomScheduler::new_from_seed(seed, SCHEDULES), config)
                .run(move || story(seed)),
            _ => Runner::new(PctScheduler::new_from_seed(seed, DEPTH, SCHEDULES), config)
                .run(move || story(seed)),
        }));
        if let Err(panic) = outcome {
            eprintln!("{name} failed; to repeat: LSMKV_SEED={seed} LSMKV_SCHEDULES=1 make shuttle");
            resume_unwind(panic);
        }
    }
}

#[test]
fn commits_flushes_snapshots_and_a_close_beside_each_other() {
    run("commits_flushes_snapshots_and_a_close_beside_each_other", story::with_close);
}

#[test]
fn a_power_cut_beside_commits_and_a_flush() {
    run("a_power_cut_beside_commits_and_a_flush", story::with_power_cut);
}

#[test]
fn waits_for_durability_end_when_the_store_closes() {
    run("waits_for_durability_end_when_the_store_closes", story::with_waits);
}
