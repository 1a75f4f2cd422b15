//! Manifests: round trips, torn tails, damage, and failing disks.

#![expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]

use super::*;
use crate::engine::version::current::read_current;
use crate::engine::wal::testing::{EIO, TestFs, dir};
use crate::io::fault::{CallClass, Effect, Fault};

const NAME: &str = "MANIFEST-000003";

struct Store {
    fs: TestFs,
    health: Arc<Health>,
    sync_file: Arc<SyncFile>,
}

impl Store {
    fn new() -> Self {
        let fs = TestFs::new();
        let sync_file = Arc::new(SyncFile::open(fs.io(), dir()).unwrap());
        Self { fs, health: Arc::default(), sync_file }
    }

    fn create(&self, number: FileNumber, first: &[u8]) -> Result<ManifestWriter> {
        let (health, sync_file) = (self.health.clone(), self.sync_file.clone());
        ManifestWriter::create(self.fs.shared(), dir(), number, first, health, sync_file, None)
    }
}

fn edit(i: u8) -> Vec<u8> {
    vec![i; 3 + usize::from(i) * 5]
}

fn manifest_of(edits: u8) -> (Store, ManifestWriter) {
    let store = Store::new();
    let mut writer = store.create(3, &edit(0)).unwrap();
    writer.make_current().unwrap();
    (1..edits).for_each(|i| writer.append(&edit(i)).unwrap());
    (store, writer)
}

fn read(fs: &TestFs) -> Result<(Vec<Vec<u8>>, u64)> {
    let state = SyncFile::read(fs.io(), dir())?;
    let mut payloads = Vec::new();
    let end = read_manifest(fs.io(), dir(), 3, state, |payload| {
        payloads.push(payload.to_vec());
        Ok(())
    })?;
    Ok((payloads, end))
}

#[track_caller]
fn assert_corrupt<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains(NAME), "{error}");
}

#[test]
fn edits_read_back_in_order() {
    let (store, writer) = manifest_of(6);
    let (payloads, end) = read(&store.fs).unwrap();
    assert_eq!(payloads, (0..6).map(edit).collect::<Vec<_>>());
    assert_eq!(end, writer.end());
    assert_eq!(read_current(store.fs.io(), dir()).unwrap(), Some(3));
    let state = SyncFile::read(store.fs.io(), dir()).unwrap();
    assert_eq!((state.manifest, state.manifest_offset), (3, end));
}

#[test]
fn edits_of_all_sizes_grow_the_file() {
    let store = Store::new();
    let mut writer = store.create(3, &[7; 100_000]).unwrap();
    let sizes = [0, 1, 65_536, 8, 200_000, 31];
    sizes.iter().for_each(|&n| writer.append(&vec![1; n]).unwrap());
    let (payloads, _) = read(&store.fs).unwrap();
    assert_eq!(payloads[1..].iter().map(Vec::len).collect::<Vec<_>>(), sizes);
}

#[test]
fn a_manifest_is_durable_before_current_names_it() {
    let store = Store::new();
    store.fs.take_calls();
    let mut writer = store.create(3, b"first").unwrap();
    writer.make_current().unwrap();
    let calls = store.fs.take_calls();
    let expected = [
        "Create MANIFEST-000003",
        "Allocate MANIFEST-000003",
        "WriteAt MANIFEST-000003",
        "SyncData MANIFEST-000003",
        "SyncDir /store",
        "Create CURRENT.tmp",
        "WriteAt CURRENT.tmp",
        "SyncAll CURRENT.tmp",
        "Rename CURRENT.tmp",
        "SyncDir /store",
        "WriteAt SYNC",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn every_bit_flip_and_truncation_of_what_was_synced_refuses_or_changes_nothing() {
    let (store, writer) = manifest_of(5);
    let good = read(&store.fs).unwrap();
    for bit in 0..writer.end() as usize * 8 {
        let copy = store.fs.copy();
        copy.change(NAME, |data| data[bit / 8] ^= 1 << (bit % 8));
        match read(&copy) {
            Ok(found) => assert_eq!(found, good, "bit {bit}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}: {error}"),
        }
    }
    for len in 0..writer.end() as usize {
        let copy = store.fs.copy();
        copy.change(NAME, |data| data.truncate(len));
        assert_corrupt(read(&copy));
    }
    store.fs.change(NAME, |data| data.truncate(writer.end() as usize));
    assert_eq!(read(&store.fs).unwrap(), good, "only zeros were cut off");
}

#[test]
fn a_torn_last_edit_is_accepted_and_one_before_it_refused() {
    let (store, mut writer) = manifest_of(3);
    let torn = writer.end() as usize;
    let synced = store.fs.content("SYNC");
    writer.append(&edit(3)).unwrap();
    let end = writer.end() as usize;
    // As if the power had gone before the sync.
    store.fs.replace("SYNC", &synced);
    for from in torn..end {
        let copy = store.fs.copy();
        copy.change(NAME, |data| data[from..].fill(0));
        let (payloads, _) = read(&copy).unwrap();
        assert_eq!(payloads[..3], [edit(0), edit(1), edit(2)]);
        copy.change(NAME, |data| data[torn - 10] ^= 1);
        assert_corrupt(read(&copy));
    }
    // Without SYNC, the record after the damage tells.
    store.fs.delete("SYNC");
    store.fs.change(NAME, |data| data[torn - 10] ^= 1);
    assert_corrupt(read(&store.fs));
}

#[test]
fn a_damaged_first_edit_is_never_a_torn_tail() {
    let (store, _writer) = manifest_of(1);
    store.fs.delete("SYNC");
    store.fs.change(NAME, |data| data[40] ^= 1);
    assert_corrupt(read(&store.fs));
    store.fs.change(NAME, |data| data.truncate(32));
    assert_corrupt(read(&store.fs));
    store.fs.delete(NAME);
    assert_corrupt(read(&store.fs));
}

#[test]
fn a_hostile_length_refuses_or_ends_the_file() {
    let (store, writer) = manifest_of(2);
    let last = (writer.end() - framed_len(edit(1).len() as u64)) as usize;
    for len in [0, 7, 4096, u32::MAX - 40, u32::MAX] {
        let copy = store.fs.copy();
        copy.change(NAME, |data| data[last + 8..last + 12].copy_from_slice(&len.to_le_bytes()));
        assert_corrupt(read(&copy));
    }
}

#[test]
fn a_full_disk_changes_nothing_and_the_edit_can_be_tried_again() {
    let (store, mut writer) = manifest_of(1);
    store.fs.fill_disk();
    let large = vec![9; 70_000];
    assert_eq!(writer.append(&large).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(store.create(4, b"x").unwrap_err().kind(), ErrorKind::Full);
    assert!(!store.fs.names("").contains(&"MANIFEST-000004".to_owned()));
    writer.append(b"small").unwrap();
    store.fs.free_disk();
    writer.append(&large).unwrap();
    assert_eq!(read(&store.fs).unwrap().0, [edit(0), b"small".to_vec(), large]);
}

#[test]
fn a_failed_write_or_sync_of_an_edit_degrades_for_good() {
    for classes in [&[CallClass::Write], &[CallClass::Sync]] {
        let (store, mut writer) = manifest_of(2);
        store.fs.faults.arm(Fault::once(0, Effect::Errno(EIO)).only(classes));
        let error = writer.append(&edit(2)).unwrap_err();
        assert_eq!((error.kind(), error.os_errno()), (ErrorKind::Degraded, EIO));
        let again = writer.append(&edit(2)).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Degraded);
        assert!(store.health.check().is_err());
        let (payloads, _) = read(&store.fs).unwrap();
        assert_eq!(payloads[..2], [edit(0), edit(1)]);
    }
}

#[test]
fn a_switch_that_failed_half_way_degrades_and_one_that_did_not_begin_does_not() {
    let (store, _old) = manifest_of(1);
    let mut next = store.create(8, b"next").unwrap();
    store.fs.fail(&[CallClass::Write]);
    assert_eq!(next.make_current().unwrap_err().kind(), ErrorKind::Io);
    store.fs.faults.disarm();
    assert!(store.health.check().is_ok());
    assert_eq!(read_current(store.fs.io(), dir()).unwrap(), Some(3));
    store.fs.faults.reset();
    // The directory sync after the rename: the sixth call from here, the second sync.
    let calls_until_sync_dir = 6;
    let fault = Fault::once(calls_until_sync_dir, Effect::Errno(EIO)).only(&[CallClass::Sync]);
    store.fs.faults.arm(fault);
    assert_eq!(next.make_current().unwrap_err().kind(), ErrorKind::Degraded);
    assert_eq!(store.fs.faults.struck()[0].path.as_ref(), dir());
}
