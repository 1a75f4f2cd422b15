//! A real redis-server on a unix socket that keeps its data as lsmkv does here: an append-only
//! file, flushed to the device every second. It is not rewritten meanwhile, in Redis's favour.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::resp::{Connection, Reply};
use crate::Result;
use crate::commands::call::{Answer, Call, Store};
use crate::commands::placement::Placement;
use crate::plan::Settings;

const PROGRAM: &str = "redis-server";
/// Commands sent together where nothing is timed.
const HURRY: usize = 256;
const START: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

/// What the program says of itself; nothing where there is none.
pub(crate) fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
    Some(version.to_owned())
}

/// A server and one connection, on which `DEPTH` commands are sent together and then their
/// replies read.
pub(crate) struct Redis<const DEPTH: usize> {
    connection: Connection,
    expected: VecDeque<Answer>,
    depth: usize,
    server: Server,
}

/// A process that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _gone_already = self.0.wait();
    }
}

impl<const DEPTH: usize> Store for Redis<DEPTH> {
    fn open(dir: &Path, _settings: &Settings) -> Result<Self> {
        let socket = dir.join("socket");
        let child = Command::new(PROGRAM)
            .args(["--port", "0", "--unixsocket"])
            .arg(&socket)
            .args(["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"])
            .args(["--auto-aof-rewrite-percentage", "0", "--dir"])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let server = Server(child);
        let connection = connect(&socket)?;
        Ok(Self { connection, expected: VecDeque::new(), depth: DEPTH, server })
    }

    fn place(&mut self, placement: Placement) -> Result<()> {
        placement.apply(Pid::from_child(&self.server.0))
    }

    /// A pipeline of deletes would not tell how long one takes.
    fn can(call: &Call<'_>) -> bool {
        DEPTH == 1 || !matches!(call, Call::Del(_))
    }

    fn call(&mut self, call: &Call<'_>, expected: Answer) -> Result<()> {
        encode(&mut self.connection, call);
        self.expected.push_back(expected);
        if self.expected.len() < self.depth { Ok(()) } else { self.finish() }
    }

    fn finish(&mut self) -> Result<()> {
        self.connection.send()?;
        while let Some(expected) = self.expected.pop_front() {
            answer(&self.connection.reply()?, expected).check(expected)?;
        }
        Ok(())
    }

    fn hurry(&mut self, on: bool) {
        self.depth = if on { HURRY } else { DEPTH };
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

fn connect(socket: &Path) -> Result<Connection> {
    let deadline = Instant::now() + START;
    loop {
        match Connection::open(socket) {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() > deadline => {
                return Err(format!("{PROGRAM} does not listen: {error}").into());
            }
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// In version 2 of the protocol a score is a string like others.
fn answer(reply: &Reply, expected: Answer) -> Answer {
    match reply {
        Reply::Status => Answer::Done,
        Reply::Number(number) => Answer::Number(*number),
        Reply::Bulk(None) => Answer::Nothing,
        Reply::Bulk(Some(_)) if expected == Answer::Score => Answer::Score,
        Reply::Bulk(Some(len)) => Answer::Bytes(*len),
        Reply::Array(count) => Answer::Items(*count),
    }
}

fn encode(to: &mut Connection, call: &Call<'_>) {
    let mut parts = |parts: &[&[u8]]| {
        to.command(parts.len());
        parts.iter().for_each(|part| to.part(part));
    };
    match *call {
        Call::Set(key, value) => parts(&[b"SET", key, value]),
        Call::Get(key) => parts(&[b"GET", key]),
        Call::Incr(key) => parts(&[b"INCR", key]),
        Call::Hset(key, pairs) => {
            to.command(2 + 2 * pairs.len());
            to.part(b"HSET");
            to.part(key);
            pairs.iter().flat_map(|(field, value)| [field, value]).for_each(|part| to.part(part));
        }
        Call::Hget(key, field) => parts(&[b"HGET", key, field]),
        Call::Hgetall(key) => parts(&[b"HGETALL", key]),
        Call::Lpush(key, element) => parts(&[b"LPUSH", key, element]),
        Call::Lpop(key) => parts(&[b"LPOP", key]),
        Call::Lrange(key, first, last) => parts(&[b"LRANGE", key, &text(first), &text(last)]),
        Call::Sadd(key, member) => parts(&[b"SADD", key, member]),
        Call::Sismember(key, member) => parts(&[b"SISMEMBER", key, member]),
        Call::Spop(key) => parts(&[b"SPOP", key]),
        Call::Zadd(key, score, member) => parts(&[b"ZADD", key, &text(score), member]),
        Call::Zscore(key, member) => parts(&[b"ZSCORE", key, member]),
        Call::Zrange(key, first, last) => parts(&[b"ZRANGE", key, &text(first), &text(last)]),
        Call::Zrangebyscore(key, least, greatest) => {
            parts(&[b"ZRANGEBYSCORE", key, &text(least), &text(greatest)]);
        }
        Call::Zpopmin(key) => parts(&[b"ZPOPMIN", key]),
        Call::Del(key) => parts(&[b"DEL", key]),
    }
}

fn text(number: impl ToString + Copy) -> Vec<u8> {
    number.to_string().into_bytes()
}
