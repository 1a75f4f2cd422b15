//! Stories of the in-memory file system: what is synced stays, what is not may go.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{CrashMode, MemFs, SyncStage};
use crate::io::fs::{File, FileSystem};

const POWER_CUTS: [CrashMode; 3] =
    [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic];

fn p(path: &str) -> &Path {
    Path::new(path)
}

fn create(fs: &MemFs, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = fs.create(p(path)).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

/// A file whose name and bytes are durable.
fn create_durable(fs: &MemFs, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(fs, path, bytes);
    file.sync_data().unwrap();
    fs.sync_dir(p(path).parent().unwrap()).unwrap();
    file
}

fn after_power_cut(fs: &MemFs) -> MemFs {
    fs.crash_clone(0, CrashMode::DropUnsynced)
}

/// Everything that crashes of `mode` can leave of a file, over many seeds; `None`: no such name.
fn outcomes(fs: &MemFs, path: &str, mode: CrashMode) -> BTreeSet<Option<Vec<u8>>> {
    (0..400).map(|seed| fs.crash_clone(seed, mode).read_file(p(path)).ok()).collect()
}

fn kind_of<T>(result: io::Result<T>) -> io::ErrorKind {
    result.map(|_| ()).unwrap_err().kind()
}

#[test]
fn files_read_back_and_misuse_is_refused_as_on_a_real_disk() {
    let fs = MemFs::new();
    fs.create_dir(p("/db")).unwrap();
    let file = create(&fs, "/db/a", b"hello");
    let reader = fs.open(p("/db/a")).unwrap();
    file.write_all_at(b"!", 7).unwrap();
    assert_eq!(fs.read_file(p("db/a")).unwrap(), b"hello\0\0!");
    let mut buf = [0; 3];
    reader.read_exact_at(&mut buf, 1).unwrap();
    assert_eq!(&buf, b"ell");
    assert_eq!(kind_of(reader.read_exact_at(&mut buf, 6)), io::ErrorKind::UnexpectedEof);
    assert_eq!(reader.write_at(b"x", 0).unwrap_err().raw_os_error(), Some(libc::EBADF));
    assert!(reader.set_len(0).is_err());
    assert!(reader.allocate(10).is_err());
    fs.open_write(p("/db/a")).unwrap().set_len(2).unwrap();
    assert_eq!(reader.len().unwrap(), 2);

    assert_eq!(kind_of(fs.create(p("/db/a"))), io::ErrorKind::AlreadyExists);
    assert_eq!(kind_of(fs.create_dir(p("/db"))), io::ErrorKind::AlreadyExists);
    assert_eq!(kind_of(fs.create_dir(p("/no/parent"))), io::ErrorKind::NotFound);
    assert_eq!(kind_of(fs.open(p("/db/none"))), io::ErrorKind::NotFound);
    assert_eq!(kind_of(fs.open(p("/db"))), io::ErrorKind::IsADirectory);
    assert_eq!(kind_of(fs.list(p("/db/a"))), io::ErrorKind::NotADirectory);
    assert_eq!(kind_of(fs.remove(p("/db"))), io::ErrorKind::IsADirectory);
    assert_eq!(kind_of(fs.remove_dir(p("/db"))), io::ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind_of(fs.remove_dir(p("/db/a"))), io::ErrorKind::NotADirectory);
    assert_eq!(kind_of(fs.rename(p("/db/none"), p("/db/b"))), io::ErrorKind::NotFound);
    assert_eq!(kind_of(fs.rename(p("/db"), p("/db/sub"))), io::ErrorKind::InvalidInput);
    assert_eq!(kind_of(fs.hard_link(p("/db/a"), p("/db/a"))), io::ErrorKind::AlreadyExists);
    assert_eq!(kind_of(fs.open(p("/db/../db/a"))), io::ErrorKind::InvalidInput);
    assert!(fs.exists(p("/")).unwrap());
    assert!(!fs.exists(p("/no/parent")).unwrap());
}

#[test]
fn names_are_renamed_linked_listed_and_removed() {
    let fs = MemFs::new();
    fs.create_dir(p("/d")).unwrap();
    create(&fs, "/d/a", b"a");
    create(&fs, "/d/b", b"b");
    fs.rename(p("/d/a"), p("/d/b")).unwrap();
    fs.hard_link(p("/d/b"), p("/c")).unwrap();
    fs.rename(p("/d/b"), p("/c")).unwrap();
    assert!(fs.exists(p("/d/b")).unwrap(), "renaming a file to itself does nothing");
    fs.rename(p("/d"), p("/e")).unwrap();
    assert_eq!(fs.paths(), ["/c", "/e/b"].map(PathBuf::from));
    assert_eq!(fs.list(p("/")).unwrap(), ["c", "e"].map(PathBuf::from));
    assert_eq!(fs.bytes_in_use(), 1);
    fs.remove(p("/c")).unwrap();
    assert_eq!(fs.read_file(p("/e/b")).unwrap(), b"a");
    fs.remove(p("/e/b")).unwrap();
    fs.remove_dir(p("/e")).unwrap();
    assert!(fs.paths().is_empty());
    assert_eq!(fs.bytes_in_use(), 0);
}

#[test]
fn an_unsynced_tail_is_lost_and_what_was_synced_is_kept() {
    let fs = MemFs::new();
    let file = create_durable(&fs, "/log", b"synced");
    file.write_all_at(b", not synced", 6).unwrap();
    file.write_all_at(b"S", 0).unwrap();
    assert_eq!(fs.read_file(p("/log")).unwrap(), b"Synced, not synced");
    assert_eq!(after_power_cut(&fs).read_file(p("/log")).unwrap(), b"synced");
    file.sync_all().unwrap();
    for mode in CrashMode::ALL {
        let crashed = fs.crash_clone(1, mode);
        assert_eq!(crashed.read_file(p("/log")).unwrap(), b"Synced, not synced");
    }
}

#[test]
fn an_unsynced_cut_comes_back_in_full() {
    let fs = MemFs::new();
    let file = create_durable(&fs, "/log", &[7; 10_000]);
    file.set_len(100).unwrap();
    file.write_all_at(b"new", 100).unwrap();
    assert_eq!(after_power_cut(&fs).read_file(p("/log")).unwrap(), [7; 10_000]);
    file.sync_data().unwrap();
    let left = after_power_cut(&fs).read_file(p("/log")).unwrap();
    assert_eq!(left, [&[7; 100][..], b"new"].concat());
}

#[test]
fn a_synced_file_is_lost_if_its_name_was_not_synced() {
    let fs = MemFs::new();
    create(&fs, "/a", b"bytes").sync_all().unwrap();
    assert!(!after_power_cut(&fs).exists(p("/a")).unwrap());
    for mode in [CrashMode::Ordered, CrashMode::Chaotic] {
        let either = BTreeSet::from([None, Some(b"bytes".to_vec())]);
        assert_eq!(outcomes(&fs, "/a", mode), either);
    }
    fs.sync_dir(p("/")).unwrap();
    for mode in POWER_CUTS {
        assert_eq!(outcomes(&fs, "/a", mode), BTreeSet::from([Some(b"bytes".to_vec())]));
    }
}

#[test]
fn a_synced_name_without_synced_bytes_is_an_empty_file() {
    let fs = MemFs::new();
    create(&fs, "/a", b"bytes");
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(after_power_cut(&fs).read_file(p("/a")).unwrap(), b"");
}

#[test]
fn what_is_in_a_directory_whose_name_was_not_synced_is_lost() {
    let fs = MemFs::new();
    fs.create_dir(p("/d")).unwrap();
    create_durable(&fs, "/d/a", b"bytes");
    let crashed = after_power_cut(&fs);
    assert!(!crashed.exists(p("/d")).unwrap());
    assert_eq!(crashed.bytes_in_use(), 0);
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(after_power_cut(&fs).read_file(p("/d/a")).unwrap(), b"bytes");
}

#[test]
fn an_unsynced_rename_leaves_the_old_file_under_either_name_whole() {
    let fs = MemFs::new();
    create_durable(&fs, "/CURRENT", b"old");
    create_durable(&fs, "/tmp", b"new");
    fs.rename(p("/tmp"), p("/CURRENT")).unwrap();
    let crashed = after_power_cut(&fs);
    assert_eq!(crashed.read_file(p("/CURRENT")).unwrap(), b"old");
    assert_eq!(crashed.read_file(p("/tmp")).unwrap(), b"new");
    for mode in [CrashMode::Ordered, CrashMode::Chaotic] {
        let mut seen = BTreeSet::new();
        for seed in 0..100 {
            let crashed = fs.crash_clone(seed, mode);
            let current = crashed.read_file(p("/CURRENT")).unwrap();
            let temporary = crashed.exists(p("/tmp")).unwrap();
            assert_eq!(temporary, current == b"old", "a rename is atomic");
            seen.insert(current);
        }
        assert_eq!(seen.len(), 2);
    }
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(after_power_cut(&fs).read_file(p("/CURRENT")).unwrap(), b"new");
    assert!(!after_power_cut(&fs).exists(p("/tmp")).unwrap());
}

#[test]
fn an_unsynced_remove_may_come_back_with_its_bytes() {
    let fs = MemFs::new();
    drop(create_durable(&fs, "/a", b"bytes"));
    fs.remove(p("/a")).unwrap();
    assert_eq!(fs.bytes_in_use(), 0);
    let crashed = after_power_cut(&fs);
    assert_eq!(crashed.read_file(p("/a")).unwrap(), b"bytes");
    assert_eq!(crashed.bytes_in_use(), 5);
    assert_eq!(outcomes(&fs, "/a", CrashMode::Ordered).len(), 2);
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(outcomes(&fs, "/a", CrashMode::Chaotic), BTreeSet::from([None]));
}

#[test]
fn a_sync_of_another_directory_does_not_finish_a_remove() {
    let fs = MemFs::new();
    fs.create_dir(p("/other")).unwrap();
    drop(create_durable(&fs, "/a", b"bytes"));
    drop(create(&fs, "/b", b"never durable"));
    fs.remove(p("/a")).unwrap();
    fs.remove(p("/b")).unwrap();
    fs.sync_dir(p("/other")).unwrap();
    for copy in [fs.clone(), fs.deep_clone()] {
        assert_eq!(after_power_cut(&copy).read_file(p("/a")).unwrap(), b"bytes");
        assert_eq!(outcomes(&copy, "/a", CrashMode::Ordered).len(), 2);
        assert!(outcomes(&copy, "/b", CrashMode::Chaotic).len() > 1);
    }
}

#[test]
fn names_survive_as_a_prefix_when_ordered_and_as_any_subset_in_chaos() {
    let fs = MemFs::new();
    for name in ["/a", "/b", "/c"] {
        create(&fs, name, b"");
    }
    let survivors = |mode| -> BTreeSet<Vec<PathBuf>> {
        (0..300).map(|seed| fs.crash_clone(seed, mode).paths()).collect()
    };
    let prefixes = [&[][..], &["/a"], &["/a", "/b"], &["/a", "/b", "/c"]];
    let prefixes = prefixes.map(|names| names.iter().map(PathBuf::from).collect());
    assert_eq!(survivors(CrashMode::Ordered), BTreeSet::from(prefixes));
    assert_eq!(survivors(CrashMode::Chaotic).len(), 8);
}

#[test]
fn a_rename_across_directories_never_loses_the_file() {
    let fs = MemFs::new();
    fs.create_dir(p("/d")).unwrap();
    create_durable(&fs, "/a", b"bytes");
    fs.rename(p("/a"), p("/d/a")).unwrap();
    create(&fs, "/d/later", b"");
    for mode in POWER_CUTS {
        for seed in 0..100 {
            let paths = fs.crash_clone(seed, mode).paths();
            let there = paths.iter().filter(|path| path.ends_with("a")).count();
            assert_eq!(there, 1, "{mode:?} {seed}: {paths:?}");
        }
    }
    fs.sync_dir(p("/")).unwrap();
    let left = after_power_cut(&fs).paths();
    assert!(left.contains(&PathBuf::from("/d/a")), "{left:?}");
    assert!(!left.contains(&PathBuf::from("/a")), "{left:?}");
}

#[test]
fn a_write_is_torn_only_between_sectors() {
    let fs = MemFs::new();
    let file = create_durable(&fs, "/log", &[0; 2048]);
    // From within the first sector to within the fourth.
    file.write_all_at(&[1; 1400], 200).unwrap();
    for mode in [CrashMode::Ordered, CrashMode::Chaotic] {
        let mut kept = BTreeSet::new();
        for bytes in outcomes(&fs, "/log", mode) {
            let bytes = bytes.unwrap();
            assert_eq!(bytes.len(), 2048);
            let sector = |from: usize, to: usize| {
                let first = bytes[from];
                assert!(bytes[from..to].iter().all(|&b| b == first), "torn within a sector");
                first == 1
            };
            kept.insert([
                sector(200, 512),
                sector(512, 1024),
                sector(1024, 1536),
                sector(1536, 1600),
            ]);
            assert!(bytes[..200].iter().chain(&bytes[1600..]).all(|&b| b == 0));
        }
        assert_eq!(kept.len(), 16, "{mode:?}: any sectors can survive");
    }
}

#[test]
fn a_later_write_can_survive_without_an_earlier_one_and_a_length_without_bytes() {
    let fs = MemFs::new();
    let file = create_durable(&fs, "/log", b"");
    file.write_all_at(&[1; 512], 0).unwrap();
    file.write_all_at(&[2; 512], 512).unwrap();
    for mode in [CrashMode::Ordered, CrashMode::Chaotic] {
        let outcomes = outcomes(&fs, "/log", mode);
        assert!(outcomes.contains(&Some([[0; 512], [2; 512]].concat())), "{mode:?}");
        assert!(outcomes.contains(&Some(vec![0; 1024])), "{mode:?}");
        assert!(outcomes.contains(&Some(vec![1; 512])), "{mode:?}");
        assert!(outcomes.contains(&Some(vec![])), "{mode:?}");
    }
}

#[test]
fn an_ordered_crash_shows_each_sector_as_it_once_was() {
    let fs = MemFs::new();
    let file = create_durable(&fs, "/slot", b"00");
    file.write_all_at(b"1", 0).unwrap();
    file.write_all_at(b"2", 1).unwrap();
    let ordered = outcomes(&fs, "/slot", CrashMode::Ordered);
    let once = ["00", "10", "12"].map(|s| Some(s.as_bytes().to_vec()));
    assert_eq!(ordered, BTreeSet::from(once));
    assert!(outcomes(&fs, "/slot", CrashMode::Chaotic).contains(&Some(b"02".to_vec())));
}

#[test]
fn a_synced_allocation_is_zeros_wherever_a_write_was_lost() {
    let fs = MemFs::new();
    let file = fs.create(p("/segment")).unwrap();
    file.allocate(10_000).unwrap();
    file.allocate(5_000).unwrap();
    assert_eq!(file.len().unwrap(), 10_000, "allocating never cuts");
    file.sync_all().unwrap();
    fs.sync_dir(p("/")).unwrap();
    file.write_all_at(&[1; 3000], 0).unwrap();
    assert_eq!(after_power_cut(&fs).read_file(p("/segment")).unwrap(), [0; 10_000]);
    for mode in [CrashMode::Ordered, CrashMode::Chaotic] {
        for bytes in outcomes(&fs, "/segment", mode) {
            assert_eq!(bytes.unwrap().len(), 10_000);
        }
    }
}

#[test]
fn the_death_of_the_process_loses_nothing_but_a_power_cut_after_it_still_can() {
    let fs = MemFs::new();
    let file = create_durable(&fs, "/log", b"synced");
    file.write_all_at(b"unsynced", 6).unwrap();
    create(&fs, "/new", b"");
    let restarted = fs.crash_clone(9, CrashMode::KeepAll);
    assert_eq!(restarted.read_file(p("/log")).unwrap(), b"syncedunsynced");
    assert!(restarted.exists(p("/new")).unwrap());
    let cut = after_power_cut(&restarted);
    assert_eq!(cut.read_file(p("/log")).unwrap(), b"synced");
    assert!(!cut.exists(p("/new")).unwrap());
    restarted.open(p("/log")).unwrap().sync_data().unwrap();
    assert_eq!(after_power_cut(&restarted).read_file(p("/log")).unwrap(), b"syncedunsynced");
}

#[test]
fn a_crash_repeats_from_its_seed_and_the_clone_is_independent() {
    let fs = MemFs::new();
    let mut files = Vec::new();
    for i in 0..20 {
        files.push(create(&fs, &format!("/{i}"), &[1; 3000]));
    }
    let all = |fs: &MemFs| -> Vec<_> {
        fs.paths().into_iter().map(|path| (fs.read_file(&path).unwrap(), path)).collect()
    };
    for mode in POWER_CUTS {
        let once = fs.crash_clone(5, mode);
        assert_eq!(all(&once), all(&fs.crash_clone(5, mode)));
        assert_eq!(all(&once), all(&fs.deep_clone().crash_clone(5, mode)));
    }
    let crashed = fs.crash_clone(5, CrashMode::KeepAll);
    let before = all(&crashed);
    files[0].write_all_at(&[2; 3000], 0).unwrap();
    fs.remove(p("/1")).unwrap();
    assert_eq!(all(&crashed), before);
}

#[test]
fn a_full_disk_refuses_growth_until_space_is_freed() {
    let fs = MemFs::with_capacity(1000);
    let file = create(&fs, "/a", &[1; 600]);
    assert_eq!(file.write_at(&[2; 600], 600).unwrap(), 400, "what fits is written");
    assert_eq!(kind_of(file.write_at(&[2; 1], 1000)), io::ErrorKind::StorageFull);
    assert_eq!(file.write_at(&[3; 1000], 0).unwrap(), 1000, "overwriting takes no space");
    let other = fs.create(p("/b")).unwrap();
    assert_eq!(kind_of(other.allocate(1)), io::ErrorKind::StorageFull);
    assert_eq!(kind_of(other.set_len(1)), io::ErrorKind::StorageFull);
    assert_eq!(other.len().unwrap(), 0);
    fs.set_capacity(1010);
    other.allocate(10).unwrap();
    assert_eq!(kind_of(other.write_all_at(&[4; 11], 0)), io::ErrorKind::StorageFull);
    file.set_len(500).unwrap();
    other.write_all_at(&[4; 400], 10).unwrap();
    assert_eq!(fs.bytes_in_use(), 910);
    fs.remove(p("/a")).unwrap();
    assert_eq!(fs.bytes_in_use(), 910, "an open file keeps its space");
    drop(file);
    assert_eq!(fs.bytes_in_use(), 410);
    fs.set_capacity(100);
    assert_eq!(kind_of(other.write_at(&[5; 1], 410)), io::ErrorKind::StorageFull);
    assert_eq!(kind_of(other.write_at(&[5; 1], 1 << 40)), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_disk_is_full_from_the_chosen_allocation_on_until_space_is_freed() {
    let fs = MemFs::new();
    fs.fill_at_allocation(3);
    let file = create(&fs, "/a", &[1; 600]);
    file.write_all_at(&[2; 600], 0).unwrap();
    file.allocate(700).unwrap();
    file.allocate(700).unwrap();
    assert_eq!(fs.allocations(), 2, "what takes no space does not count");
    assert_eq!(kind_of(file.write_at(&[3; 100], 700)), io::ErrorKind::StorageFull);
    assert_eq!((fs.allocations(), fs.free_bytes(p("/"))), (3, Some(0)));
    file.set_len(650).unwrap();
    assert_eq!(file.write_at(&[3; 100], 650).unwrap(), 50, "what was given back can be used");
    fs.set_capacity(u64::MAX);
    file.allocate(1000).unwrap();
}

#[test]
fn removed_files_are_forgotten_once_no_crash_can_bring_them_back() {
    for fs in [MemFs::new(), MemFs::untracked()] {
        fs.create_dir(p("/d")).unwrap();
        for _ in 0..10 {
            let file = create(&fs, "/d/a", &[1; 100]);
            fs.sync_dir(p("/d")).unwrap();
            create(&fs, "/d/b", &[1; 100]);
            fs.rename(p("/d/b"), p("/d/a")).unwrap();
            fs.remove(p("/d/a")).unwrap();
            fs.sync_dir(p("/d")).unwrap();
            assert_eq!(file.len().unwrap(), 100, "an open file without a name can be read");
        }
        fs.remove_dir(p("/d")).unwrap();
        fs.sync_dir(p("/")).unwrap();
        assert_eq!(fs.remembered(), (0, 1), "files and directories, the root among them");
    }
}

#[test]
fn an_untracked_file_system_works_and_crashes_without_loss() {
    let fs = MemFs::untracked();
    let file = create(&fs, "/a", b"one");
    file.write_all_at(b"two", 3).unwrap();
    file.sync_data().unwrap();
    fs.rename(p("/a"), p("/b")).unwrap();
    let crashed = fs.crash_clone(3, CrashMode::DropUnsynced);
    assert_eq!(crashed.read_file(p("/b")).unwrap(), b"onetwo");
}

#[test]
fn a_sync_can_be_captured_just_before_and_just_after_it_took_effect() {
    let workload = |fs: &MemFs| {
        let file = create_durable(fs, "/log", b"");
        for i in 0..5u8 {
            file.write_all_at(&[i], u64::from(i)).unwrap();
            file.sync_data().unwrap();
        }
    };
    let counted = MemFs::new();
    workload(&counted);
    assert_eq!(counted.sync_count(), 7);
    assert_eq!(counted.bytes_written(), 5);
    for k in 3..=7u8 {
        let fs = MemFs::new();
        let capture = fs.capture_at_sync(u64::from(k));
        assert!(capture.before().is_none());
        workload(&fs);
        let synced = |fs: &MemFs| after_power_cut(fs).read_file(p("/log")).unwrap().len();
        let unsynced = |fs: &MemFs| fs.read_file(p("/log")).unwrap().len();
        let (before, after) = (capture.before().unwrap(), capture.after().unwrap());
        let nth = usize::from(k - 2);
        assert_eq!((synced(&before), unsynced(&before)), (nth - 1, nth));
        assert_eq!((synced(&after), unsynced(&after)), (nth, nth));
    }
}

#[test]
fn a_hook_sees_every_sync_and_may_use_the_file_system() {
    let fs = MemFs::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    fs.on_sync(move |fs, point| {
        let durable = fs.crash_clone(0, CrashMode::DropUnsynced).paths().len();
        log.lock().push((point.number, point.stage, point.path.to_owned(), durable));
    });
    create_durable(&fs, "/a", b"x");
    let expected = [
        (1, SyncStage::Before, "/a".into(), 0),
        (1, SyncStage::After, "/a".into(), 0),
        (2, SyncStage::Before, "/".into(), 0),
        (2, SyncStage::After, "/".into(), 1),
    ];
    assert_eq!(*seen.lock(), expected);
}

#[test]
fn a_damaged_file_is_put_in_place_durably() {
    let fs = MemFs::with_capacity(4);
    drop(create_durable(&fs, "/a", b"good"));
    fs.write_file(p("/a"), b"bad, and longer").unwrap();
    fs.write_file(p("/new"), b"x").unwrap();
    let crashed = after_power_cut(&fs);
    assert_eq!(crashed.read_file(p("/a")).unwrap(), b"bad, and longer");
    assert_eq!(crashed.read_file(p("/new")).unwrap(), b"x");
    assert_eq!(fs.bytes_in_use(), 16);
    assert!(fs.write_file(p("/no/parent"), b"").is_err());
}

#[test]
fn a_lock_is_held_once_per_file_system() {
    let fs = MemFs::new();
    let guard = fs.lock(p("/LOCK")).unwrap();
    assert_eq!(kind_of(fs.clone().lock(p("/LOCK"))), io::ErrorKind::WouldBlock);
    fs.deep_clone().lock(p("/LOCK")).unwrap();
    MemFs::new().lock(p("/LOCK")).unwrap();
    drop(guard);
    fs.lock(p("/LOCK")).unwrap().abandon();
    assert_eq!(kind_of(fs.lock(p("/LOCK"))), io::ErrorKind::WouldBlock);
}
