//! Libraries of functions: random stories of FUNCTION and FCALL, run here and by redis. Libraries
//! that fail to load, names with two owners, flags, payloads of one side that the other restores,
//! and what a reopen finds are part of them. `LSMKV_DIFFERENTIAL_STORIES` says how many steps. A fifth
//! of them runs on `lsmkv serve`.

use std::path::Path;

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Options};

use super::number;
use super::plan::{Ours, words};
use super::resp::{Client, Command, Resp, line};
use super::scripts::{Writer, compare_content};
use super::server::Server;

const LIBRARIES: [&str; 4] = ["one", "two", "three", "Four_4"];
const FUNCTIONS: [&str; 7] = ["f", "g", "h", "F2", "reader", "writer", "long_name_1"];
const FLAGS: [&str; 7] = [
    "'no-writes'",
    "'no-writes'",
    "'allow-oom'",
    "'allow-stale'",
    "'no-cluster'",
    "'allow-cross-slot-keys'",
    "'nosuch'",
];
/// First lines of libraries; NAME is a name.
const HEADS: [&str; 16] = [
    "#!lua name=NAME\n",
    "#!lua name=NAME\n",
    "#!lua name=NAME\n",
    "#!lua name=NAME\n",
    "#!lua name=NAME\n",
    "#!lua name=NAME\n",
    "#!lua name=NAME\n",
    "#!LUA   name=NAME\n",
    "#!lua name=NAME name=NAME\n",
    "#!lua name=NAME other=1\n",
    "#!lua\n",
    "#!lua name=\n",
    "#!lua name=a-b\n",
    "#!js name=NAME\n",
    "name=NAME\n",
    "#!lua name=NAME",
];
/// Lines of libraries that do not load, or do more than to register.
const LINES: [&str; 18] = [
    "local x = 1",
    "redis.call('SET', 'k0', 'x')",
    "redis.pcall('SET', 'k0', 'x')",
    "error('while loading')",
    "error({err = 'CODE while loading'})",
    "x = 1",
    "local v = nosuch",
    "return 1",
    "redis.register_function('f')",
    "redis.register_function()",
    "redis.register_function('f', 1)",
    "redis.register_function({function_name = 'f'})",
    "redis.register_function({callback = function() end})",
    "redis.register_function({function_name = 'f', callback = function() end, other = 1})",
    "redis.register_function({function_name = 'f', callback = function() end, flags = 1})",
    "redis.register_function('a-b', function() end)",
    "redis.register_function('f', function() end) redis.register_function('f', function() end)",
    "syntax error here",
];

struct Teller {
    writer: Writer,
}

impl Teller {
    fn below(&mut self, n: usize) -> usize {
        self.writer.below(n)
    }

    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        self.writer.pick(from)
    }

    fn function(&mut self) -> String {
        let (name, body) = (self.pick(&FUNCTIONS), self.writer.script());
        let body = format!("function(KEYS, ARGV) {body} end");
        if self.below(3) == 0 {
            return format!("redis.register_function('{name}', {body})");
        }
        let flags: Vec<&str> = (0..self.below(3)).map(|_| self.pick(&FLAGS)).collect();
        let description =
            self.pick(&["", "", ", description = 'what it does'", ", description = 1"]);
        format!(
            "redis.register_function{{function_name = '{name}', callback = {body}, flags = {{{}}}{description}}}",
            flags.join(", ")
        )
    }

    fn library(&mut self) -> String {
        let name = self.pick(&LIBRARIES);
        let mut code = self.pick(&HEADS).replace("NAME", name);
        for _ in 0..=self.below(3) {
            code += &match self.below(12) {
                0 => self.pick(&LINES).to_owned(),
                _ => self.function(),
            };
            code.push('\n');
        }
        code
    }

    fn call(&mut self) -> Vec<String> {
        let command = self.pick(&["FCALL", "FCALL", "FCALL", "FCALL_RO", "fcall"]);
        let function = self.pick(&["f", "g", "h", "F2", "reader", "writer", "nosuch", "F"]);
        let rest: &[&str] = match self.below(12) {
            0 => &["0"],
            1 => &["1", "k0"],
            2 => &["3", "k0"],
            3 => &["-1", "k0"],
            4 => &["x", "k0"],
            5 => &["2", "k0", "k1"],
            6 => &["99999999999999999999"],
            _ => &["2", "k0", "k1", "a", "1"],
        };
        [command, function].iter().chain(rest).map(|word| (*word).to_owned()).collect()
    }

    /// A command, without those that restore a payload.
    fn command(&mut self) -> Vec<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        match self.below(20) {
            0..=4 => {
                let replace =
                    self.pick(&["FUNCTION LOAD", "FUNCTION LOAD REPLACE", "function load replace"]);
                let mut words = words(replace);
                words.push(self.library());
                words
            }
            5 => {
                let name = self.pick(&["one", "two", "three", "Four_4", "nosuch"]);
                words(&format!("FUNCTION DELETE {name}"))
            }
            6 => words(self.pick(&[
                "FUNCTION FLUSH",
                "FUNCTION FLUSH ASYNC",
                "FUNCTION FLUSH SYNC",
                "FUNCTION FLUSH x",
                "FUNCTION FLUSH SYNC x",
                "FUNCTION KILL",
                "FUNCTION KILL x",
                "SCRIPT KILL",
                "FUNCTION NOSUCH",
                "FUNCTION",
                "FUNCTION LOAD",
                "FUNCTION LOAD x y",
                "FUNCTION DELETE",
                "FUNCTION DUMP x",
                "FUNCTION STATS x",
                "FUNCTION RESTORE",
                "FUNCTION RESTORE x",
                "FUNCTION RESTORE x APPEND y",
                "FUNCTION DELETE a b",
                "FCALL f",
                "FCALL",
                "FCALL_RO f",
                "FUNCTION LIST x",
                "FUNCTION LIST LIBRARYNAME",
                "FUNCTION LIST WITHCODE WITHCODE",
                "FUNCTION LIST LIBRARYNAME a LIBRARYNAME b",
                "function list withcode libraryname",
            ])),
            7 => words("FUNCTION STATS"),
            8 => words(self.pick(&[
                "FUNCTION LIST",
                "FUNCTION LIST WITHCODE",
                "FUNCTION LIST LIBRARYNAME t*",
                "FUNCTION LIST WITHCODE LIBRARYNAME [of]*",
                "FUNCTION LIST LIBRARYNAME T*",
            ])),
            _ => self.call(),
        }
    }
}

/// The two sides.
struct Sides<'a> {
    ours: Ours,
    redis: &'a mut Client,
    steps: u64,
}

impl Sides<'_> {
    fn both(&mut self, command: &Command) -> [Resp; 2] {
        self.steps += 1;
        [self.ours.call(command), self.redis.pipeline([command]).unwrap().remove(0)]
    }

    fn compare(&mut self, command: &Command, seed: u64) {
        let [ours, theirs] = self.both(command).map(without_choice);
        // Redis keeps libraries, functions and flags in no order.
        let listed = command.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"LIST"));
        let [ours, theirs] = if listed { [ours, theirs].map(sorted) } else { [ours, theirs] };
        assert_eq!(ours, theirs, "ours first, then redis, seed {seed}: {}", line(command));
    }

    /// Restores on each side what the other one has dumped.
    fn exchange(&mut self, policy: &str, seed: u64) {
        let dump: Command = ["FUNCTION", "DUMP"].map(|word| word.as_bytes().to_vec()).into();
        let payloads = self.both(&dump).map(|reply| reply.bytes().unwrap().to_vec());
        let restore = |payload: &[u8]| {
            let mut command = vec![b"FUNCTION".to_vec(), b"RESTORE".to_vec(), payload.to_vec()];
            command.extend((!policy.is_empty()).then(|| policy.as_bytes().to_vec()));
            command
        };
        let [ours, theirs] = payloads.map(|payload| restore(&payload));
        let replies = [self.ours.call(&theirs), self.redis.pipeline([&ours]).unwrap().remove(0)];
        self.steps += 1;
        let shown = replies.map(without_choice);
        assert_eq!(shown[0], shown[1], "seed {seed}, policy {policy:?}");
    }
}

/// Leaves out which of several names that exist already is the first one: redis has no order.
fn without_choice(reply: Resp) -> Resp {
    match reply {
        Resp::Error(text) if text.ends_with("already exists") => {
            let what = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
            Resp::Error(format!("{what} already exists"))
        }
        other => other,
    }
}

/// Sorts all that is a list in a reply.
fn sorted(reply: Resp) -> Resp {
    match reply {
        Resp::Array(Some(items)) => {
            let mut items: Vec<Resp> = items.into_iter().map(sorted).collect();
            items.sort();
            Resp::Array(Some(items))
        }
        other => other,
    }
}

fn open(path: &Path) -> Db {
    // In redis, what a script wrote before it failed stays.
    let options = Options { script_keeps_writes: true, ..Options::default() };
    Db::open(path, options).unwrap()
}

impl Sides<'_> {
    /// Begins a story: nothing is left of the one before.
    fn clear(&mut self) {
        for command in [&["FLUSHALL"][..], &["FUNCTION", "FLUSH"]] {
            self.ours.call(&words(command));
            self.redis.call(command).unwrap();
        }
    }

    /// Tells a story of fifty steps. `between` comes in its middle.
    fn tell(&mut self, seed: u64, between: impl FnOnce(&mut Ours)) {
        let mut teller = Teller { writer: Writer { random: SplitMix64::new(seed) } };
        let mut between = Some(between);
        self.clear();
        for step in 0..50 {
            if teller.below(15) == 0 {
                let policy = teller.pick(&["", "APPEND", "REPLACE", "FLUSH", "replace", "x"]);
                self.exchange(policy, seed);
            } else {
                let command = teller.command().into_iter().map(String::into_bytes).collect();
                self.compare(&command, seed);
            }
            if step == 25
                && let Some(between) = between.take()
            {
                between(&mut self.ours);
            }
        }
        self.compare(&words(&["FUNCTION", "LIST", "WITHCODE"]), seed);
        compare_content(&self.ours, self.redis, seed);
    }
}

#[test]
fn random_stories_of_functions_reply_and_leave_what_they_do_in_redis() {
    let Some(server) = Server::start("differential::functions") else { return };
    let mut redis = server.connect();
    let (first, count) =
        (number("LSMKV_DIFFERENTIAL_SEED", 1), number("LSMKV_DIFFERENTIAL_STORIES", 3000));
    let (mut seed, mut steps) = (first, 0);
    while steps < count {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("store");
        let mut sides = Sides { ours: Ours::Store(open(&path)), redis: &mut redis, steps: 0 };
        sides.tell(seed, |ours| {
            ours.db().close().unwrap();
            *ours = Ours::Store(open(&path));
        });
        assert_eq!(sides.ours.db().check().unwrap(), [""; 0]);
        steps += sides.steps;
        seed += 1;
    }
    println!("{steps} steps of functions compared");
}

#[cfg(feature = "remote")]
#[test]
fn random_stories_of_functions_on_a_server_of_ours_are_those_of_redis() {
    let Some(served) = super::servers::Server::ours("differential::functions_served") else {
        return;
    };
    let Some(server) = Server::start("differential::functions_served") else { return };
    let mut redis = server.connect();
    let stream = std::os::unix::net::UnixStream::connect(served.socket()).unwrap();
    let ours = Ours::Server(Client::new(stream).unwrap().into());
    let mut sides = Sides { ours, redis: &mut redis, steps: 0 };
    let (mut seed, count) =
        (number("LSMKV_DIFFERENTIAL_SEED", 1), number("LSMKV_DIFFERENTIAL_STORIES", 3000) / 5);
    while sides.steps < count {
        sides.tell(seed, |_| {});
        seed += 1;
    }
    println!("{} steps of functions compared on a server", sides.steps);
}
