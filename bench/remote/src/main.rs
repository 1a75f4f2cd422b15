//! Three ratios, each of two ways of doing the same in one run, in turn:
//!
//! - a GET and a SET, alone and sixteen in one call, through `lsmkv::Remote` and through the bare redis
//!   crate, on the same redis-server: at most 1.3 times the time;
//! - the same load on a store that a program serves by `Server::start` and on `lsmkv serve`, with the
//!   same allocator: at least 0.9 times the speed;
//! - the same calls by C functions on a shared store that another process holds, and through the bare
//!   redis crate on a redis-server, each with its client on the processor where that is faster: at least
//!   0.9 times the speed.
//!
//! `lsmkv-bench-remote LSMKV` with the path of the program. The median of the rounds counts.

mod load;
mod processes;
mod sharing;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use lsmkv::{Db, Options, Remote, Server, SharedStore};

use load::{CALLS, KINDS, bare, forwarded};
use processes::Process;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The rounds of each comparison.
const ROUNDS: usize = 11;
/// The most that forwarding may take of the time of the bare client.
const MOST_TIME: f64 = 1.3;
/// The least that serving from within a program may have of the speed of `lsmkv serve`.
const LEAST_SPEED: f64 = 0.9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", directory, address] => serve(directory, address),
        ["hold", directory] => hold(directory),
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

/// Holds a shared store until the process is killed.
fn hold(directory: &str) -> Result<bool> {
    let _store = SharedStore::open(directory, &Options::default())?;
    loop {
        std::thread::park();
    }
}

fn compare(program: &str) -> Result<bool> {
    let forwarding = forwarding()?;
    let serving = serving(program)?;
    let sharing = sharing::compare()?;
    Ok(forwarding && serving && sharing)
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
    let mut connection = redis.connect()?;
    let store = Remote::open(&redis.address(), &Options::default())?;
    let mut held = true;
    println!(
        "through lsmkv, as a multiple of the time of the bare redis crate (at most {MOST_TIME}):"
    );
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
    println!(
        "a store served by a program, as a multiple of the speed of `lsmkv serve` (at least {LEAST_SPEED}):"
    );
    let (mut standalone, mut within) = (standalone.connect()?, within.connect()?);
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
