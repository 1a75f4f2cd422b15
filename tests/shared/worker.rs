//! A process of its own that shares the store: this test program, started again. It does what its
//! standard input says and answers on its standard output.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lsmkv::types::KeyRange;
use lsmkv::{Options, Reply, SharedIter, SharedStore, SharedTransaction, SharedView, SyncMode};

/// Set in the worker: the directory of the store.
const DIR: &str = "LSMKV_TEST_SHARED_DIR";
/// Set in the worker: its number, if it writes until its input ends.
pub(crate) const WRITER: &str = "LSMKV_TEST_SHARED_WRITER";
/// Set in the worker: its first number.
pub(crate) const FIRST: &str = "LSMKV_TEST_SHARED_FIRST";
/// Set in the worker: milliseconds that it waits for a reply.
pub(crate) const REPLY_MS: &str = "LSMKV_TEST_SHARED_REPLY_MS";

/// The user and the group that own nothing.
const NOBODY: u32 = 65_534;

/// A worker. Dropping it kills it.
pub(crate) struct Worker {
    pub(crate) process: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Worker {
    pub(crate) fn start(dir: &Path, variables: &[(&str, String)]) -> Self {
        let mut command = command(&std::env::current_exe().unwrap(), dir);
        Self::spawned(command.envs(variables.iter().map(|(name, value)| (name, value))))
    }

    /// Starts one as a user that owns nothing, if this process may do that. `scratch` is a directory
    /// that the user can enter, wherever this program is.
    pub(crate) fn start_as_another(dir: &Path, scratch: &Path) -> Self {
        let program = scratch.join("worker");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut command = command(&program, dir);
        command.current_dir(scratch);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Self::spawned(&mut command)
    }

    fn spawned(command: &mut Command) -> Self {
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().map(BufReader::new));
        Self { process, input, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Gives it a command, without waiting for the answer.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Its next answer; `None` if it has ended.
    pub(crate) fn answer(&mut self) -> Option<String> {
        let output = self.output.as_mut().unwrap();
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The rest is what the test harness prints.
            if let Some(answer) = line.trim_end().strip_prefix("> ") {
                return Some(answer.to_owned());
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer().unwrap()
    }

    /// Ends its input.
    pub(crate) fn end_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn take_output(&mut self) -> BufReader<ChildStdout> {
        self.output.take().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", "worker::worker_that_shares_a_store", "--nocapture", "--quiet"])
        .env(DIR, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Whether this process is the superuser's.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n> {text}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

/// Not a test of its own: what workers run.
#[test]
fn worker_that_shares_a_store() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let mut options = Options { sync: SyncMode::Always, ..Options::default() };
    if let Ok(limit) = std::env::var(REPLY_MS) {
        options.reply_timeout_ms = limit.parse().unwrap();
        options.connect_timeout_ms = limit.parse().unwrap();
    }
    let store = match SharedStore::open(Path::new(&dir), &options) {
        Ok(store) => store,
        Err(error) => return say(&format!("refused {error:?}")),
    };
    say(if store.is_holder() { "holds" } else { "connected" });
    if let Ok(number) = std::env::var(WRITER) {
        let first = std::env::var(FIRST).unwrap().parse().unwrap();
        return super::kills::write_until_told(&store, number.parse().unwrap(), first);
    }
    let mut kept = Kept::default();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if let Some(order) = line.strip_prefix('@') {
            say(&kept.follow(&store, order).unwrap_or_else(|error| format!("{error:?}")));
            continue;
        }
        if line == "close" {
            store.close().unwrap();
            say("closed");
            continue;
        }
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        match store.command(&argv) {
            Ok(reply) => say(&shown(reply)),
            Err(error) => say(&format!("{error:?}")),
        }
    }
}

fn shown(reply: Reply) -> String {
    match reply {
        Reply::Bulk(bytes) | Reply::Text(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Reply::Status(text) => text.to_owned(),
        reply => format!("{reply:?}"),
    }
}

/// What a worker has at the holder.
#[derive(Default)]
struct Kept {
    transaction: Option<SharedTransaction>,
    snapshot: Option<SharedView>,
    iterator: Option<SharedIter>,
}

impl Kept {
    /// Does what a line that begins with @ says.
    fn follow(&mut self, store: &SharedStore, order: &str) -> lsmkv::Result<String> {
        let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
        let argv: Vec<&[u8]> = rest.split(' ').map(str::as_bytes).collect();
        match verb {
            "begin" => self.transaction = Some(store.begin()?),
            "snapshot" => self.snapshot = Some(store.snapshot()?),
            "iterate" => self.iterator = Some(store.iter(KeyRange::default())?),
            "in" => return self.transaction.as_ref().unwrap().command(&argv).map(shown),
            "then" => return self.snapshot.as_ref().unwrap().command(&argv).map(shown),
            "commit" => self.transaction.as_ref().unwrap().commit()?,
            "rollback" => self.transaction.as_ref().unwrap().rollback()?,
            "next" => {
                let entry = self.iterator.as_mut().unwrap().next()?;
                return Ok(entry.map_or("the end".to_owned(), |entry| {
                    String::from_utf8_lossy(&entry.key).into_owned()
                }));
            }
            "figures" => {
                let Reply::Map(figures) = store.stats()? else { panic!("no map") };
                let line = |(name, value)| match value {
                    Reply::Int(value) => format!("{}={value} ", shown(name)),
                    _ => String::new(),
                };
                return Ok(figures.into_iter().map(line).collect());
            }
            other => panic!("@{other}"),
        }
        Ok("ok".to_owned())
    }
}
