//! The program under test, and stores for it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lsmkv::{Db, Options};
use tempfile::TempDir;

/// `lsmkv` with these arguments.
pub(crate) fn lsmkv<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lsmkv"));
    command.args(args).env("LSMKV_HISTORY", "").env_remove("NO_COLOR");
    command
}

/// The output and the exit status of a run.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Run {
    lsmkv(args).stdin(Stdio::null()).output().unwrap().into()
}

/// Runs a command that must succeed; returns its output.
pub(crate) fn ok<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(args: &[S]) -> String {
    let run = run(args);
    assert_eq!(run.code, 0, "{args:?}: {}{}", run.out, run.err);
    run.out
}

/// Runs a command with this standard input.
pub(crate) fn run_with_input<S: AsRef<std::ffi::OsStr>>(args: &[S], input: &[u8]) -> Run {
    let mut child = lsmkv(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The program may exit before it has read everything.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.into()
}

/// A directory for one test.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path in the directory as an argument.
    pub(crate) fn arg(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// Fills a store with keys of every type: small and large collections, binary data, expiry,
/// databases.
pub(crate) fn fill(dir: &Path) {
    let db = Db::open(dir, Options::default()).unwrap();
    for n in 0..300 {
        let key = format!("string:{n:04}");
        db.set(key.as_bytes(), format!("value {n}").repeat(n % 7 + 1).as_bytes()).unwrap();
    }
    let odd: &[u8] = b"\0\xff\"\\ \r\n";
    db.set(odd, odd).unwrap();
    let texts: Vec<String> = (0..2000).map(|n| format!("member:{n:05}")).collect();
    for (texts, from) in texts.chunks(100).zip((0u32..).step_by(100)) {
        let members: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let numbers: Vec<[u8; 4]> = (from..from + 100).map(u32::to_be_bytes).collect();
        let pairs = members.iter().zip(&numbers).map(|(field, value)| (*field, &value[..]));
        db.hset(b"hash:big", &pairs.collect::<Vec<_>>()).unwrap();
        db.sadd(b"set:big", &members).unwrap();
        db.rpush(b"list:big", &members).unwrap();
        let scores: Vec<String> =
            (from..from + 100).map(|n| (f64::from(n) / 3.0).to_string()).collect();
        let scored = scores.iter().zip(&members).flat_map(|(score, it)| [score.as_bytes(), *it]);
        let words = [&b"ZADD"[..], b"zset:big"].into_iter().chain(scored);
        command(&db, &words.collect::<Vec<_>>());
    }
    command(&db, &[b"HSET", b"hash", odd, b"", b"f", odd]);
    command(&db, &[b"RPUSH", b"list", b"a", odd, b"a", b""]);
    command(&db, &[b"SADD", b"set", b"1", odd, b""]);
    command(&db, &[b"ZADD", b"zset", b"inf", b"a", b"-inf", b"b", b"0.1", odd]);
    for key in ["string:0001", "hash:big", "list"] {
        command(&db, &[b"PEXPIREAT", key.as_bytes(), b"4102444800123"]);
    }
    let other = db.select(5).unwrap();
    other.set(b"string:0001", b"in another database").unwrap();
    db.close().unwrap();
}

pub(crate) fn command(db: &Db, words: &[&[u8]]) {
    let reply = db.command(words).unwrap();
    assert!(!matches!(reply, lsmkv::Reply::Error(_)), "{reply:?}");
}

/// The content of a store in a form that can be compared.
pub(crate) fn contents(dir: &str) -> String {
    ok(&["dump", dir, "--format", "json", "--quiet"])
}
