//! Damage of every sort: what was synced is refused or whole, what was not is a prefix.

#![expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]

use super::*;
use crate::engine::wal::log::Log;
use crate::engine::wal::record::{encode, encode_link};
use crate::engine::wal::testing::{Replayed, TestFs, dir, env, replay, replay_all};
use crate::error::ErrorKind;

const PAGE: u64 = 4096;

fn payload(i: usize) -> Vec<u8> {
    vec![b'a' + (i % 26) as u8; 5 + i * 7 % 60]
}

/// A log of `synced` durable records and `more` that are not, in one segment.
fn log_with(synced: usize, more: usize) -> (TestFs, Log) {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    (0..synced).for_each(|i| _ = log.append(&[&payload(i)], false).unwrap());
    log.sync_all().unwrap();
    (synced..synced + more).for_each(|i| _ = log.append(&[&payload(i)], false).unwrap());
    (fs, log)
}

/// Three segments of one record each, all durable or none but by `synced`.
fn three_segments(synced: bool) -> (TestFs, Vec<Cut>) {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    for fill in 0..3 {
        log.append(&[&[fill; 3900]], false).unwrap();
    }
    if synced {
        log.sync_all().unwrap();
    }
    let segments = log.segments();
    (fs, segments)
}

fn name(number: FileNumber) -> String {
    format!("{number:06}.log")
}

#[track_caller]
fn assert_corrupt(result: Replayed, named: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(named), "{error} does not name {named}");
}

fn expect_prefix(replayed: &[Vec<u8>], at_least: usize) {
    assert!(replayed.len() >= at_least, "{} of {at_least}", replayed.len());
    replayed.iter().enumerate().for_each(|(i, p)| assert_eq!(*p, payload(i)));
}

#[test]
fn every_bit_flip_in_a_synced_log_refuses_or_changes_nothing() {
    let (fs, log) = log_with(12, 0);
    let end = log.appended().offset as usize;
    for bit in 0..(end + 64) * 8 {
        let copy = fs.copy();
        copy.change("000001.log", |data| data[bit / 8] ^= 1 << (bit % 8));
        match replay_all(&copy) {
            Ok((payloads, _)) => {
                expect_prefix(&payloads, 12);
                assert_eq!(payloads.len(), 12, "bit {bit}");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}: {error}"),
        }
    }
}

#[test]
fn every_truncation_of_a_segment_refuses() {
    let (fs, _log) = log_with(4, 1);
    for len in 0..PAGE as usize {
        let copy = fs.copy();
        copy.change("000001.log", |data| data.truncate(len));
        assert_corrupt(replay_all(&copy), "000001.log");
    }
    let copy = fs.copy();
    copy.change("000001.log", |data| data.push(0));
    assert_corrupt(replay_all(&copy), "000001.log");
}

#[test]
fn every_bit_flip_and_every_zeroed_rest_in_an_unsynced_tail_leaves_a_prefix() {
    let (fs, log) = log_with(5, 6);
    let from = log.durable().offset as usize;
    let end = log.appended().offset as usize;
    for bit in from * 8..end * 8 {
        let copy = fs.copy();
        copy.change("000001.log", |data| data[bit / 8] ^= 1 << (bit % 8));
        expect_prefix(&replay_all(&copy).unwrap().0, 5);
    }
    for cut in from..end {
        let copy = fs.copy();
        copy.change("000001.log", |data| data[cut..].fill(0));
        let (payloads, recovered) = replay_all(&copy).unwrap();
        expect_prefix(&payloads, 5);
        assert!(recovered.end.offset as usize <= cut.next_multiple_of(8));
        // A torn tail is given up for good: what replaces it starts in another segment.
        let again = replay(&copy, LogPosition::default(), &recovered.segments).unwrap();
        assert_eq!(again.0, payloads);
    }
}

#[test]
fn damage_of_synced_records_is_found_even_without_the_file_sync() {
    // The records after the damage say that it had been synced.
    let (fs, log) = log_with(3, 0);
    log.append(&[&payload(3)], false).unwrap();
    fs.delete("SYNC");
    fs.change("000001.log", |data| data[40] ^= 1);
    assert_corrupt(replay_all(&fs), "000001.log is damaged at offset 32");
}

#[test]
fn without_any_evidence_damage_is_a_torn_tail() {
    let (fs, log) = log_with(0, 6);
    let end = log.appended().offset;
    fs.change("000001.log", |data| data[32 + 20] ^= 1);
    let (payloads, recovered) = replay_all(&fs).unwrap();
    assert_eq!(payloads.len(), 0);
    assert_eq!(recovered.discarded_bytes, end - 32);
    assert_eq!(recovered.segments, [(1, 0)]);
}

#[test]
fn a_torn_or_zeroed_file_sync_is_no_obstacle() {
    for damage in [0..48, 512..560, 0..1024] {
        let (fs, _log) = log_with(7, 0);
        fs.change("SYNC", |data| data[damage].fill(0));
        assert_eq!(replay_all(&fs).unwrap().0.len(), 7);
    }
}

#[test]
fn a_later_segment_is_evidence_against_an_earlier_one() {
    let (fs, segments) = three_segments(true);
    fs.delete("SYNC");
    // Nothing after the damage in its own segment, and no record names what came after the sync.
    fs.change(&name(segments[0].0), |data| data[100] ^= 1);
    let (payloads, _) = replay_all(&fs).unwrap();
    assert!(payloads.is_empty(), "no evidence at all");

    let (fs, segments) = three_segments(true);
    fs.change(&name(segments[0].0), |data| data[100] ^= 1);
    assert_corrupt(replay_all(&fs), &name(segments[0].0));
}

#[test]
fn unsynced_records_after_a_hole_are_given_up() {
    let (fs, segments) = three_segments(false);
    fs.change(&name(segments[1].0), |data| data[100] ^= 1);
    let (payloads, recovered) = replay_all(&fs).unwrap();
    assert_eq!(payloads, [vec![0; 3900]]);
    let cuts = [segments[0], (segments[1].0, segments[1].1), (segments[2].0, 0)];
    // The link of the second segment was sound.
    assert_eq!(recovered.segments, [cuts[0], (cuts[1].0, 32 + 40), cuts[2]]);
    assert!(recovered.discarded_bytes > 2 * 3900);
}

#[test]
fn a_missing_segment_in_the_middle_is_damage() {
    for synced in [false, true] {
        let (fs, segments) = three_segments(synced);
        fs.delete(&name(segments[1].0));
        assert_corrupt(replay_all(&fs), &name(segments[1].0));
    }
}

#[test]
fn a_missing_last_or_only_segment_is_noticed_when_it_was_synced() {
    let (fs, segments) = three_segments(true);
    fs.delete(&name(segments[2].0));
    assert_corrupt(replay_all(&fs), &name(segments[2].0));
    let (fs, _log) = log_with(3, 0);
    fs.delete("000001.log");
    assert_corrupt(replay_all(&fs), "000001.log");
}

#[test]
fn an_empty_log_and_an_absent_one_are_fine() {
    let fs = TestFs::new();
    assert_eq!(replay_all(&fs).unwrap().1, Recovered::default());
    let _log = Log::create(env(&fs, 4, PAGE), Vec::new()).unwrap();
    let (payloads, recovered) = replay_all(&fs).unwrap();
    assert!(payloads.is_empty());
    assert_eq!(recovered.segments, [(4, 0)]);
    let (payloads, _) = replay(&fs, LogPosition::new(9, 0), &[]).unwrap();
    assert!(payloads.is_empty());
}

#[test]
fn numbers_used_by_other_files_are_no_gap() {
    let fs = TestFs::new();
    let shared = env(&fs, 1, PAGE);
    let log = Log::create(shared.clone(), Vec::new()).unwrap();
    for fill in 0..3 {
        log.append(&[&[fill; 3900]], false).unwrap();
        (0..10).for_each(|_| _ = shared.numbers.allocate());
    }
    assert_eq!(replay_all(&fs).unwrap().0.len(), 3);
}

#[test]
fn an_unused_prepared_segment_in_between_or_at_the_end_is_skipped() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    log.append(&[b"one"], false).unwrap();
    log.prepare_next().unwrap();
    let prepared = fs.names(".log")[1].clone();
    let content = fs.content(&prepared);
    log.append(&[&[2; 9000]], false).unwrap();
    // Its removal was not durable.
    fs.replace(&prepared, &content);
    log.prepare_next().unwrap();
    let (payloads, recovered) = replay_all(&fs).unwrap();
    assert_eq!(payloads, [b"one".to_vec(), vec![2; 9000]]);
    let ends: Vec<_> = recovered.segments.iter().map(|cut| cut.1 > 0).collect();
    assert_eq!(ends, [true, false, true, false]);
}

#[test]
fn a_link_that_disagrees_with_its_predecessor_is_not_followed() {
    for (offset, refused) in [(-8, true), (8, false)] {
        let (fs, segments) = three_segments(false);
        let (first, end) = segments[0];
        let wrong = LogPosition::new(first, end.wrapping_add_signed(offset));
        let at = LogPosition::new(segments[1].0, 32);
        let mut link = Vec::new();
        encode(&mut link, at, RecordKind::Link, LogPosition::default(), &encode_link(wrong));
        fs.change(&name(segments[1].0), |data| data[32..72].copy_from_slice(&link));
        match replay_all(&fs) {
            Err(error) => assert!(refused && error.kind() == ErrorKind::Corrupt, "{error}"),
            Ok((payloads, _)) => assert!(!refused && payloads == [vec![0; 3900]]),
        }
    }
}

#[test]
fn segments_of_an_earlier_life_end_at_their_cut_and_damage_before_it_refuses() {
    let (fs, _log) = log_with(3, 4);
    fs.change("000001.log", |data| data[400..].fill(0));
    let (first_life, recovered) = replay_all(&fs).unwrap();
    assert!(first_life.len() >= 3 && first_life.len() < 7);
    seal(fs.io(), dir(), &recovered.segments, recovered.synced).unwrap();

    let shared = env(&fs, 20, PAGE);
    let log = Log::create(shared, recovered.segments.clone()).unwrap();
    log.append(&[b"second life"], false).unwrap();
    log.sync_all().unwrap();
    let mut expected = first_life.clone();
    expected.push(b"second life".to_vec());
    let cuts = recovered.segments;
    let (payloads, second) = replay(&fs, LogPosition::default(), &cuts).unwrap();
    assert_eq!(payloads, expected);
    assert_eq!(second.segments[0], cuts[0]);

    // Beyond the cut anything may stand.
    let copy = fs.copy();
    let cut = cuts[0].1 as usize;
    copy.change("000001.log", |data| data[cut..].fill(0xee));
    assert_eq!(replay(&copy, LogPosition::default(), &cuts).unwrap().0, expected);
    // Before it, nothing but what was there.
    let copy = fs.copy();
    copy.change("000001.log", |data| data[cut - 16] ^= 4);
    assert_corrupt(replay(&copy, LogPosition::default(), &cuts), "000001.log");
    fs.delete("000001.log");
    assert_corrupt(replay(&fs, LogPosition::default(), &cuts), "000001.log");
}

#[test]
fn a_torn_tail_is_never_appended_to_and_a_crash_before_the_cuts_are_recorded_is_harmless() {
    let (fs, segments) = three_segments(false);
    fs.change(&name(segments[1].0), |data| data[100] ^= 1);
    let before: Vec<_> = segments.iter().map(|cut| fs.content(&name(cut.0))).collect();
    let (first, recovered) = replay_all(&fs).unwrap();
    // The next life creates its segment and crashes; the one after it finds the same log.
    let log = Log::create(env(&fs, 20, PAGE), recovered.segments.clone()).unwrap();
    let (again, second) = replay_all(&fs).unwrap();
    assert_eq!((&again, second.end), (&first, recovered.end));
    // Now the cuts are recorded, and what they discard removed.
    log.append(&[b"new"], false).unwrap();
    log.sync_all().unwrap();
    fs.delete(&name(segments[2].0));
    let (payloads, _) = replay(&fs, LogPosition::default(), &second.segments[..3]).unwrap();
    assert_eq!(payloads, [first, vec![b"new".to_vec()]].concat());
    let content = |cut: &Cut| fs.content(&name(cut.0));
    assert_eq!(segments[..2].iter().map(content).collect::<Vec<_>>(), before[..2]);
}

#[test]
fn a_removed_segment_that_a_power_cut_brings_back_is_ignored() {
    let (fs, segments) = three_segments(true);
    let cuts = [segments[0], segments[2]];
    let (payloads, _) = replay(&fs, LogPosition::default(), &cuts).unwrap();
    assert_eq!(payloads, [vec![0; 3900], vec![2; 3900]], "the second had been discarded");
}

#[test]
fn replay_starts_where_it_is_told_to() {
    let (fs, log) = log_with(6, 0);
    let mut positions = Vec::new();
    let state = Default::default();
    recover(fs.io(), dir(), LogPosition::default(), &[], state, |position, _| {
        positions.push(position);
        Ok(())
    })
    .unwrap();
    assert_eq!(positions.last(), Some(&log.appended()));
    let (payloads, recovered) = replay(&fs, positions[3], &[]).unwrap();
    assert_eq!(payloads, [payload(4), payload(5)]);
    assert_eq!(recovered.end, log.appended());
    // Damage before the start no longer matters.
    fs.change("000001.log", |data| data[33] ^= 1);
    assert_eq!(replay(&fs, positions[3], &[]).unwrap().0.len(), 2);
    assert_corrupt(replay(&fs, LogPosition::new(1, 1 << 40), &[]), "000001.log");
    fs.delete("000001.log");
    assert_corrupt(replay(&fs, positions[3], &[]), "000001.log");
}

#[test]
fn the_caller_can_stop_the_replay_with_an_error() {
    let (fs, _log) = log_with(3, 0);
    let state = Default::default();
    let error = recover(fs.io(), dir(), LogPosition::default(), &[], state, |_, _| {
        Err(Error::new(ErrorKind::Corrupt, "not a batch"))
    });
    assert_eq!(error.unwrap_err().message(), "not a batch");
}

#[test]
fn a_claimed_length_allocates_nothing_and_reads_nothing_beyond_the_file() {
    let (fs, log) = log_with(2, 1);
    let at = log.durable().offset as usize;
    for len in [0, 1, 4000, 4064, u32::MAX - 64, u32::MAX - 31, u32::MAX] {
        let copy = fs.copy();
        copy.change("000001.log", |data| data[at + 8..at + 12].copy_from_slice(&len.to_le_bytes()));
        assert_eq!(replay_all(&copy).unwrap().0.len(), 2, "length {len}");
        copy.change("000001.log", |data| {
            data[32 + 8..32 + 12].copy_from_slice(&len.to_le_bytes());
        });
        assert_corrupt(replay_all(&copy), "000001.log");
    }
}

#[test]
fn a_record_larger_than_the_window_reads_back_and_its_damage_is_found() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, 1 << 20), Vec::new()).unwrap();
    let large: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
    log.append(&[b"before", &large, b"after"], false).unwrap();
    let expected = [b"before".to_vec(), large, b"after".to_vec()];
    assert_eq!(replay_all(&fs).unwrap().0, expected);
    log.sync_all().unwrap();
    fs.change("000001.log", |data| data[600_000] ^= 1);
    assert_corrupt(replay_all(&fs), "000001.log is damaged at offset 64");
}

#[test]
fn what_a_user_stores_is_not_taken_for_a_record() {
    // A value that looks like records, then a torn one after it.
    let (fs, log) = log_with(2, 0);
    let copied = fs.content("000001.log");
    let end = log.append(&[&copied[32..600]], false).unwrap();
    log.append(&[b"torn"], false).unwrap();
    fs.change("000001.log", |data| data[end.offset as usize + 20] ^= 1);
    assert_eq!(replay_all(&fs).unwrap().0.len(), 3);
    fs.change("000001.log", |data| data[end.offset as usize - 20] ^= 1);
    assert_eq!(replay_all(&fs).unwrap().0.len(), 2, "bound to another offset");
}

#[test]
fn sealing_writes_again_what_was_not_known_to_be_synced() {
    let (fs, _log) = log_with(2, 3);
    let (payloads, recovered) = replay_all(&fs).unwrap();
    fs.take_calls();
    seal(fs.io(), dir(), &recovered.segments, recovered.synced).unwrap();
    assert_eq!(fs.take_calls(), ["WriteAt 000001.log", "SyncData 000001.log"]);
    assert_eq!(replay_all(&fs).unwrap().0, payloads);
    seal(fs.io(), dir(), &recovered.segments, recovered.end).unwrap();
    assert_eq!(fs.take_calls(), Vec::<String>::new(), "all of it was durable");
}

#[test]
fn what_records_say_of_syncs_is_reported_without_the_file_sync() {
    let (fs, log) = log_with(4, 2);
    fs.delete("SYNC");
    assert_eq!(replay_all(&fs).unwrap().1.synced, log.durable());
}

#[test]
fn a_start_in_an_empty_segment_that_was_removed_is_no_damage() {
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let start = log.appended();
    let (_, recovered) = replay(&fs, start, &[]).unwrap();
    assert_eq!(recovered.segments, [(1, 0)]);
    fs.delete("000001.log");
    let (payloads, _) = replay(&fs, start, &recovered.segments).unwrap();
    assert!(payloads.is_empty());
}

proptest::proptest! {
    #[test]
    fn bytes_of_any_sort_in_a_segment_never_panic_and_leave_a_prefix(
        places in proptest::collection::vec((32usize..2000, proptest::prelude::any::<[u8; 4]>()), 1..6),
        words in proptest::collection::vec((4usize..250, 0usize..64), 0..6),
    ) {
        let (fs, _log) = log_with(0, 20);
        let original = fs.content("000001.log");
        fs.change("000001.log", |data| {
            for (at, bytes) in places {
                data[at..at + 4].copy_from_slice(&bytes);
            }
            // Records, or parts of them, where they do not belong.
            for (word, from) in words {
                data[word * 8..word * 8 + 40].copy_from_slice(&original[32 + from..72 + from]);
            }
        });
        expect_prefix(&replay_all(&fs).unwrap().0, 0);
    }

    #[test]
    fn a_segment_of_arbitrary_bytes_never_panics(body in proptest::collection::vec(0u8..4, 0..400)) {
        let fs = TestFs::new();
        let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
        log.append(&[b"x"], false).unwrap();
        let magic = crate::engine::wal::record::RECORD_MAGIC;
        // Few distinct bytes, so that lengths and kinds are plausible, and a magic at each word.
        fs.change("000001.log", |data| {
            data[32..32 + body.len()].copy_from_slice(&body);
            data[32..].chunks_exact_mut(16).for_each(|word| word[..4].copy_from_slice(&magic));
        });
        let (payloads, _) = replay_all(&fs).unwrap();
        assert_eq!(payloads, Vec::<Vec<u8>>::new());
    }
}

#[test]
fn a_torn_commit_full_of_false_headers_is_searched_quickly() {
    // Once each of them made the search compute a checksum over all the rest of the segment.
    let fs = TestFs::new();
    let log = Log::create(env(&fs, 1, PAGE), Vec::new()).unwrap();
    let mut record = Vec::new();
    let nowhere = LogPosition::default();
    encode(&mut record, nowhere, RecordKind::Data, nowhere, b"");
    record[8..12].copy_from_slice(&(2u32 << 20).to_le_bytes());
    let value = record.repeat((8 << 20) / record.len());
    log.append(&[&value], false).unwrap();
    let segment = fs.names(".log")[1].clone();
    fs.change(&segment, |data| data[80] ^= 1);
    let started = std::time::Instant::now();
    let (payloads, recovered) = replay_all(&fs).unwrap();
    assert!(payloads.is_empty() && recovered.discarded_bytes > 8 << 20);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}
