//! Runs a command on our side, and says what redis is to be asked for it and how its answer must
//! compare. Ours always goes first, so what redis answers steers nothing and a whole sequence is
//! sent to it at once. What random commands of ours removed is removed from redis by name.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lsmkv::{Db, Error, ErrorKind, Reply};

use super::check::Check;
use super::resp::{Client, Command, Resp};

/// One question for redis.
pub(crate) struct Step {
    pub(crate) ask: Command,
    pub(crate) ours: Resp,
    pub(crate) check: Check,
}

impl Step {
    /// The step of a side that tells no kind of missing value from another.
    fn with_one_nil(mut self) -> Self {
        if self.ours == Resp::Bulk(None) && matches!(self.check, Check::Exact | Check::Scores) {
            self.check = Check::NoValue;
        }
        self
    }
}

/// Our side.
pub(crate) enum Ours {
    /// A store with a database selected.
    Store(Db),
    /// A connection to a server, where SELECT is a command.
    #[allow(dead_code, reason = "the test of the server uses it")]
    Server(RefCell<Client>),
    /// A store of another process with a database selected, and whether a call of the last command
    /// was one that its place does not offer.
    #[allow(dead_code, reason = "the test of the server does not use it")]
    Remote(Box<dyn Place>, Cell<bool>),
}

/// A store of another process.
pub(crate) trait Place {
    fn command(&self, argv: &[&[u8]]) -> Result<Reply, Error>;
    fn select(&self, number: u32) -> Result<Box<dyn Place>, Error>;
}

pub(crate) fn words(args: &[&str]) -> Command {
    args.iter().map(|arg| arg.as_bytes().to_vec()).collect()
}

/// The command's name in capitals.
pub(crate) fn name_of(command: &Command) -> String {
    command.first().map(|name| String::from_utf8_lossy(name).to_uppercase()).unwrap_or_default()
}

impl Ours {
    /// The store.
    pub(crate) fn db(&self) -> &Db {
        match self {
            Self::Store(db) => db,
            Self::Server(_) | Self::Remote(..) => panic!("a server keeps its store to itself"),
        }
    }

    /// Moves all data to tables.
    pub(crate) fn flush(&self) {
        match self {
            Self::Store(db) => db.flush().unwrap(),
            Self::Server(_) => assert!(!self.call(&words(&["SAVE"])).is_error()),
            Self::Remote(..) => {}
        }
    }

    /// Merges all tables; a server does that when it likes to.
    pub(crate) fn compact(&self) {
        if let Self::Store(db) = self {
            db.compact().unwrap();
        }
    }

    /// Our reply. A panic or a failure of the store is one that redis never gives.
    pub(crate) fn call(&self, command: &Command) -> Resp {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let db = match self {
            Self::Store(db) => db,
            Self::Remote(store, unsupported) => {
                let reply = match store.command(&args) {
                    Ok(reply) => reply.into(),
                    Err(failure) if failure.kind() == ErrorKind::Unsupported => {
                        unsupported.set(true);
                        Resp::Error(failure.to_string())
                    }
                    Err(failure) => Resp::Error(format!("the store failed: {failure}")),
                };
                // What a node alone can say, it says in a reply.
                let of_cluster = |text: &str| {
                    text.to_lowercase().contains("in cluster mode") || text.starts_with("CROSSSLOT")
                };
                if matches!(&reply, Resp::Error(text) if of_cluster(text)) {
                    unsupported.set(true);
                }
                return reply;
            }
            Self::Server(client) => {
                return match client.borrow_mut().pipeline([command]) {
                    Ok(mut replies) => replies.remove(0),
                    Err(failure) => Resp::Error(format!("the server failed: {failure}")),
                };
            }
        };
        match catch_unwind(AssertUnwindSafe(|| db.command(&args))) {
            Ok(Ok(reply)) => reply.into(),
            Ok(Err(failure)) => Resp::Error(format!("the store failed: {failure}")),
            Err(_) => Resp::Error("the command panicked".into()),
        }
    }

    /// Runs the command; what to ask redis. None if a comparison would be of chance, or the place does
    /// not offer the command.
    pub(crate) fn plan(&mut self, command: &Command) -> Vec<Step> {
        if let Self::Remote(_, unsupported) = self {
            unsupported.set(false);
        }
        let steps = self.steps(command);
        match self {
            Self::Remote(_, unsupported) if unsupported.get() => Vec::new(),
            Self::Remote(..) => steps.into_iter().map(Step::with_one_nil).collect(),
            _ => steps,
        }
    }

    fn steps(&mut self, command: &Command) -> Vec<Step> {
        let one = |ours, check| vec![Step { ask: command.clone(), ours, check }];
        match name_of(command).as_str() {
            "SELECT" => self.select(command),
            "SCAN" | "HSCAN" | "SSCAN" | "ZSCAN" => self.scan(command),
            "SPOP" => self.pop(command),
            "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" => self.sample(command),
            "RANDOMKEY" => self.random_key(command),
            "HGETDEL" => self.get_and_delete(command),
            "SORT" | "SORT_RO" => self.sort(command),
            _ if self.is_open_by_lex(command) => Vec::new(),
            "DBSIZE" if command.len() == 1 => {
                let ask = words(&["KEYS", "*"]);
                vec![Step { ask, ours: self.call(command), check: Check::Length }]
            }
            name => one(self.call(command), Check::of(name)),
        }
    }

    fn select(&mut self, command: &Command) -> Vec<Step> {
        if matches!(self, Self::Server(_)) {
            let ours = self.call(command);
            return vec![Step { ask: command.clone(), ours, check: Check::Exact }];
        }
        // SELECT is the server's; here it is a method, with typed arguments.
        let number = count_in(command, 1).and_then(|number| u32::try_from(number).ok());
        let Some(number) = number.filter(|it| command[1..] == [it.to_string().into_bytes()]) else {
            return Vec::new();
        };
        let selected = match self {
            Self::Store(db) => db.select(number).map(|selected| *db = selected),
            Self::Remote(store, _) => store.select(number).map(|selected| *store = selected),
            Self::Server(_) => return Vec::new(),
        };
        if selected.is_err() {
            return Vec::new();
        }
        let ours = Resp::Status("OK".into());
        vec![Step { ask: command.clone(), ours, check: Check::Exact }]
    }

    /// Follows the cursor to the end; redis is asked for everything at once.
    fn scan(&self, command: &Command) -> Vec<Step> {
        let at = if name_of(command) == "SCAN" { 1 } else { 2 };
        let (mut call, mut found) = (command.clone(), Vec::new());
        // A cursor that no call has returned may skip anything at a place of another kind.
        if matches!(self, Self::Remote(..)) && !self.call(&call).is_error() {
            call[at] = b"0".to_vec();
        }
        for _ in 0..10_000 {
            let reply = self.call(&call);
            let [Resp::Bulk(Some(cursor)), Resp::Array(Some(items))] = reply.items() else {
                return vec![Step { ask: command.clone(), ours: reply, check: Check::Exact }];
            };
            found.extend_from_slice(items);
            if cursor == b"0" {
                break;
            }
            call[at] = cursor.clone();
        }
        let mut ask = command.clone();
        ask[at] = b"0".to_vec();
        ask.extend(words(&["COUNT", "1000000"]));
        let check = match name_of(command).as_str() {
            "ZSCAN" => Check::ScanScores,
            name => Check::Scan { pairs: name == "HSCAN" },
        };
        vec![Step { ask, ours: Resp::Array(Some(found)), check }]
    }

    /// What ours popped is removed from redis, where it must have been.
    fn pop(&self, command: &Command) -> Vec<Step> {
        let card = words(&["SCARD"]).into_iter().chain(command.get(1).cloned()).collect();
        let before = self.call(&card);
        let reply = self.call(command);
        let members = match &reply {
            Resp::Bulk(Some(member)) => vec![member.clone()],
            other => other.items().iter().filter_map(|m| m.bytes().map(<[u8]>::to_vec)).collect(),
        };
        if members.is_empty() {
            return vec![Step { ask: command.clone(), ours: reply, check: Check::Exact }];
        }
        let asked = count_in(command, 2).unwrap_or(1);
        let Resp::Int(before) = before else { return Vec::new() };
        let popped = Resp::Int(asked.min(before));
        let mut ask = words(&["SREM"]);
        ask.push(command[1].clone());
        ask.extend(members);
        vec![
            Step { ask: card, ours: Resp::Int(before), check: Check::Exact },
            Step { ask, ours: popped, check: Check::Exact },
        ]
    }

    fn sample(&self, command: &Command) -> Vec<Step> {
        let reply = self.call(command);
        let found = match &reply {
            Resp::Bulk(Some(_)) => true,
            other => !other.items().is_empty(),
        };
        if !found {
            return vec![Step { ask: command.clone(), ours: reply, check: Check::Exact }];
        }
        let key = command[1].clone();
        let ask: Command = match name_of(command).as_str() {
            "SRANDMEMBER" => vec![b"SMEMBERS".to_vec(), key],
            "HRANDFIELD" => vec![b"HGETALL".to_vec(), key],
            _ => [vec![b"ZRANGE".to_vec(), key], words(&["0", "-1", "WITHSCORES"])].concat(),
        };
        let check = Check::Sample {
            count: count_in(command, 2),
            pairs: name_of(command) != "SRANDMEMBER",
            with_values: command.len() == 4,
        };
        vec![Step { ask, ours: reply, check }]
    }

    fn random_key(&self, command: &Command) -> Vec<Step> {
        match self.call(command) {
            Resp::Bulk(Some(key)) => {
                vec![Step {
                    ask: vec![b"EXISTS".to_vec(), key],
                    ours: Resp::Int(1),
                    check: Check::Exact,
                }]
            }
            other => vec![Step { ask: command.clone(), ours: other, check: Check::Exact }],
        }
    }

    fn get_and_delete(&self, command: &Command) -> Vec<Step> {
        let reply = self.call(command);
        if reply.is_error() {
            return Vec::new();
        }
        let fields: BTreeSet<_> = command[4..].iter().collect();
        // The second time a field is named it is gone, which HMGET cannot say.
        let check = if fields.len() == command.len() - 4 { Check::Exact } else { Check::Nothing };
        let ask = |name: &str| {
            [vec![name.as_bytes().to_vec(), command[1].clone()], command[4..].to_vec()].concat()
        };
        vec![
            Step { ask: ask("HMGET"), ours: reply, check },
            Step { ask: ask("HDEL"), ours: Resp::Int(0), check: Check::Nothing },
        ]
    }

    fn sort(&self, command: &Command) -> Vec<Step> {
        let Some(check) = self.sort_check(command) else { return Vec::new() };
        // redis takes a stale errno for its own; SCAN sets it to zero.
        let ask = words(&["SCAN", "0", "COUNT", "1"]);
        let clear = Step { ask, ours: Resp::Int(0), check: Check::Nothing };
        vec![clear, Step { ask: command.clone(), ours: self.call(command), check }]
    }

    /// A range by member of a sorted set whose scores differ.
    fn is_open_by_lex(&self, command: &Command) -> bool {
        let name = name_of(command);
        let by_lex = command.iter().any(|arg| arg.eq_ignore_ascii_case(b"BYLEX"));
        if !name.starts_with('Z') || !(by_lex || name.contains("LEX")) {
            return false;
        }
        let at = if name == "ZRANGESTORE" { 2 } else { 1 };
        let Some(key) = command.get(at) else { return false };
        let ask = [vec![b"ZRANGE".to_vec(), key.clone()], words(&["0", "-1", "WITHSCORES"])];
        let all = self.call(&ask.concat());
        let all = all.without_pairs();
        let scores: BTreeSet<_> = all.items().chunks(2).map(|pair| &pair[1]).collect();
        scores.len() > 1
    }

    /// Whether redis's order is defined; `None` if the order decides the content and is not.
    fn sort_check(&self, command: &Command) -> Option<Check> {
        let has =
            |word: &str| command.iter().skip(2).any(|a| a.eq_ignore_ascii_case(word.as_bytes()));
        let names_nothing =
            |two: &[Vec<u8>]| two[0].eq_ignore_ascii_case(b"BY") && !two[1].contains(&b'*');
        let unsorted = command.windows(2).skip(1).any(names_nothing);
        let kind = self.call(&vec![b"TYPE".to_vec(), command.get(1)?.clone()]);
        let of_a_set = kind == Resp::Status("set".into());
        let open = if unsorted { of_a_set && !has("STORE") } else { has("ALPHA") };
        match (open, has("LIMIT") || (has("STORE") && has("BY"))) {
            (false, _) => Some(Check::Exact),
            (true, false) => Some(Check::Unordered),
            (true, true) => None,
        }
    }
}

fn count_in(command: &Command, at: usize) -> Option<i64> {
    std::str::from_utf8(command.get(at)?).ok()?.parse().ok()
}
