//! The programs in C and C++ and the tests in Python that run on any store, and which of their stories
//! a store does not offer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::servers::{Server, free_port};
use crate::toolchain::{available, built, compiler, library_path, root, run, skip};

/// Programs whose stories make sense on any store.
pub(crate) const PROGRAMS: [&str; 15] = [
    "c/strings.c",
    "c/values.c",
    "c/hashes.c",
    "c/lists.c",
    "c/sets.c",
    "c/zsets.c",
    "c/keys.c",
    "c/commands.c",
    "c/scripts.c",
    "c/messages.c",
    "c/handles.c",
    "c/misuse.c",
    "cpp/binding.cpp",
    "cpp/commands.cpp",
    "cpp/handles.cpp",
];

/// Tests of the Python binding that make sense on any store.
pub(crate) const PYTHON: [&str; 4] =
    ["test_commands", "test_handles", "test_locks", "test_scripts"];

/// The compiled programs.
pub(crate) struct Suites {
    scratch: TempDir,
    programs: Vec<(&'static str, PathBuf)>,
}

/// Where the programs find their store.
pub(crate) enum Place {
    /// At an address.
    Server(String),
    /// In a directory that processes share. The programs hold it, unless another process does.
    Shared(PathBuf),
    /// In a directory for each story.
    Here,
}

impl Place {
    /// Sets what the programs read, for one that is to be started.
    fn tell(&self, command: &mut Command) {
        match self {
            Self::Server(address) => command.env("LSMKV_TEST_STORE", address),
            Self::Shared(dir) => command.env("LSMKV_TEST_STORE", dir).env("LSMKV_TEST_SHARED", "1"),
            Self::Here => command,
        };
    }

    /// Removes what stories copy to the place beside the store, so that others can.
    fn remove_copies(&self) {
        if let Self::Shared(dir) = self {
            let _ = std::fs::remove_dir_all(format!("{}-copy", dir.display()));
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(address) => write!(f, "{address}"),
            Self::Shared(dir) => write!(f, "{}, shared", dir.display()),
            Self::Here => write!(f, "this process"),
        }
    }
}

/// What a store does not offer: a story, and the call or the sentence that said so.
pub(crate) type Skips = BTreeMap<String, String>;

/// How the stories ended on a place.
pub(crate) struct Outcomes {
    pub(crate) skips: Skips,
    /// The stories in C and C++ that passed.
    pub(crate) passed: BTreeSet<String>,
}

impl Suites {
    pub(crate) fn compiled() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let programs = PROGRAMS.map(|source| (source, compile(source, scratch.path())));
        Self { scratch, programs: programs.to_vec() }
    }

    /// Runs all of them on a store, which they empty.
    pub(crate) fn run_on(&self, place: &Place) -> Outcomes {
        let (mut skips, mut passed) = (Skips::new(), BTreeSet::new());
        let mut failed = String::new();
        let stores = self.scratch.path().join("stores");
        std::fs::create_dir_all(&stores).unwrap();
        for (source, program) in &self.programs {
            let mut command = Command::new(program);
            command
                .arg(stores.join(source.replace('/', "-")))
                .env("LD_LIBRARY_PATH", library_path(self.scratch.path()));
            place.tell(&mut command);
            let output = command.output().unwrap();
            place.remove_copies();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                passed.extend(line.strip_prefix("ok ").map(|it| format!("tests/{source}: {it}")));
                if let Some(story) = line.strip_prefix("skipped ") {
                    skips.insert(format!("tests/{source}: {story}"), reason(lines[at - 1]));
                }
            }
            if !output.status.success() {
                failed += &format!("{source} on {place}, {}:\n{text}", output.status);
            }
        }
        for name in PYTHON {
            let outcome = run_python(name, place);
            place.remove_copies();
            match outcome {
                Ok(found) => skips.extend(found),
                Err(text) => failed += &text,
            }
        }
        assert!(failed.is_empty(), "{failed}");
        Outcomes { skips, passed }
    }
}

fn compile(source: &str, scratch: &Path) -> PathBuf {
    let program = scratch.join(source.replace('/', "-"));
    let cpp = source.ends_with(".cpp");
    let mut command = compiler(cpp);
    command
        .arg(if cpp { "-std=c++17" } else { "-std=gnu99" })
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
        .args([if cpp { "-O0" } else { "-O1" }, "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("bindings/cpp"))
        .arg(root().join("tests").join(source))
        .arg("-L")
        .arg(library_path(scratch))
        .args(["-llsmkv", "-lpthread", "-ldl", "-lm"]);
    run(&mut command);
    program
}

/// What a program prints before a skip: a call in C, or the message of an error.
fn reason(line: &str) -> String {
    let line = line.trim();
    match line.strip_prefix("lsmkv_") {
        Some(call) => format!("`lsmkv_{}`", call.split('(').next().unwrap_or_default()),
        None => sentence(line),
    }
}

/// The beginning of a message, without addresses and advice.
fn sentence(message: &str) -> String {
    let end = message.find([':', ',', ';']).unwrap_or(message.len());
    message[..end].to_owned()
}

/// Runs a file of tests in Python; what was skipped, or the output of a failure.
fn run_python(name: &str, place: &Place) -> Result<Skips, String> {
    if !available("python3") {
        skip("remote::python", "there is no python3");
        return Ok(Skips::new());
    }
    let mut command = Command::new("python3");
    command
        .args(["-m", "unittest", "discover", "-v", "-s", "tests/python", "-p"])
        .arg(format!("{name}.py"))
        .current_dir(root())
        .env("PYTHONPATH", root().join("bindings/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LSMKV_LIBRARY", built("liblsmkv.so"));
    place.tell(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("{name}.py on {place}:\n{text}"));
    }
    let skipped = text.lines().filter_map(|line| line.split_once(" ... skipped "));
    let story = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    Ok(skipped
        .map(|(test, why)| {
            let why = why.trim_matches(['\'', '"']);
            (format!("tests/python/{name}.py: {}", story(test)), sentence(why))
        })
        .collect())
}

/// A C program with the usual handler of SIGPIPE survives its server.
#[test]
fn the_death_of_a_server_kills_no_program() {
    let port = free_port().to_string();
    let more = ["--port", &port, "--requirepass", "secret"];
    let Some(server) = Server::redis("remote::sigpipe", &more) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(compile("c/remote.c", scratch.path()));
    command
        .arg(scratch.path().join("stores"))
        .env("LD_LIBRARY_PATH", library_path(scratch.path()))
        .env("LSMKV_TEST_STORE", format!("redis://:secret@127.0.0.1:{port}"))
        .env("LSMKV_TEST_SERVER_PORT", &port)
        .env("LSMKV_TEST_SERVER_PID", server.pid().to_string());
    run(&mut command);
}
