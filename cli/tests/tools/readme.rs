//! The commands for `lsmkv` in the README run as written.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::redis::Redis;
use super::support::Scratch;
use super::toolchain::skip;

/// The lines of the README's command blocks.
fn lines() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let blocks = readme.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines: Vec<String> = blocks.flat_map(str::lines).map(str::to_owned).collect();
    assert!(lines.iter().any(|line| line.starts_with("lsmkv serve")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("lsmkv import")), "{lines:?}");
    lines
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Runs a line in a shell, with this program first in the path.
fn shell(line: &str, dir: &Path) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_lsmkv")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let all = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)));
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", all.unwrap());
    command.stdin(Stdio::null());
    command
}

fn succeeds(line: &str, dir: &Path) -> bool {
    let quiet = shell(line, dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.unwrap().success()
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_commands_of_the_readme_run_as_they_stand() {
    let scratch = Scratch::new();
    let test = "the_commands_of_the_readme_run_as_they_stand";
    let Some(redis) = Redis::start(&scratch, "redis", test) else { return };
    if !succeeds("redis-cli --version", &scratch.path("")) {
        return skip(test, "redis-cli is not installed");
    }
    let dir = scratch.path("work");
    std::fs::create_dir(&dir).unwrap();
    redis.text(&["HSET", "old", "field", "value"]);
    redis.text(&["SAVE"]);
    std::fs::copy(redis.dir.join("dump.rdb"), dir.join("dump.rdb")).unwrap();
    redis.text(&["FLUSHALL"]);
    let port = free_port();
    let mut server = None;
    for line in lines() {
        // Free ports: the usual ones may be in use.
        let line = line.replace("6380", &port).replace("redis://localhost:6379", &redis.url());
        if let Some(line) = line.strip_suffix(" &") {
            // `exec`, so that the test ends the server and not a shell before it.
            server = Some(Server(shell(&format!("exec {line}"), &dir).spawn().unwrap()));
            let begun = Instant::now();
            while !succeeds(&format!("redis-cli -p {port} PING"), &dir) {
                assert!(begun.elapsed() < Duration::from_secs(20), "{line} does not answer");
                std::thread::sleep(Duration::from_millis(20));
            }
            continue;
        }
        if line.starts_with("lsmkv") {
            // These commands open the store themselves.
            server = None;
        }
        assert!(succeeds(&line, &dir), "{line}");
    }
    drop(server);
    assert_eq!(redis.text(&["HGET", "user:1", "name"]), "alice");
    assert_eq!(redis.text(&["HGET", "old", "field"]), "value");
}
