use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lsmkv::{Db, ErrorKind, Options};

use crate::processes::Writer;
use crate::{reader, tiny, writer};

/// Set in the child: the directory of the store that it reads.
const CHILD_DIR: &str = "LSMKV_TEST_BESIDE_READ";

/// Not a test of its own: opens the store, says how many keys it sees, or why it cannot.
#[test]
fn child_that_reads() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let opened = Db::open(dir, Options { read_only: true, ..tiny() });
    let said = opened.and_then(|db| db.refresh().and_then(|()| db.dbsize()));
    println!("\nsaid {said:?}");
}

fn read_in_child(command: &mut Command, dir: &Path) -> String {
    let Output { stdout, .. } = command.env(CHILD_DIR, dir).stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("said ")).unwrap_or(&text).to_owned()
}

const CHILD: &str = "resources::child_that_reads";

fn fill(db: &Db, keys: u32) {
    for n in 0..keys {
        db.set(format!("key{n:05}").as_bytes(), "x".repeat(300).as_bytes()).unwrap();
    }
}

#[test]
fn too_few_descriptors_are_an_error_that_names_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let db = writer(dir.path());
    fill(&db, 3000);
    db.compact().unwrap();
    let tables = db.tables().unwrap().len();
    assert!(tables > 40, "{tables}");
    let mut shell = Command::new("sh");
    let script = format!("ulimit -n 30; exec \"$0\" {CHILD} --exact --nocapture");
    let said = read_in_child(
        shell.arg("-c").arg(script).arg(std::env::current_exe().unwrap()),
        dir.path(),
    );
    assert!(said.contains("Unsupported") && said.contains("may open 30"), "{said}");
    assert!(said.contains("ulimit -n"), "{said}");
}

/// The open files of this process in a directory, removed ones included.
fn open_files(dir: &Path) -> Vec<PathBuf> {
    let dir = dir.canonicalize().unwrap();
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
    targets.filter(|target| target.starts_with(&dir)).collect()
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn hundreds_of_refreshes_leave_no_descriptor_and_no_memory_behind() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::start(dir.path());
    let seen = reader(dir.path());
    let mut memory = 0;
    for n in 0..300 {
        seen.refresh().unwrap();
        seen.dbsize().unwrap();
        if n == 100 {
            memory = resident_kib();
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let grown = resident_kib().saturating_sub(memory);
    let (files, tables) = (open_files(dir.path()), seen.tables().unwrap().len());
    assert!(files.len() <= tables, "{tables} tables, open are {files:?}");
    // Memtables of the reader's limit come and go.
    assert!(grown < 32 << 10, "{grown} KiB more");
    drop((seen, writer));
    assert!(open_files(dir.path()).is_empty(), "a store that is dropped closes all");
}

fn set_modes(dir: &Path, of_dir: u32, of_files: u32) {
    for entry in fs::read_dir(dir).unwrap() {
        fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(of_files)).unwrap();
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(of_dir)).unwrap();
}

/// Root may write anywhere, so the reader is another user.
#[test]
fn a_directory_that_may_only_be_read_is_enough() {
    let scratch = tempfile::tempdir().unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let dir = scratch.path().join("store");
    let db = writer(&dir);
    fill(&db, 400);
    // Its threads make no more tables, which other users could not read.
    db.compact().unwrap();
    // Wherever the build is, the other user can run a copy of this program.
    let program = scratch.path().join("reader");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let read = || {
        let mut command = Command::new(&program);
        command.args([CHILD, "--exact", "--nocapture"]).current_dir(scratch.path());
        if is_root {
            command.uid(65534).gid(65534);
        }
        read_in_child(&mut command, &dir)
    };
    set_modes(&dir, 0o555, 0o444);
    assert_eq!(read(), "Ok(400)", "beside the writer");
    set_modes(&dir, 0o755, 0o644);
    db.close().unwrap();
    set_modes(&dir, 0o555, 0o444);
    assert_eq!(read(), "Ok(400)", "alone");
    // The owner is another user than the reader, or the same.
    set_modes(&dir, 0o755, if is_root { 0o600 } else { 0o000 });
    let forbidden = read();
    set_modes(&dir, 0o755, 0o600);
    assert!(forbidden.contains("ermission denied"), "{forbidden}");
}

#[test]
fn a_second_writer_is_told_who_has_the_store_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let other = Writer::start(dir.path());
    let busy = || {
        let error = Db::open(dir.path(), tiny()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        error.message().to_owned()
    };
    let message = busy();
    assert!(message.contains(&format!("process {};", other.id())), "{message}");
    for advice in ["read_only=on", "lsmkv serve"] {
        assert!(message.contains(advice), "{message}");
    }
    drop(other);
    let own = writer(dir.path());
    let message = busy();
    assert!(message.contains("in this process;"), "{message}");
    own.close().unwrap();
    assert_eq!(fs::read(dir.path().join("LOCK")).unwrap(), b"", "nobody writes any more");
}
