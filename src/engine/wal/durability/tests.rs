//! Shared flushes: who waits, who flushes, and what everybody gets when it fails.

use std::sync::Barrier;
use std::thread;

use super::*;
use crate::engine::wal::log::Log;
use crate::engine::wal::sync_file::SyncFile;
use crate::engine::wal::testing::{EIO, TestFs, dir, env, replay_all};
use crate::io::fault::CallClass;

fn log_on(fs: &TestFs) -> Log {
    Log::create(env(fs, 1, 1 << 20), Vec::new()).unwrap()
}

#[test]
fn a_lone_writer_flushes_once_and_at_once() {
    let fs = TestFs::new();
    let log = log_on(&fs);
    let end = log.append(&[b"one"], false).unwrap();
    assert!(log.durable() < end);
    assert!(log.wait_durable(end, None).unwrap());
    assert!(log.wait_durable(end, None).unwrap());
    assert_eq!((log.durable(), log.sync_count()), (end, 1));
    assert_eq!(log.sync_all().unwrap(), end);
    assert_eq!(log.sync_count(), 1, "nothing new, nothing to flush");
    assert_eq!(SyncFile::read(fs.io(), dir()).unwrap().log, end);
}

#[test]
fn a_flush_covers_older_segments_first() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, 4096), Vec::new()).unwrap();
    for fill in 0..3 {
        log.append(&[&[fill; 3900]], false).unwrap();
    }
    fs.take_calls();
    let end = log.sync_all().unwrap();
    let names: Vec<_> = log.segments().iter().map(|cut| cut.0).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(log.sync_count(), 3);
    let synced: Vec<_> = fs.take_calls().into_iter().filter(|c| c.starts_with("Sync")).collect();
    assert!(synced.is_sorted() && synced.len() == 3, "{synced:?}");
    log.append(&[b"x"], false).unwrap();
    log.sync_all().unwrap();
    assert_eq!(log.sync_count(), 4, "finished segments are not flushed again");
    assert!(log.durable() > end);
}

#[test]
fn eight_writers_share_flushes() {
    let fs = TestFs::new();
    let log = log_on(&fs);
    fs.delay_syncs(Duration::from_micros(2000));
    let append = Mutex::new(());
    thread::scope(|scope| {
        for writer in 0..8u8 {
            let (log, append) = (&log, &append);
            scope.spawn(move || {
                for round in 0..25u8 {
                    let end = {
                        let _turn = append.lock();
                        log.append(&[&[writer, round]], false).unwrap()
                    };
                    assert!(log.wait_durable(end, None).unwrap());
                    assert!(log.durable() >= end);
                }
            });
        }
    });
    assert!(log.sync_count() <= 100, "{} flushes for 200 writes", log.sync_count());
    assert_eq!(log.durable(), log.appended());
    assert_eq!(replay_all(&fs).unwrap().0.len(), 200);
}

#[test]
fn a_failed_flush_degrades_all_who_wait_and_is_not_tried_again() {
    let fs = TestFs::new();
    let log = log_on(&fs);
    let durable = log.append(&[b"good"], false).unwrap();
    log.sync_all().unwrap();
    let end = log.append(&[b"lost?"], false).unwrap();
    fs.delay_syncs(Duration::from_micros(20_000));
    fs.fail(&[CallClass::Sync]);
    fs.take_calls();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let error = log.wait_durable(end, None).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Degraded);
                assert_eq!(error.os_errno(), EIO, "{error}");
            });
        }
    });
    fs.faults.disarm();
    assert_eq!(log.sync_all().unwrap_err().kind(), ErrorKind::Degraded);
    assert_eq!(log.append(&[b"more"], false).unwrap_err().kind(), ErrorKind::Degraded);
    assert_eq!(fs.take_calls(), ["SyncData 000001.tmp"], "one sync, and nothing after it");
    assert_eq!(log.durable(), durable);
    assert!(log.wait_durable(durable, None).unwrap(), "what was durable before still is");
    assert_eq!(SyncFile::read(fs.io(), dir()).unwrap().log, durable);
}

#[test]
fn waiting_has_a_timeout_and_zero_only_asks() {
    let fs = TestFs::new();
    let log = log_on(&fs);
    let first = log.append(&[b"one"], false).unwrap();
    assert!(!log.wait_durable(first, Some(Duration::ZERO)).unwrap());
    assert_eq!(log.sync_count(), 0);
    fs.delay_syncs(Duration::from_secs(2));
    thread::scope(|scope| {
        scope.spawn(|| assert!(log.wait_durable(first, Some(Duration::from_secs(60))).unwrap()));
        thread::sleep(Duration::from_millis(50));
        let started = Instant::now();
        assert!(!log.wait_durable(first, Some(Duration::from_millis(20))).unwrap());
        let second = log.append(&[b"two"], false).unwrap();
        assert!(!log.wait_durable(second, Some(Duration::from_millis(20))).unwrap());
        assert!(started.elapsed() < Duration::from_millis(1_500));
    });
    assert!(log.durable() >= first);
}

#[test]
fn a_chosen_flusher_that_times_out_hands_the_flush_on() {
    let fs = TestFs::new();
    let log = log_on(&fs);
    fs.delay_syncs(Duration::from_micros(30_000));
    thread::scope(|scope| {
        for _ in 0..3 {
            let first = log.append(&[b"one"], false).unwrap();
            scope.spawn({
                let log = &log;
                move || assert!(log.wait_durable(first, None).unwrap())
            });
            thread::sleep(Duration::from_millis(10));
            let second = log.append(&[b"two"], false).unwrap();
            for wait_ms in [18, 19, 20, 21, 22, 9000] {
                let log = &log;
                scope.spawn(move || {
                    let timeout = Duration::from_millis(wait_ms);
                    let durable = log.wait_durable(second, Some(timeout)).unwrap();
                    assert!(durable || wait_ms < 100);
                });
            }
            thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Four threads wait for what the running flush does not cover, when `end` is called. They must all
/// fail with `kind` then, and the running flush must succeed.
fn four_wait_for_the_next_flush(end: impl FnOnce(&Log, &Health), kind: ErrorKind) {
    let fs = TestFs::new();
    let shared = env(&fs, 1, 1 << 20);
    let health = shared.health.clone();
    let log = &Log::create(shared, Vec::new()).unwrap();
    let first = log.append(&[b"one"], false).unwrap();
    let held = fs.hold_syncs();
    thread::scope(|scope| {
        let flusher = scope.spawn(|| log.wait_durable(first, None));
        until(log, |state| state.flushing);
        let second = log.append(&[b"two"], false).unwrap();
        let wait = move || log.wait_durable(second, None);
        let waiters: Vec<_> = (0..4).map(|_| scope.spawn(wait)).collect();
        until(log, |state| {
            let next = state.turn + 1;
            *state.waiters(next) == 4
        });
        end(log, &health);
        drop(held);
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().unwrap_err().kind(), kind);
        }
        assert!(flusher.join().unwrap().unwrap(), "its flush had begun");
    });
}

/// Waits until the flush state is as `wanted`.
fn until(log: &Log, wanted: impl Fn(&mut FlushState) -> bool) {
    while !wanted(&mut log.durability().state.lock()) {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn closing_wakes_those_who_wait() {
    four_wait_for_the_next_flush(|log, _| log.close(), ErrorKind::Closed);
}

#[test]
fn an_announced_close_ends_waits_for_tickets_and_lets_writes_go_on() {
    let fs = TestFs::new();
    let log = log_on(&fs);
    let first = log.append(&[b"one"], false).unwrap();
    assert!(log.wait_until_closing(first, None).unwrap());
    log.announce_close();
    assert!(log.wait_until_closing(first, None).unwrap(), "it was durable before");
    let second = log.append(&[b"two"], false).unwrap();
    for timeout in [None, Some(Duration::ZERO), Some(Duration::from_secs(60))] {
        let error = log.wait_until_closing(second, timeout).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    assert_eq!(log.sync_count(), 1, "who gives up flushes nothing");
    assert!(log.wait_durable(second, None).unwrap());
}

#[test]
fn a_fault_elsewhere_leaves_nobody_waiting() {
    // Once a flusher-to-be that found the store degraded left without waking the others.
    let fault = |_: &Log, health: &Health| {
        health.degrade(&Error::new(ErrorKind::Io, "the manifest failed"));
    };
    four_wait_for_the_next_flush(fault, ErrorKind::Degraded);
}

#[test]
fn a_position_beyond_the_end_is_misuse_and_one_of_an_earlier_life_is_durable() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 5, 4096), Vec::new()).unwrap();
    let beyond = LogPosition::new(9, 0);
    assert_eq!(log.wait_durable(beyond, None).unwrap_err().kind(), ErrorKind::Misuse);
    assert!(log.wait_durable(LogPosition::new(4, 900), None).unwrap());
}
