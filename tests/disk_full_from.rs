//! The disk is full from allocation n on, for every n of a workload that fills a store, deletes and
//! fills it again: whatever the store was just doing, nothing is lost, no delete is refused, and what
//! is deleted brings writes back. Somebody else takes the space at once and keeps it. A process that
//! dies at that moment finds a store that does the same.
//!
//! `LSMKV_FULL_FROM=all` takes every n, otherwise every eleventh (`make torture-full-disk`).
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may")]

mod disk_support;
mod fault_support;
mod support;

use std::time::Duration;

use disk_support::{Disk, assert_full, check, options};
use fault_support::{Contents, Watchdog, nothing, open_mem};
use lsmkv::engine::{Engine, MemFs};
use lsmkv::io::mem::CrashMode;

/// Batches of each fill: a few hundred KB, which are flushed and merged meanwhile.
const FILL: u64 = 480;
/// What deletes must free for the store to leave the full state: a log segment and a manifest of the
/// reserve, which a new life may have taken, and a quarter of that for writes.
const ENOUGH_FREED: usize = (96 + 64 + 40) << 10;
const SOON: Duration = Duration::from_secs(5);

/// What happened to one n.
#[derive(Debug, Default)]
struct Outcome {
    /// Whether the workload made so many allocations.
    was_reached: bool,
    /// Whether a write was refused.
    was_refused: bool,
    /// Whether writes came back by deletes alone.
    came_back: bool,
}

/// A disk that is full from allocation `n` on; `None` if the store could not even be made.
fn full_from(n: u64, threads: u32) -> Option<Disk> {
    let fs = MemFs::new();
    fs.fill_at_allocation(n);
    let engine = open_mem(&fs, options(threads)).inspect_err(assert_full).ok()?;
    Some(Disk { fs, engine, model: nothing(), next: 0 })
}

/// A store that could not be made leaves nothing in the way of another one.
fn check_that_it_can_be_made(n: u64, threads: u32) {
    let fs = MemFs::new();
    fs.fill_at_allocation(n);
    open_mem(&fs, options(threads)).map(|_: Engine| ()).inspect_err(assert_full).unwrap_err();
    fs.set_capacity(u64::MAX);
    let engine = open_mem(&fs, options(threads)).unwrap();
    check(&engine, &nothing(), "made after all");
}

/// The store of a process that dies now; `None` if it cannot be opened. That happens to a store alone
/// that was made on a full disk, never had its reserve and so never took a write.
fn killed(disk: &Disk, threads: u32) -> Option<Disk> {
    let fs = disk.fs.crash_clone(0, CrashMode::KeepAll);
    let engine = match open_mem(&fs, options(threads)) {
        Err(error) if disk.model == nothing() => {
            assert_full(&error);
            return None;
        }
        opened => opened.unwrap_or_else(|error| panic!("killed: {error:?}")),
    };
    check(&engine, &disk.model, "after the process died");
    Some(Disk { fs, engine, model: disk.model.clone(), next: disk.next })
}

/// Deletes `percent` of all keys. Writes come back, and the store goes on in later lives.
/// Returns whether deletes alone were to bring writes back.
fn free_and_go_on(mut disk: Disk, percent: usize, threads: u32) -> bool {
    let before = live_bytes(&disk.model);
    disk.delete_share(percent);
    disk.check("after the deletes");
    let comes_back = before - live_bytes(&disk.model) >= ENOUGH_FREED;
    if !comes_back {
        disk.fs.set_capacity(u64::MAX);
    }
    disk.work_resumes(SOON);
    disk.check("after writes came back");
    disk.check_reopened(&options(threads));
    comes_back
}

fn live_bytes(model: &Contents) -> usize {
    model.iter().flatten().map(|(key, value)| key.len() + value.len()).sum()
}

/// Runs the workload until the disk is full, then what must hold.
fn run(n: u64, threads: u32) -> Outcome {
    let mut outcome = Outcome { was_reached: true, ..Outcome::default() };
    let Some(mut disk) = full_from(n, threads) else {
        check_that_it_can_be_made(n, threads);
        return outcome;
    };
    let percent = if n.is_multiple_of(2) { 100 } else { 60 };
    for deleted in [percent, 50, percent] {
        outcome.was_refused = disk.write_up_to(FILL);
        if outcome.was_refused {
            break;
        }
        disk.delete_share(deleted);
    }
    outcome.was_reached = disk.fs.allocations() >= n;
    if outcome.was_reached {
        disk.check("on the full disk");
        if let Some(killed) = killed(&disk, threads) {
            free_and_go_on(killed, percent, threads);
        }
        outcome.came_back = free_and_go_on(disk, percent, threads);
    }
    outcome
}

/// Every `step`th n, until the workload makes no more allocations.
fn run_all(step: usize, threads: u32) {
    let watchdog = Watchdog::start(Duration::from_secs(60));
    let (mut cases, mut refused, mut came_back) = (0, 0, 0);
    for n in (1..).step_by(step) {
        watchdog.beat();
        let outcome = std::panic::catch_unwind(|| run(n, threads))
            .unwrap_or_else(|_| panic!("full from allocation {n} on, {threads} threads"));
        if !outcome.was_reached {
            break;
        }
        cases += 1;
        refused += usize::from(outcome.was_refused);
        came_back += usize::from(outcome.came_back);
    }
    println!("{cases} cases, {refused} refused, {came_back} came back");
    assert!(cases > 100 / step, "{cases} allocations are too few to tell");
    assert!(refused > cases / 2 && came_back > cases / 4, "{refused} and {came_back} of {cases}");
}

fn step() -> usize {
    match std::env::var("LSMKV_FULL_FROM").as_deref() {
        Ok("all") => 1,
        _ => 11,
    }
}

#[test]
fn a_store_without_threads_goes_on_wherever_the_disk_becomes_full() {
    run_all(step(), 0);
}

/// With threads, an allocation with the same number is another one in every run.
#[test]
fn a_store_with_threads_goes_on_wherever_the_disk_becomes_full() {
    run_all(step() * 3, 1);
}
