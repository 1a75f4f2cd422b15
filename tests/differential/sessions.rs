//! Connections: MULTI, EXEC, WATCH, SELECT and the like, on sessions of ours and on connections to
//! a real redis, command by command.

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, Options, Session};

use super::resp::{Client, Command, Resp, line};
use super::server::Server;

/// Connections of a story.
const CONNECTIONS: usize = 2;

/// Stories by hand; a line begins with the number of the connection.
const STORIES: [&str; 14] = [
    "0 EXEC\n0 DISCARD\n0 MULTI\n0 MULTI\n0 WATCH a\n0 SET a 1\n0 EXEC\n0 EXEC",
    "0 MULTI\n0 SET a 1\n0 GET\n0 SET a 2\n0 EXEC\n0 GET a",
    "0 MULTI\n0 NOSUCH x y\n0 EXEC\n0 MULTI\n0 WATCH\n0 EXEC\n0 MULTI\n0 MULTI x\n0 DISCARD x\n0 EXEC",
    "0 MULTI\n0 SET a 1\n0 EXEC x\n0 GET a\n0 EXEC x\n0 EXEC",
    "0 SET s text\n0 MULTI\n0 SET a 1\n0 INCR s\n0 LPUSH s x\n0 INCR a\n0 RENAME no a\n0 EXEC\n0 GET a",
    "0 MULTI\n0 SELECT 1\n0 SET k one\n0 SELECT 99\n0 SELECT x\n0 SET l one\n0 EXEC\n0 GET k\n0 DBSIZE\n0 SELECT 0\n0 DBSIZE",
    "0 MULTI\n0 PING\n0 PING a\n0 PING a b\n0 ECHO hi\n0 UNWATCH\n0 CLIENT SETNAME me\n0 CLIENT GETNAME\n0 EXEC\n0 CLIENT GETNAME\n0 RESET\n0 CLIENT GETNAME",
    "0 MULTI\n0 CLIENT FOO\n0 EXEC\n0 CLIENT\n0 CLIENT GETNAME x\n0 CLIENT SETNAME\n0 CLIENT FOO\n0 PING a b\n0 ECHO\n0 SELECT\n0 SELECT -1\n0 SELECT 16\n0 SELECT 3000000000\n0 UNWATCH x",
    "0 HELLO 4\n0 HELLO x\n0 HELLO 2 FOO\n0 HELLO 2 SETNAME\n0 HELLO 2 AUTH a b\n0 HELLO 2 AUTH\n0 CLIENT SETNAME a\tb\n0 CLIENT GETNAME",
    "0 WATCH a\n1 SET a 1\n0 MULTI\n0 SET b 1\n0 EXEC\n0 MULTI\n0 GET b\n0 EXEC",
    "0 SELECT 3\n0 MULTI\n0 SET a 1\n0 RESET\n0 EXEC\n0 RESET x\n0 DBSIZE",
    "0 SET a 1\n0 WATCH a\n1 FLUSHDB\n0 MULTI\n0 EXEC\n0 WATCH a\n1 FLUSHALL\n0 MULTI\n0 EXEC",
    "1 SELECT 1\n1 SET a 1\n0 WATCH a b\n0 SWAPDB 0 1\n0 MULTI\n0 EXEC\n0 WATCH nobody\n0 SWAPDB 0 1\n0 MULTI\n0 EXEC",
    "0 MULTI\n0 FLUSHALL\n0 SET a 1\n0 SELECT 1\n0 SET b 2\n0 SWAPDB 0 1\n0 GET a\n0 SELECT 0\n0 GET b\n0 FLUSHDB\n0 SET c 3\n0 EXEC\n0 KEYS *\n1 SELECT 1\n1 KEYS *",
];

/// What random stories are made of; some words more often than others.
const WORDS: [&str; 35] = [
    "MULTI",
    "MULTI",
    "MULTI",
    "EXEC",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH a",
    "WATCH b c",
    "WATCH c",
    "UNWATCH",
    "SELECT 0",
    "SELECT 1",
    "SET a 1",
    "SET b x",
    "GET a",
    "GET c",
    "INCR a",
    "INCR b",
    "DEL a b",
    "LPUSH l x y",
    "LSET l 0 z",
    "LPOP l",
    "LTRIM l 0 -1",
    "HSET c f v",
    "HSET c f w",
    "FLUSHDB",
    "SADD b m",
    "RENAME a b",
    "COPY c b REPLACE",
    "MOVE a 1",
    "DBSIZE",
    "EXPIRE nobody 10",
    "NOSUCH",
    "GET",
];

/// Both sides of a story.
struct Stage {
    ours: Vec<Session>,
    theirs: Vec<Client>,
}

impl Stage {
    fn new(server: &Server) -> Self {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let mut theirs: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
        theirs[0].call(&["FLUSHALL"]).unwrap();
        Self { ours: (0..CONNECTIONS).map(|_| db.session()).collect(), theirs }
    }

    /// Plays a story; what was different.
    fn play(&mut self, story: &[(usize, Command)]) -> Result<(), String> {
        for (at, (who, command)) in story.iter().enumerate() {
            let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            let ours = Resp::from(self.ours[*who].command(&argv).unwrap());
            let theirs = self.theirs[*who].pipeline([command]).unwrap().remove(0);
            if sorted(&ours) != sorted(&theirs) {
                let told = story
                    .iter()
                    .take(at + 1)
                    .map(|(who, command)| format!("  {who} {}\n", line(command)));
                let told: String = told.collect();
                return Err(format!("{told}ours:   {ours:?}\nredis:  {theirs:?}"));
            }
        }
        match self.ours[0].db().check().unwrap().as_slice() {
            [] => Ok(()),
            problems => Err(problems.join("\n")),
        }
    }
}

/// KEYS has no order.
fn sorted(reply: &Resp) -> Resp {
    match reply {
        Resp::Array(Some(items)) if items.iter().all(|item| item.bytes().is_some()) => {
            let mut items = items.clone();
            items.sort();
            Resp::Array(Some(items))
        }
        other => other.clone(),
    }
}

fn command(text: &str) -> Command {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn sessions_reply_as_connections_to_redis_do() {
    let Some(server) = Server::start("differential::sessions") else { return };
    for story in STORIES {
        let said = |line: &str| (usize::from(line.starts_with('1')), command(&line[2..]));
        let story: Vec<_> = story.lines().map(said).collect();
        Stage::new(&server).play(&story).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn any_interleaving_of_two_sessions_replies_as_redis_does() {
    let Some(server) = Server::start("differential::interleaved") else { return };
    for seed in 0..super::number("LSMKV_SESSION_STORIES", 300) {
        let mut random = SplitMix64::new(seed);
        let mut draw = |most: usize| usize::try_from(random.below(most as u64)).unwrap();
        let mut story: Vec<_> =
            (0..60).map(|_| (draw(CONNECTIONS), command(WORDS[draw(WORDS.len())]))).collect();
        // What came and went between two of these is a change to redis, and none to us.
        let mut emptied = false;
        story.retain(|(_, command)| {
            command[0] != b"FLUSHDB" || !std::mem::replace(&mut emptied, true)
        });
        Stage::new(&server).play(&story).unwrap_or_else(|why| panic!("seed {seed}:\n{why}"));
    }
}
