//! A process of its own that shares the store: this test program, started again. It does what its
//! standard input says and answers on its standard output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lsmkv::{Options, Reply, SharedStore, SyncMode};

/// Set in the worker: the directory of the store.
const DIR: &str = "LSMKV_TEST_SHARED_DIR";
/// Set in the worker: its number, if it writes until its input ends.
pub(crate) const WRITER: &str = "LSMKV_TEST_SHARED_WRITER";
/// Set in the worker: its first number.
pub(crate) const FIRST: &str = "LSMKV_TEST_SHARED_FIRST";
/// Set in the worker: milliseconds that it waits for a reply.
pub(crate) const REPLY_MS: &str = "LSMKV_TEST_SHARED_REPLY_MS";

/// A worker. Dropping it kills it.
pub(crate) struct Worker {
    pub(crate) process: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Worker {
    pub(crate) fn start(dir: &Path, variables: &[(&str, String)]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker::worker_that_shares_a_store", "--nocapture", "--quiet"])
            .env(DIR, dir)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
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

pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n> {text}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

/// Not a test of its own: what workers run.
#[test]
fn worker_that_shares_a_store() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let mut options = Options { sync: SyncMode::Always, ..Options::default() };
    // A holder may recover for long on a loaded machine.
    (options.connect_timeout_ms, options.reply_timeout_ms) = (120_000, 120_000);
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
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if line == "close" {
            store.close().unwrap();
            say("closed");
            continue;
        }
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        match store.command(&argv) {
            Ok(Reply::Bulk(bytes)) => say(&String::from_utf8_lossy(&bytes)),
            Ok(reply) => say(&format!("{reply:?}")),
            Err(error) => say(&format!("{error:?}")),
        }
    }
}
