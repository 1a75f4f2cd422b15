//! Two ratios, each of two ways of doing the same in one run, in turn:
//!
//! - a GET and a SET, alone and sixteen in one call, through `lsmkv::Remote` and through the bare redis
//!   crate, on the same redis-server: at most 1.3 times the time;
//! - the same load on a store that a program serves by `Server::start` and on `lsmkv serve`, with the
//!   same allocator: at least 0.9 times the speed.
//!
//! `lsmkv-bench-remote LSMKV` with the path of the program. The median of the rounds counts.

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use lsmkv::{Db, Options, Remote, Reply, Server};
use redis::ConnectionLike as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The rounds of each comparison, and the calls of a round.
const ROUNDS: usize = 11;
const CALLS: usize = 8000;
/// The commands of one call, where there are several.
const TOGETHER: usize = 16;
/// The most that forwarding may take of the time of the bare client.
const MOST_TIME: f64 = 1.3;
/// The least that serving from within a program may have of the speed of `lsmkv serve`.
const LEAST_SPEED: f64 = 0.9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", directory, address] => serve(directory, address),
        [program] => compare(program),
        _ => Err("usage: lsmkv-bench-remote LSMKV".into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lsmkv-bench-remote: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves a store until the process is killed: the program that `lsmkv serve` is compared with.
fn serve(directory: &str, address: &str) -> Result<bool> {
    let options = Options::default();
    let db = Db::open(directory, options.clone())?;
    let server = Server::start(&db, address, &options)?;
    while server.is_running() {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(true)
}

fn compare(program: &str) -> Result<bool> {
    let forwarding = forwarding()?;
    let serving = serving(program)?;
    Ok(forwarding && serving)
}

/// A server on a socket in a directory of its own, which dies with this value.
struct Process {
    child: Child,
    directory: tempfile::TempDir,
}

impl Process {
    fn start(command: impl FnOnce(&Path) -> Command) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut command = command(directory.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let process = Self { child, directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(process.socket()).is_err() {
            if Instant::now() > deadline {
                return Err("a server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key(number: usize) -> String {
    format!("key:{:06}", number * 7919 % 10_000)
}

const VALUE: &[u8] = &[b'v'; 100];

/// The four kinds of call that are timed.
const KINDS: [(&str, bool, usize); 4] =
    [("SET", true, 1), ("GET", false, 1), ("SET", true, TOGETHER), ("GET", false, TOGETHER)];

/// The time of a round through the bare crate.
fn bare(connection: &mut redis::Connection, writes: bool, together: usize) -> Result<Duration> {
    let begun = Instant::now();
    for call in 0..CALLS / together {
        let mut pipeline = redis::pipe();
        for number in 0..together {
            let key = key(call * together + number);
            if writes {
                pipeline.cmd("SET").arg(key).arg(VALUE);
            } else {
                pipeline.cmd("GET").arg(key);
            }
        }
        let replies: Vec<redis::Value> = if together == 1 {
            let one = pipeline.cmd_iter().next().ok_or("no command")?;
            vec![connection.req_command(one)?]
        } else {
            pipeline.query(connection)?
        };
        assert_eq!(replies.len(), together);
    }
    Ok(begun.elapsed())
}

/// The time of a round through a remote store.
fn forwarded(store: &Remote, writes: bool, together: usize) -> Result<Duration> {
    let begun = Instant::now();
    for call in 0..CALLS / together {
        let keys: Vec<String> = (0..together).map(|n| key(call * together + n)).collect();
        let argvs: Vec<Vec<&[u8]>> = keys
            .iter()
            .map(|key| match writes {
                true => vec![b"SET".as_slice(), key.as_bytes(), VALUE],
                false => vec![b"GET".as_slice(), key.as_bytes()],
            })
            .collect();
        let replies: Vec<Reply> = match argvs.as_slice() {
            [one] => vec![store.command(one)?],
            several => store.session()?.pipeline(several)?,
        };
        assert_eq!(replies.len(), together);
    }
    Ok(begun.elapsed())
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Whether forwarding is as fast as it should be.
fn forwarding() -> Result<bool> {
    let redis = Process::start(|directory| {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(directory.join("socket")).arg("--dir").arg(directory);
        command
    })?;
    let client = redis::Client::open(format!("unix://{}", redis.socket().display()))?;
    let mut connection = client.get_connection()?;
    let store = Remote::open(&redis.address(), &Options::default())?;
    let mut held = true;
    println!("through lsmkv, as a multiple of the time of the bare redis crate (at most {MOST_TIME}):");
    for (name, writes, together) in KINDS {
        let mut ratios = Vec::new();
        let mut times = (Duration::ZERO, Duration::ZERO);
        for _ in 0..ROUNDS {
            let theirs = bare(&mut connection, writes, together)?;
            let ours = forwarded(&store, writes, together)?;
            times = (times.0 + theirs, times.1 + ours);
            ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
        }
        let ratio = median(ratios);
        held &= ratio <= MOST_TIME;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / (ROUNDS * CALLS) as f64;
        println!(
            "  {name}, {together} a call: {ratio:.2} ({:.2} us a command, bare {:.2})",
            each(times.1),
            each(times.0)
        );
    }
    Ok(held)
}

/// Whether a program serves its store as fast as `lsmkv serve` does.
fn serving(program: &str) -> Result<bool> {
    let standalone = Process::start(|directory| {
        let mut command = Command::new(program);
        command.arg("serve").arg(directory.join("store"));
        command.args(["--port", "0", "--unixsocket"]).arg(directory.join("socket"));
        command.stderr(Stdio::null());
        command
    })?;
    let own = std::env::current_exe()?;
    let within = Process::start(|directory| {
        let mut command = Command::new(own);
        command.arg("serve").arg(directory.join("store"));
        command.arg(format!("unix:{}", directory.join("socket").display()));
        command
    })?;
    let mut held = true;
    println!("a store served by a program, as a multiple of the speed of `lsmkv serve` (at least {LEAST_SPEED}):");
    let connect = |process: &Process| -> Result<redis::Connection> {
        let client = redis::Client::open(format!("unix://{}", process.socket().display()))?;
        Ok(client.get_connection()?)
    };
    let (mut standalone, mut within) = (connect(&standalone)?, connect(&within)?);
    for (name, writes, together) in KINDS {
        let mut ratios = Vec::new();
        for _ in 0..ROUNDS {
            let theirs = bare(&mut standalone, writes, together)?;
            let ours = bare(&mut within, writes, together)?;
            ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
        }
        let ratio = median(ratios);
        held &= ratio >= LEAST_SPEED;
        println!("  {name}, {together} a call: {ratio:.2}");
    }
    Ok(held)
}
