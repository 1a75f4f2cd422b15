//! Appending: segments, their order, and a full disk.

#![expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]

use super::*;
use crate::engine::wal::testing::{EIO, TestFs, env, replay, replay_all};
use crate::io::fault::CallClass;

const PAGE: u64 = 4096;

fn group(count: usize, size: usize, fill: u8) -> Vec<Vec<u8>> {
    (0..count).map(|i| vec![fill ^ i as u8; size + i % 3]).collect()
}

fn slices(group: &[Vec<u8>]) -> Vec<&[u8]> {
    group.iter().map(Vec::as_slice).collect()
}

#[test]
fn groups_of_many_sizes_read_back_over_many_segments() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let mut expected = Vec::new();
    let mut ends = vec![log.appended()];
    for (count, size) in [(1, 0), (3, 1), (10, 7), (1, 8), (7, 333), (2, 4000), (1, 20_000)] {
        for round in 0..20 {
            let group = group(count, size, round);
            ends.push(log.append(&slices(&group), false).unwrap());
            expected.extend(group);
        }
    }
    assert!(ends.is_sorted_by(|a, b| a < b), "positions grow");
    assert!(fs.names(".log").len() > 40);
    let (payloads, recovered) = replay_all(&fs).unwrap();
    assert_eq!(payloads, expected);
    assert_eq!(recovered.end, *ends.last().unwrap());
    assert_eq!(recovered.bytes, log.bytes_appended());
    assert_eq!(recovered.records, expected.len() as u64);
    assert_eq!(recovered.discarded_bytes, 0);
    assert_eq!(recovered.segments, log.segments());
}

#[test]
fn a_group_is_one_write() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    fs.take_calls();
    log.append(&slices(&group(50, 10, 1)), false).unwrap();
    let calls = fs.take_calls();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].starts_with("WriteAt"), "{calls:?}");
    log.append(&[], false).unwrap();
    assert!(fs.take_calls().is_empty());
}

#[test]
fn a_segment_is_whole_and_durable_before_it_has_its_name() {
    let fs = TestFs::new();
    let _log = Log::create(env(&fs, 5, PAGE), Vec::new()).unwrap();
    let calls = fs.take_calls();
    let from = calls.iter().position(|call| call == "Create 000005.tmp").unwrap();
    let expected = [
        "Create 000005.tmp",
        "WriteAt 000005.tmp",
        "Allocate 000005.tmp",
        "SyncAll 000005.tmp",
        "Rename 000005.tmp",
        "SyncDir /store",
    ];
    assert_eq!(calls[from..from + expected.len()], expected);
}

#[test]
fn segments_start_small_and_double_up_to_the_largest() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, 3 << 20), Vec::new()).unwrap();
    let half = vec![1; 500 << 10];
    while fs.names(".log").len() < 5 {
        log.append(&[&half], false).unwrap();
    }
    let sizes: Vec<_> = fs.names(".log").iter().map(|name| fs.content(name).len() >> 20).collect();
    assert_eq!(sizes, [1, 2, 3, 3, 3]);
}

#[test]
fn a_group_larger_than_a_segment_gets_one_of_its_own_size() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    log.prepare_next().unwrap();
    let prepared = fs.names(".log")[1].clone();
    let large = vec![7; 100_000];
    log.append(&[b"small"], false).unwrap();
    log.append(&[&large], false).unwrap();
    assert!(!fs.names(".log").contains(&prepared), "too small and now out of order");
    log.append(&[b"after"], false).unwrap();
    let sizes: Vec<_> = fs.names(".log").iter().map(|name| fs.content(name).len() as u64).collect();
    assert_eq!(sizes[0], PAGE);
    assert!(sizes[1] > 100_000 && sizes[1] < 110_000, "{sizes:?}");
    let (payloads, _) = replay_all(&fs).unwrap();
    assert_eq!(payloads, [b"small".to_vec(), large, b"after".to_vec()]);
}

#[test]
fn the_next_segment_is_wanted_when_half_full_and_taken_without_creating_one() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    assert!(!log.needs_preparation());
    log.append(&[&[1; 2500]], false).unwrap();
    assert!(log.needs_preparation());
    log.prepare_next().unwrap();
    assert!(!log.needs_preparation());
    fs.take_calls();
    log.append(&[&[2; 2500]], false).unwrap();
    assert_eq!(fs.take_calls().len(), 1, "only the write of the group");
    assert_eq!(replay_all(&fs).unwrap().0, [vec![1; 2500], vec![2; 2500]]);
}

#[test]
fn a_full_disk_changes_nothing_and_the_log_goes_on_when_there_is_space() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    fs.fill_disk();
    log.append(&[&[1; 2500]], false).unwrap();
    let before = (fs.names(""), log.appended());
    for _ in 0..3 {
        let error = log.append(&[&[2; 2500]], false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
        assert_eq!(log.prepare_next().unwrap_err().kind(), ErrorKind::Full);
    }
    assert_eq!((fs.names(""), log.appended()), before);
    let error = log.append(&[b"what would fit"], false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "the rest is for deletes");
    fs.free_disk();
    log.append(&[&[3; 2500]], false).unwrap();
    let expected = [vec![1; 2500], vec![3; 2500]];
    assert_eq!(replay_all(&fs).unwrap().0, expected);
    assert!(log.env.health.check().is_ok());
}

#[test]
fn a_delete_on_a_full_disk_uses_the_reserve_and_nothing_else_does() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    fs.fill_disk();
    log.append(&[&[1; 4000]], false).unwrap();
    assert_eq!(
        log.append(&[b"a write that is long enough not to fit"], false).unwrap_err().kind(),
        ErrorKind::Full
    );
    log.append(&[b"a delete that is long enough not to fit"], true).unwrap();
    let error = log.append(&[b"write"], false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "what is left of the reserve is for deletes");
    log.append(&[b"delete 2"], true).unwrap();
    fs.free_disk();
    log.append(&[b"write"], false).unwrap();
    assert!(log.env.space.reserve.is_complete(), "set aside again");
    let payloads = replay_all(&fs).unwrap().0;
    let tail: Vec<&[u8]> = payloads[1..].iter().map(Vec::as_slice).collect();
    let delete: &[u8] = b"a delete that is long enough not to fit";
    assert_eq!(tail, [delete, b"delete 2", b"write"]);
}

#[test]
fn a_reserve_segment_is_used_in_the_order_of_numbers() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    log.prepare_next().unwrap();
    fs.fill_disk();
    for fill in 0..2 {
        log.append(&[&[fill; 3900]], false).unwrap();
    }
    log.append(&[&[2; 3900]], true).unwrap();
    let numbers: Vec<_> = log.segments().iter().map(|cut| cut.0).collect();
    assert!(numbers.is_sorted() && numbers.len() == 3, "{numbers:?}");
    assert_eq!(replay_all(&fs).unwrap().0.len(), 3);
}

#[test]
fn a_failed_write_degrades_the_store() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let end = log.append(&[b"one"], false).unwrap();
    fs.fail(&[CallClass::Write]);
    let error = log.append(&[b"two"], false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Degraded);
    assert_eq!(error.os_errno(), EIO, "{error}");
    fs.faults.disarm();
    assert_eq!(log.append(&[b"three"], false).unwrap_err().kind(), ErrorKind::Degraded);
    assert_eq!(log.wait_durable(end, None).unwrap_err().kind(), ErrorKind::Degraded);
    assert_eq!(log.prepare_next().unwrap_err().kind(), ErrorKind::Degraded);
}

#[test]
fn retiring_removes_only_segments_wholly_before_and_never_the_current_one() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let ends: Vec<_> = (0..4).map(|i| log.append(&[&[i; 3900]], false).unwrap()).collect();
    log.retire_before(ends[1]).unwrap();
    let left: Vec<_> = log.segments().iter().map(|cut| cut.0).collect();
    assert_eq!(left, [ends[1].segment, ends[2].segment, ends[3].segment]);
    assert_eq!(fs.names(".log").len(), 3);
    log.retire_before(LogPosition::new(u64::MAX, 0)).unwrap();
    assert_eq!(log.segments(), [(ends[3].segment, ends[3].offset)]);
    assert_eq!(fs.names(".log").len(), 1);
    let start = LogPosition::new(ends[3].segment, 0);
    assert_eq!(replay(&fs, start, &[]).unwrap().0, [vec![3; 3900]]);
}

#[test]
fn closing_gives_back_what_was_held_ready() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    log.append(&[b"one"], false).unwrap();
    log.prepare_next().unwrap();
    log.close();
    assert_eq!(fs.names(".tmp"), Vec::<String>::new());
    assert_eq!(fs.names(".log").len(), 1);
    assert_eq!(log.append(&[b"two"], false).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(log.prepare_next().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn segments_prepared_by_another_thread_are_used_in_order() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let done = AtomicBool::new(false);
    let expected: Vec<Vec<u8>> = (0..400).map(|i: usize| vec![i as u8; 900 + i % 7]).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if log.needs_preparation() {
                    log.prepare_next().unwrap();
                }
                std::thread::yield_now();
            }
        });
        for (i, payload) in expected.iter().enumerate() {
            let end = log.append(&[payload], false).unwrap();
            if i % 16 == 0 {
                assert!(log.wait_durable(end, None).unwrap());
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(log.segments().is_sorted());
    assert_eq!(replay_all(&fs).unwrap().0, expected);
}

#[test]
fn segments_that_someone_wants_kept_stay_until_no_one_does() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let mut starts = Vec::new();
    while starts.len() < 5 {
        let end = log.append(&[&[1; 3000]], false).unwrap();
        starts.push(LogPosition::new(end.segment, FILE_HEADER_BYTES));
    }
    let (late, early) = (log.pin_from(starts[3]), log.pin_from(starts[1]));
    let twice = log.pin_from(starts[1]);
    let first = |log: &Log| log.segments()[0].0;
    let retire = || log.retire_before(log.appended()).unwrap();
    retire();
    assert_eq!(first(&log), starts[1].segment);
    drop(early);
    retire();
    assert_eq!(first(&log), starts[1].segment);
    drop(twice);
    assert_eq!(first(&log), starts[1].segment, "removed by the next call, not by the guard");
    retire();
    assert_eq!(first(&log), starts[3].segment);
    drop(late);
    retire();
    assert_eq!(fs.names(".log").len(), 1);
}

/// `segments` once read the end of the log after the list of older segments. A segment that ended
/// in between was in neither, and a checkpoint left out what it held.
#[test]
fn no_segment_is_missing_from_a_list_made_while_others_append() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let record = vec![7; 3000];
            for _ in 0..3000 {
                log.append(&[&record], false).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut before = log.segments();
        while !done.load(Ordering::SeqCst) {
            let now = log.segments();
            let (current, older) = before.split_last().unwrap();
            assert!(now.starts_with(older), "{older:?} were listed before");
            assert!(now.iter().any(|cut| cut.0 == current.0), "{current:?} was listed before");
            before = now;
        }
    });
}
