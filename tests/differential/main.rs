//! Runs random commands on lsmkv and on a real redis-server 7.0, and compares every reply, then the
//! whole content, then the content after lsmkv was reopened.
//!
//! `LSMKV_DIFFERENTIAL_COMMANDS` says how many (CI runs 1,000,000), `LSMKV_DIFFERENTIAL_SEED` where
//! to begin, `LSMKV_DIFFERENTIAL_FAILURES` after how many different differences to stop,
//! `LSMKV_DIFFERENTIAL_WITHOUT` names commands to leave out, `LSMKV_DIFFERENTIAL_SCRIPTS` says how
//! many random scripts run (CI runs 5,000), `LSMKV_DIFFERENTIAL_STORIES` how many steps of random
//! libraries of functions (CI runs 3,000); a fifth of both runs through `lsmkv serve` too. Where the two
//! differ, the sequence is printed in the shortest form that was found.
//!
//! Sequences run on stores of other processes too: a fiftieth of the commands on each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "a test may")]

mod check;
mod expiry;
#[cfg(feature = "scripting")]
mod functions;
mod grammar;
mod intended;
mod plan;
#[rustfmt::skip]
mod pools;
#[cfg(all(feature = "remote", feature = "server"))]
mod places;
mod resp;
#[cfg(feature = "scripting")]
mod script_values;
#[cfg(feature = "scripting")]
mod scripts;
mod sequence;
mod server;
#[cfg(feature = "remote")]
#[path = "../servers/mod.rs"]
mod servers;
mod sessions;
#[rustfmt::skip]
mod table;
#[path = "../toolchain/mod.rs"]
mod toolchain;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lsmkv::{Db, KeyPositions, Options};
use resp::Resp;
use sequence::{Generator, Tally, knows, run, shrink};
use server::Server;

/// Commands of a sequence.
const LENGTH: u64 = 300;

/// Every command of the store.
fn commands() -> impl Iterator<Item = &'static str> {
    lsmkv::commands().map(|command| command.name())
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn memory() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

/// What all sequences of a run share.
struct Run {
    next: AtomicU64,
    end: u64,
    /// How many different differences are enough.
    most: usize,
    found: Mutex<BTreeMap<String, String>>,
    tally: Mutex<Tally>,
}

impl Run {
    fn from_environment() -> Self {
        let seed = number("LSMKV_DIFFERENTIAL_SEED", 1);
        let sequences = number("LSMKV_DIFFERENTIAL_COMMANDS", 1_000_000).div_ceil(LENGTH);
        Self {
            next: AtomicU64::new(seed),
            end: seed + sequences,
            most: usize::try_from(number("LSMKV_DIFFERENTIAL_FAILURES", 5)).unwrap(),
            found: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    /// Runs sequences until there are enough, or enough differences.
    fn compare(&self, server: &Server) {
        let mut redis = server.connect();
        let mut tally = Tally::default();
        let db = memory();
        let without = std::env::var("LSMKV_DIFFERENTIAL_WITHOUT").unwrap_or_default();
        let left_out = |name: &str| without.split_whitespace().any(|other| other == name);
        let generator = Generator::new(|name| knows(&db, name) && !left_out(name));
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end || self.found.lock().unwrap().len() >= self.most {
                break;
            }
            let commands = generator.sequence(seed, usize::try_from(LENGTH).unwrap());
            let setting = (seed % 2 == 1, usize::try_from(seed / 2).unwrap());
            if let Err(difference) = run(&commands, setting, &mut redis, &mut tally) {
                let (commands, difference) = shrink(&commands, difference, |fewer| {
                    run(fewer, setting, &mut redis, &mut Tally::default())
                });
                let report = format!("seed {seed}:\n{}", difference.report(&commands));
                let class = difference.class(&commands);
                self.found.lock().unwrap().entry(class).or_insert(report);
            }
        }
        self.tally.lock().unwrap().join(tally);
    }
}

#[test]
fn every_reply_and_all_content_are_those_of_redis() {
    let Some(first) = Server::start("differential::replies") else { return };
    let second = Server::start("differential::replies").unwrap();
    let run = Run::from_environment();
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for server in [&first, &second] {
            scope.spawn(|| run.compare(server));
        }
    });
    let tally = run.tally.into_inner().unwrap().0;
    let total: u64 = tally.values().map(|(all, _)| all).sum();
    println!("{total} commands in {:?}", begun.elapsed());
    let reports: Vec<_> = run.found.into_inner().unwrap().into_values().collect();
    assert!(reports.is_empty(), "{} differences\n{}", reports.len(), reports.join("\n"));
    for name in commands().filter(|name| drawn().contains(name)) {
        let (all, good) = tally.get(name).copied().unwrap_or_default();
        assert!(total < 200_000 || good > 30, "{name} hardly ever succeeds: {good} of {all}");
    }
}

/// The expiry of redis and ours is compared with the clock running; the sequences have none.
#[test]
fn keys_expire_as_in_redis() {
    let Some(server) = Server::start("differential::expiry") else { return };
    for packing in 0..2 {
        let mut redis = server.connect();
        redis.pipeline([&plan::words(&["FLUSHALL"])]).unwrap();
        if let Err(difference) = expiry::story(&mut redis, packing) {
            panic!("{}", difference.report(&[]));
        }
    }
}

/// Commands that the table of generators draws.
fn drawn() -> BTreeSet<&'static str> {
    let rows = table::GROUPS.iter().flat_map(|(_, rows)| *rows);
    rows.flat_map(|(_, row)| row.split_whitespace()).collect()
}

/// Whether redis 7.0 has a command that came with this version.
fn is_in_reference(since: &str) -> bool {
    let numbers: Vec<u32> = since.split('.').map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1]) <= (7, 0)
}

/// Commands that came later have tests of their own.
#[test]
fn every_command_of_the_reference_is_drawn() {
    let drawn = drawn();
    // Scripts have a generator of their own: see `scripts`. Messages and waits are compared over the
    // wire, with several clients: see `messages` and `key_events` among the tests of the server.
    let elsewhere = ["Scripts", "Blocking commands", "Messages"];
    let in_table = |command: &lsmkv::CommandInfo| {
        is_in_reference(command.since()) && !elsewhere.contains(&command.group())
    };
    for command in lsmkv::commands().filter(in_table) {
        assert!(drawn.contains(command.name()), "{} is in no generator", command.name());
    }
}

/// COMMAND INFO and COMMAND DOCS of redis tell the same arity, key positions and version as the
/// schema, for every command that redis 7.0 has.
#[test]
fn the_schema_agrees_with_redis() {
    let Some(server) = Server::start("differential::schema") else { return };
    let mut redis = server.connect();
    let mut compared = 0;
    for command in lsmkv::commands() {
        let name = command.name();
        let info = redis.call(&["COMMAND", "INFO", name]).unwrap();
        let Some(info) = info.items().first().map(Resp::items).filter(|info| !info.is_empty())
        else {
            continue;
        };
        let integer = |at: usize| match &info[at] {
            Resp::Int(number) => *number,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(integer(1), command.arity() as i64, "arity of {name}");
        let keys = (integer(3), integer(4), integer(5));
        match command.key_positions() {
            // Redis tells the channel of a shard as a key, for its cluster.
            KeyPositions::None if name == "SPUBLISH" => assert_eq!(keys, (1, 1, 1)),
            KeyPositions::None => assert_eq!(keys, (0, 0, 0), "{name}"),
            KeyPositions::Range { first, last, step } => {
                // Subcommands have the key; redis tells it with each of them.
                let ours = (first as i64, last as i64, step as i64);
                let of_subcommand = ["MEMORY", "OBJECT"].contains(&name);
                assert!(keys == ours || of_subcommand, "{name}: {keys:?}, not {ours:?}");
            }
            KeyPositions::Counted { before, .. } => {
                let before = before as i64;
                assert_eq!(keys, (before.min(1), before, before.min(1)), "{name}");
            }
        }
        let docs = redis.call(&["COMMAND", "DOCS", name]).unwrap();
        let fields = docs.items()[1].items();
        let at = fields.iter().position(|field| field.bytes() == Some(b"since")).unwrap();
        assert_eq!(fields[at + 1].bytes(), Some(command.since().as_bytes()), "{name}");
        compared += 1;
    }
    assert!(compared > 130, "{compared}");
}
