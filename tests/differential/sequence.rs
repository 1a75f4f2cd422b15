//! A sequence of commands on both sides: every reply, then all that is stored, then all that is
//! stored after our store was opened again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::RealClock;
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Options};

use super::grammar::Template;
use super::plan::{Ours, Step, name_of, words};
use super::resp::{Client, Command, Resp, line};
use super::table::GROUPS;
use super::values::Fresh;

/// Databases that sequences use.
const DATABASES: u32 = 3;

/// The commands that can be drawn, with their weights.
pub(crate) struct Generator {
    groups: Vec<(u64, Vec<(u64, Template)>)>,
}

impl Generator {
    /// Those of the table that our side knows.
    pub(crate) fn new(knows: impl Fn(&str) -> bool) -> Self {
        let parse = |(weight, row): &(u64, &str)| (*weight, Template::parse(row));
        let mut groups = Vec::new();
        for (weight, rows) in GROUPS {
            let known = |(_, template): &(u64, Template)| knows(&template.name);
            let rows: Vec<_> = rows.iter().map(parse).filter(known).collect();
            if !rows.is_empty() {
                groups.push((*weight, rows));
            }
        }
        Self { groups }
    }

    /// The sequence of a seed.
    pub(crate) fn sequence(&self, seed: u64, length: usize) -> Vec<Command> {
        let mut random = SplitMix64::new(seed);
        let mut fresh = Fresh::default();
        let mut draw = || {
            let rows = weighted(&self.groups, &mut random);
            weighted(rows, &mut random).draw(&mut random, &mut fresh)
        };
        (0..length).map(|_| draw()).collect()
    }
}

fn weighted<'a, T>(from: &'a [(u64, T)], random: &mut SplitMix64) -> &'a T {
    let mut left = random.below(from.iter().map(|(weight, _)| weight).sum());
    for (weight, value) in from {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return value,
        }
    }
    unreachable!("the weights were summed")
}

/// Whether our side has a command of this name.
pub(crate) fn knows(db: &Db, name: &str) -> bool {
    // No command of a handle, and none at all: both are drawn all the same.
    if ["SELECT", "NOSUCH"].contains(&name) {
        return true;
    }
    let reply = db.command(&[name.as_bytes()]).unwrap();
    !format!("{reply:?}").contains("unknown command")
}

/// How often each command was answered, and how often with something else than an error.
#[derive(Debug, Default)]
pub(crate) struct Tally(pub(crate) BTreeMap<String, (u64, u64)>);

impl Tally {
    fn add(&mut self, commands: &[Command], steps: &[Vec<Step>]) {
        for (command, steps) in commands.iter().zip(steps) {
            let (all, good) = self.0.entry(name_of(command)).or_default();
            *all += u64::from(!steps.is_empty());
            *good += u64::from(steps.last().is_some_and(|step| !step.ours.is_error()));
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        for (name, (all, good)) in other.0 {
            let sum = self.0.entry(name).or_default();
            *sum = (sum.0 + all, sum.1 + good);
        }
    }
}

/// Where the two sides differ.
#[derive(Debug)]
pub(crate) struct Difference {
    /// How many commands of the sequence had run.
    pub(crate) after: usize,
    pub(crate) stage: &'static str,
    pub(crate) asked: Command,
    pub(crate) ours: Resp,
    pub(crate) theirs: Resp,
}

impl Difference {
    /// What tells one bug from another, roughly.
    pub(crate) fn class(&self, commands: &[Command]) -> String {
        let last = commands.last().map(name_of).unwrap_or_default();
        format!("{} {} {last}", self.stage, name_of(&self.asked))
    }

    pub(crate) fn report(&self, commands: &[Command]) -> String {
        let shown = commands.iter().map(|c| format!("  {}\n", line(c))).collect::<String>();
        let Self { stage, ours, theirs, .. } = self;
        let asked = line(&self.asked);
        format!("{shown}{stage}: redis was asked {asked}\n  ours  {ours:?}\n  redis {theirs:?}\n")
    }
}

/// Members and bytes up to which a collection is in its record: as by default, never, and so few
/// that collections outgrow it all the time.
const PACKINGS: [(u32, u32); 3] = [(128, 1024), (0, 1024), (3, 48)];

/// Bytes up to which a string is in its record, and bytes of a chunk of a longer one: as by default,
/// and so few that most strings are in chunks.
const LAYOUTS: [(u64, u64); 3] = [(64 << 10, 8 << 10), (16, 16), (24, 64)];

/// Opens a store with one of the packings; what another one wrote is read as it is.
pub(crate) fn open(fs: &MemFs, packing: usize) -> Ours {
    let fs = Arc::new(fs.clone());
    let (packed_max_members, packed_max_bytes) = PACKINGS[packing % PACKINGS.len()];
    let (inline_max_bytes, chunk_bytes) = LAYOUTS[packing % LAYOUTS.len()];
    let options = Options {
        packed_max_members,
        packed_max_bytes,
        inline_max_bytes,
        chunk_bytes,
        ..Options::default()
    };
    Ours::Store(Db::open_on(fs, Path::new("/db"), options, Arc::new(RealClock)).unwrap())
}

/// Our answers. Half of the sequences move all data to tables and merge them now and then.
fn steps_of(commands: &[Command], stirred: bool, ours: &mut Ours) -> Vec<Vec<Step>> {
    let mut steps = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        steps.push(ours.plan(command));
        if stirred && at % 64 == 40 {
            ours.flush();
        }
        if stirred && at % 256 == 200 {
            ours.compact();
        }
    }
    steps
}

/// Runs a sequence on a server of ours and a redis, both emptied before.
#[allow(dead_code, reason = "the tests of places and of the server use it")]
pub(crate) fn run_on_server(
    commands: &[Command],
    stirred: bool,
    ours: &mut Ours,
    redis: &mut Client,
    tally: &mut Tally,
) -> Result<(), Difference> {
    let empty = [words(&["FLUSHALL"]), words(&["SELECT", "0"])];
    redis.pipeline(&empty).unwrap();
    for command in &empty {
        assert!(ours.plan(command).iter().all(|step| !step.ours.is_error()), "{command:?}");
    }
    let steps = steps_of(commands, stirred, ours);
    tally.add(commands, &steps);
    compare("reply", steps, redis)?;
    let state = content(ours);
    compare("at the end", vec![state], redis)
}

/// Runs a sequence on a fresh store and an empty redis.
pub(crate) fn run(
    commands: &[Command],
    (stirred, packing): (bool, usize),
    redis: &mut Client,
    tally: &mut Tally,
) -> Result<(), Difference> {
    redis.pipeline([&words(&["FLUSHALL"]), &words(&["SELECT", "0"])]).unwrap();
    let fs = MemFs::new();
    let mut ours = open(&fs, packing);
    let steps = steps_of(commands, stirred, &mut ours);
    tally.add(commands, &steps);
    compare("reply", steps, redis)?;
    let state = content(&mut ours);
    compare("at the end", vec![state], redis)?;
    sound(&ours)?;
    ours.db().close().unwrap();
    let mut again = open(&fs, packing + 1);
    let state = content(&mut again);
    let result = compare("after reopening", vec![state], redis).and_then(|()| sound(&again));
    again.db().close().unwrap();
    result
}

/// Whether everything in our store fits together.
pub(crate) fn sound(ours: &Ours) -> Result<(), Difference> {
    let problems = ours.db().check().unwrap();
    if problems.is_empty() {
        return Ok(());
    }
    let (asked, theirs) = (words(&["CHECK"]), Resp::Status("sound".into()));
    let ours = Resp::Error(problems.join("; "));
    Err(Difference { after: 0, stage: "check", asked, ours, theirs })
}

/// Asks redis and compares.
pub(crate) fn compare(
    stage: &'static str,
    steps: Vec<Vec<Step>>,
    redis: &mut Client,
) -> Result<(), Difference> {
    let asks = steps.iter().flatten().map(|step| &step.ask);
    let mut replies = redis.pipeline(asks).unwrap().into_iter();
    for (before, steps) in steps.into_iter().enumerate() {
        for Step { ask, ours, check } in steps {
            let theirs = replies.next().unwrap();
            if !check.holds(&ours, &theirs) {
                return Err(Difference { after: before + 1, stage, asked: ask, ours, theirs });
            }
        }
    }
    Ok(())
}

/// Commands that show everything stored.
pub(crate) fn content(ours: &mut Ours) -> Vec<Step> {
    let mut steps = Vec::new();
    for number in 0..DATABASES {
        steps.extend(ours.plan(&words(&["SELECT", &number.to_string()])));
        let all = words(&["KEYS", "*"]);
        steps.extend(ours.plan(&all));
        let keys = ours.call(&all);
        for key in keys.items().iter().filter_map(Resp::bytes) {
            for question in questions(ours, key) {
                steps.extend(ours.plan(&question));
            }
        }
    }
    steps
}

fn questions(ours: &Ours, key: &[u8]) -> Vec<Command> {
    let of = |name: &str, rest: &[&str]| -> Command {
        [vec![name.as_bytes().to_vec(), key.to_vec()], words(rest)].concat()
    };
    let Resp::Status(kind) = ours.call(&of("TYPE", &[])) else { return vec![of("TYPE", &[])] };
    let contents = match kind.as_str() {
        "hash" => vec![of("HGETALL", &[]), of("HLEN", &[])],
        "list" => vec![of("LRANGE", &["0", "-1"]), of("LLEN", &[])],
        "set" => vec![of("SMEMBERS", &[]), of("SCARD", &[])],
        "zset" => {
            let by_score = of("ZRANGEBYSCORE", &["-inf", "+inf", "WITHSCORES"]);
            vec![by_score, of("ZCARD", &[])]
        }
        _ => vec![of("GET", &[])],
    };
    [vec![of("TYPE", &[]), of("PEXPIRETIME", &[])], contents].concat()
}

/// The shortest sequence found that still differs, by leaving out more and more of it and running
/// it again.
pub(crate) fn shrink(
    commands: &[Command],
    difference: Difference,
    mut again: impl FnMut(&[Command]) -> Result<(), Difference>,
) -> (Vec<Command>, Difference) {
    let mut best = (commands[..difference.after.max(1).min(commands.len())].to_vec(), difference);
    if best.1.stage != "reply" {
        best.0 = commands.to_vec();
    }
    let mut size = best.0.len().div_ceil(2);
    let mut tries = 0;
    while size > 0 && tries < 400 {
        let mut at = 0;
        while at < best.0.len() && tries < 400 {
            let end = (at + size).min(best.0.len());
            let fewer = [&best.0[..at], &best.0[end..]].concat();
            tries += 1;
            match again(&fewer) {
                Err(difference) => best = (fewer, difference),
                Ok(()) => at = end,
            }
        }
        size /= 2;
    }
    best
}
