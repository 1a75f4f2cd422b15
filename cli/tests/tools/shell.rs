//! The shell: one command, commands from standard input, and a person at a terminal.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::support::{Scratch, ok, run, run_with_input};
use super::toolchain::skip;

#[test]
fn one_command_exits_by_its_outcome() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    let store = store.as_str();
    assert_eq!(ok(&[store, "HSET", "user:1", "name", "alice", "mail", "a@b.c"]), "(integer) 2\n");
    assert_eq!(
        ok(&[store, "HGETALL", "user:1"]),
        "1# \"mail\" => \"a@b.c\"\n2# \"name\" => \"alice\"\n"
    );
    assert_eq!(
        ok(&[store, "--json", "HGETALL", "user:1"]),
        "{\"mail\":\"a@b.c\",\"name\":\"alice\"}\n"
    );
    assert_eq!(ok(&[store, "--raw", "HGET", "user:1", "name"]), "alice\n");
    assert_eq!(ok(&[store, "LRANGE", "none", "0", "-1"]), "(empty array)\n");
    let wrong = run(&[store, "INCR", "user:1"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.starts_with("(error) WRONGTYPE"), "{}", wrong.out);
    let refused = run(&[store, "--read-only", "SET", "k", "v"]);
    assert_eq!(refused.code, 1, "{}", refused.out);
}

#[test]
fn a_mistyped_subcommand_makes_no_store() {
    let scratch = Scratch::new();
    let typo = scratch.arg("chekc");
    let run = run(&[&typo, "some/dir"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("no command"), "{}", run.err);
    assert!(!scratch.path("chekc").exists());
}

#[test]
fn standard_input_is_one_session_with_quotes_over_lines() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    let script = b"# a comment\nMULTI\nSET k \"two\nlines\"\nEXEC\nGET k\nSELECT 2\nGET k\n.mode json\nPING\n";
    let run = run_with_input(&[store.as_str()], script);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out, "OK\nQUEUED\n1) OK\n\"two\\nlines\"\nOK\n(nil)\n\"PONG\"\n");
    let failed = run_with_input(&[store.as_str()], b"NOPE\nSET after fine\n");
    assert_eq!(failed.code, 1);
    assert!(failed.out.ends_with("OK\n"), "{}", failed.out);
}

#[test]
fn dot_commands_inspect_the_store_that_is_open() {
    let scratch = Scratch::new();
    let (store, file) = (scratch.arg("store"), scratch.arg("file.json"));
    let script =
        format!("SET k v\n.levels\n.stats\n.check\n.tables\n.dump\n.dump {file}\n.help GET\n");
    let run = run_with_input(&[store.as_str()], script.as_bytes());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    for text in ["keys_estimated", "no problems", "$3\r\nSET", "key\n", "mem"] {
        assert!(run.out.contains(text), "{text:?} is missing: {}", run.out);
    }
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"key\":\"k\""));
    std::fs::write(scratch.path("more"), "SET from file\nRPUSH l 1 2\n").unwrap();
    let read = run_with_input(
        &[store.as_str()],
        format!(".read {}\nLLEN l\n", scratch.arg("more")).as_bytes(),
    );
    assert_eq!(read.out, "2 commands, 0 errors\n(integer) 2\n");
    let wrong = run_with_input(&[store.as_str()], b".nothing\n");
    assert_eq!(wrong.code, 1);
}

/// A shell in a terminal of its own, created by script(1).
struct Terminal {
    child: std::process::Child,
    seen: Arc<Mutex<String>>,
}

impl Terminal {
    fn open(store: &str, history: &str) -> Option<Self> {
        let command = format!("{} {store}", env!("CARGO_BIN_EXE_lsmkv"));
        let started = Command::new("script")
            .args(["--quiet", "--flush", "--command", &command, "/dev/null"])
            .env("LSMKV_HISTORY", history)
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            skip("tools::shell::terminal", "script (util-linux) is not installed");
            return None;
        };
        let seen = Arc::new(Mutex::new(String::new()));
        let (mut output, shared) = (child.stdout.take().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        Some(Self { child, seen })
    }

    fn type_keys(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits until the terminal shows this text after the last wait.
    fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        loop {
            let mut seen = self.seen.lock().unwrap();
            if let Some(at) = seen.find(text) {
                seen.drain(..at + text.len());
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{text:?} never came: {:?}", *seen);
            drop(seen);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn at_a_terminal_there_are_prompts_hints_completion_and_history() {
    let scratch = Scratch::new();
    let (store, history) = (scratch.arg("store"), scratch.arg("history"));
    let Some(mut terminal) = Terminal::open(&store, &history) else { return };
    terminal.wait_for("Type .help for help.");
    terminal.wait_for("store> ");
    terminal.type_keys("SET user:1000 alice\r");
    terminal.wait_for("\x1b[32mOK");
    // Tab completes a command, hints show its arguments, then Tab completes the key.
    terminal.type_keys("getr\t");
    terminal.wait_for("getrange ");
    terminal.wait_for("key start end");
    terminal.type_keys("us\t");
    terminal.wait_for("user:1000");
    terminal.type_keys(" 0 2\r");
    terminal.wait_for("\"ali\"");
    // A quote spans lines; the prompt shows MULTI and SELECT.
    terminal.type_keys("SET k \"a\rb\"\r");
    terminal.wait_for("OK");
    terminal.type_keys("MULTI\r");
    terminal.wait_for("store(TX)> ");
    terminal.type_keys("GET k\r");
    terminal.wait_for("QUEUED");
    terminal.wait_for("store(TX)> ");
    terminal.type_keys("EXEC\r");
    terminal.wait_for("\"a\\nb\"");
    terminal.type_keys("SELECT 3\r");
    terminal.wait_for("store[3]> ");
    // Ctrl-C drops the line, Ctrl-D leaves.
    terminal.type_keys("GET nothi\x03");
    terminal.wait_for("store[3]> ");
    terminal.type_keys("\x04");
    assert!(terminal.child.wait().unwrap().success());
    assert!(std::fs::read_to_string(&history).unwrap().contains("SET user:1000 alice"));
    // The next shell has the history.
    let Some(mut terminal) = Terminal::open(&store, &history) else { return };
    terminal.wait_for("store> ");
    terminal.type_keys("\x1b[A");
    terminal.wait_for("SELECT 3");
    terminal.type_keys("\x03.quit\r");
    assert!(terminal.child.wait().unwrap().success());
}
