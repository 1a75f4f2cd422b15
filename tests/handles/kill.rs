//! The bank's process dies by SIGKILL at any moment, again and again.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Options, SyncMode};

use super::bank::{TOTAL, found, total, transfer};
use super::{integer, number};

/// Set in the child: the directory of the store.
const CHILD_DIR: &str = "LSMKV_TEST_BANK_DIR";
const THREADS: usize = 4;

fn open(dir: &Path) -> Db {
    let options = Options {
        sync: SyncMode::Off,
        write_buffer: 64 << 10,
        table_bytes: 32 << 10,
        memory_budget: 2 << 20,
        log_segment_bytes: 16 << 10,
        ..Options::default()
    };
    Db::open(dir, options).unwrap()
}

fn count(thread: usize) -> String {
    format!("count:{thread}")
}

/// Not a test of its own: what the children run. Says each transfer that was acknowledged.
#[test]
fn child_bank_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let db = open(Path::new(&dir));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                let done = integer(db, count(thread).as_bytes());
                let mut random = SplitMix64::new(done as u64 * 8 + thread as u64);
                for n in done + 1.. {
                    transfer(db, &mut random, thread);
                    let said = format!("\nack {thread} {n}\n");
                    let mut out = std::io::stdout().lock();
                    out.write_all(said.as_bytes()).and_then(|()| out.flush()).unwrap();
                }
            });
        }
    });
}

/// Lets a child, which is a test of this program, work and kills it. Returns the whole lines that it has
/// said; it must say `ack` at least once.
pub(super) fn said_until_killed(
    child: &str,
    variables: &[(&str, String)],
    random: &mut SplitMix64,
) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([child, "--exact", "--nocapture"])
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("ack") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "the child ended: {said}");
    }
    let reader = std::thread::spawn(move || {
        lines.read_to_string(&mut said).unwrap();
        said
    });
    std::thread::sleep(Duration::from_micros(random.below(40_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut said = reader.join().unwrap();
    // The last line may be cut short: then it was not said.
    said.truncate(said.rfind('\n').unwrap_or(0));
    said
}

/// Lets a bank work and kills it; the number of the last transfer that each thread has said.
fn live_and_die(dir: &Path, random: &mut SplitMix64) -> [i64; THREADS] {
    let variables = [(CHILD_DIR, dir.to_str().unwrap().to_owned())];
    let said = said_until_killed("kill::child_bank_that_is_killed", &variables, random);
    let mut last = [0; THREADS];
    for line in said.lines().filter_map(|line| line.strip_prefix("ack ")) {
        let (thread, n) = line.split_once(' ').unwrap();
        last[thread.parse::<usize>().unwrap()] = n.parse().unwrap();
    }
    last
}

#[test]
fn a_bank_that_is_killed_has_all_its_money_and_every_acknowledged_transfer() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("bank");
    let db = open(&dir);
    found(&db);
    db.close().unwrap();
    let seed = number("LSMKV_SEED", 1);
    let mut random = SplitMix64::new(seed);
    for kill in 0..number("LSMKV_BANK_KILLS", 15) {
        let said = live_and_die(&dir, &mut random);
        let db = open(&dir);
        assert_eq!(total(&db), TOTAL, "kill {kill} of seed {seed}");
        for (thread, said) in said.into_iter().enumerate() {
            let name = count(thread);
            let done = integer(&db, name.as_bytes());
            // The kill may have come between the commit and the word.
            let context = format!("thread {thread}, kill {kill} of seed {seed}");
            assert!(said == 0 || (said..=said + 1).contains(&done), "{said} {done}: {context}");
            let other = db.hget(b"counts", name.as_bytes()).unwrap().unwrap_or_default();
            assert_eq!(
                other,
                if done == 0 { String::new() } else { done.to_string() },
                "{context}"
            );
        }
        assert_eq!(db.check().unwrap(), [""; 0]);
        if kill % 4 == 0 {
            db.close().unwrap();
        }
    }
}
