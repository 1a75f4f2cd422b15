//! Pipelines: commands that arrive together and commit together.

use super::args::{Args, wrong_number};
use super::bound::{BoundCommand, scope_of};
use super::catalog::Call;
use super::dispatch::{as_reply, find, fits, name_of, refuse_session, unknown};
use super::entry::Entry;
use super::prefetch::prefetch;
use super::reply::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Db;
use crate::txn::Tx;

/// The longest string that is a reply beside others.
const LONGEST_TOGETHER: usize = 1 << 20;

/// A command, or the error reply for one that cannot run.
enum Step<'a> {
    Runs(BoundCommand<'a>),
    Refused(Reply),
}

impl Db {
    /// Runs commands in order, each like [`Db::command`], and commits their writes as one. No other
    /// thread's write comes in between. For many small writes it is much cheaper than one call per
    /// command. A command that fails is an error in its place and changes nothing. If the store
    /// fails, none of the commands takes effect.
    ///
    /// ```
    /// # use lsmkv::{Db, Options, Reply};
    /// # let db = Db::open(":memory:", Options::default())?;
    /// let commands: [&[&[u8]]; 3] =
    ///     [&[b"SET", b"a", b"1"], &[b"LPUSH", b"a", b"x"], &[b"INCR", b"a"]];
    /// let replies = db.pipeline(&commands)?;
    /// assert_eq!(replies[0], Reply::OK);
    /// assert!(matches!(replies[1], Reply::Error(_)));
    /// assert_eq!(replies[2], Reply::Int(2));
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn pipeline<'a>(&self, commands: &[impl AsRef<[&'a [u8]]>]) -> Result<Vec<Reply>> {
        self.pipeline_while(commands, |_| true)
    }

    /// Runs commands like [`Db::pipeline`], but stops after the first reply for which `go_on`
    /// returns false. The commands after it do not run, and there are fewer replies than commands.
    /// This is for callers that must bound the size of the replies.
    pub fn pipeline_while<'a>(
        &self,
        commands: &[impl AsRef<[&'a [u8]]>],
        go_on: impl FnMut(&Reply) -> bool,
    ) -> Result<Vec<Reply>> {
        let step = |command| self.step(command);
        let steps = commands.iter().map(|c| step(c.as_ref())).collect::<Result<Vec<_>>>()?;
        let mut go_on = go_on;
        self.run_steps(&steps, None, |reply, _| go_on(reply))
    }

    /// Runs commands whose entries are known, and stops after the first reply for which `go_on`
    /// returns false. `go_on` also receives the number of bytes written so far, which stay in
    /// memory until the commit. Fails as a whole, and changes nothing, if the reply of a command is a
    /// string in chunks of more than a megabyte: such a command is to run by itself.
    pub fn run_calls(
        &self,
        calls: &[Call<'_>],
        go_on: impl FnMut(&Reply, usize) -> bool,
    ) -> Result<Vec<Reply>> {
        let steps = calls.iter().map(|call| self.bound(call.entry, call.argv));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        self.run_steps(&steps, Some(LONGEST_TOGETHER), go_on)
    }

    fn run_steps(
        &self,
        steps: &[Step<'_>],
        longest: Option<usize>,
        mut go_on: impl FnMut(&Reply, usize) -> bool,
    ) -> Result<Vec<Reply>> {
        let commands: Vec<&BoundCommand<'_>> = steps.iter().filter_map(Step::command).collect();
        let run_all = |tx: &mut Tx<'_>| {
            prefetch(tx, &commands);
            let mut replies = Vec::with_capacity(steps.len());
            for step in steps {
                let Some(reply) = step.run(tx, longest)? else {
                    let text = "a reply is too long to come with others";
                    return Err(Error::new(ErrorKind::TooLarge, text));
                };
                let ends = !go_on(&reply, tx.pending_bytes());
                replies.push(reply);
                if ends {
                    break;
                }
            }
            Ok(replies)
        };
        if !commands.iter().any(|command| command.writes()) {
            return self.read(run_all);
        }
        let scope = scope_of(commands.iter().copied());
        let done = self.write_in(&scope, None, run_all)?;
        self.settled(done)
    }

    fn step<'a>(&self, argv: &'a [&'a [u8]]) -> Result<Step<'a>> {
        let name = name_of(argv)?;
        let Some(entry) = find(name) else {
            refuse_session(name)?;
            return Ok(Step::Refused(unknown(argv)));
        };
        self.bound(entry, argv)
    }

    fn bound<'a>(&self, entry: &'static Entry, argv: &'a [&'a [u8]]) -> Result<Step<'a>> {
        if !fits(entry.command.arity, argv.len()) {
            return as_reply(wrong_number(entry.command.name)).map(Step::Refused);
        }
        Ok(Step::Runs(BoundCommand { entry, argv, database: self.database() }))
    }
}

impl<'a> Step<'a> {
    fn command(&self) -> Option<&BoundCommand<'a>> {
        match self {
            Self::Runs(command) => Some(command),
            Self::Refused(_) => None,
        }
    }

    /// Runs the command. An error of the command becomes its reply and changes nothing. `None`: the
    /// reply is a string of more than `longest` bytes.
    fn run(&self, tx: &mut Tx<'_>, longest: Option<usize>) -> Result<Option<Reply>> {
        match self {
            Self::Runs(BoundCommand { entry, argv, .. }) => {
                let args = Args::new(argv.get(1..).unwrap_or_default());
                tx.attempt(|tx| entry.run_short(tx, args, longest))
                    .or_else(|error| as_reply(error).map(Some))
            }
            Self::Refused(reply) => Ok(Some(reply.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn argv<'a>(lines: &[&'a str]) -> Vec<Vec<&'a [u8]>> {
        lines.iter().map(|line| line.split(' ').map(str::as_bytes).collect()).collect()
    }

    #[test]
    fn replies_are_those_of_one_command_after_the_other() {
        let lines = [
            "SET a 1",
            "INCR a",
            "LPUSH a x",
            "GET a",
            "NOSUCH",
            "GET",
            "RPUSH l x y",
            "LPOP l",
            "LLEN l",
            "DEL l",
            "HSET h f v",
            "HGETALL h",
            "EXPIRE a 100",
            "TTL a",
            "INCR s",
            "SETRANGE s 5 x",
            "GET s",
        ];
        let open = || Db::open(":memory:", Options::default()).unwrap();
        let (together, apart) = (open(), open());
        let one_by_one: Vec<_> =
            argv(&lines).iter().map(|command| apart.command(command).unwrap()).collect();
        assert_eq!(together.pipeline(&argv(&lines)).unwrap(), one_by_one);
        assert_eq!(together.get(b"s").unwrap(), apart.get(b"s").unwrap());
    }

    /// Enough commands over large enough memtables that prefetching starts. They cover all types,
    /// missing keys and malformed commands.
    #[test]
    fn many_commands_over_large_memtables_reply_the_same() {
        let open = || {
            let db = Db::open(":memory:", Options::default()).unwrap();
            db.set(b"big", &vec![b'v'; 3 << 20]).unwrap();
            let members: Vec<_> = (0..300).map(|n| format!("m{n}")).collect();
            let members: Vec<_> = members.iter().map(String::as_bytes).collect();
            let fields: Vec<_> =
                members.iter().map(|member| (*member, &[b'v'; 5000][..])).collect();
            let scores: Vec<_> = members.iter().map(|member| (1.0, *member)).collect();
            db.sadd(b"set", &members).unwrap();
            db.hset(b"hash", &fields).unwrap();
            db.zadd(b"zset", &scores, crate::types::ZAdd::default()).unwrap();
            db.rpush(b"list", &members).unwrap();
            db
        };
        let on = |key: &str, n: usize| {
            let member = n * 7 % 320;
            [
                format!("SADD {key} m{member}"),
                format!("HSET {key} m{member} {n}"),
                format!("ZADD {key} {n} m{member}"),
                format!("ZADD {key}"),
                format!("LSET {key} {member} x"),
                format!("INCR {key}"),
            ]
        };
        let keys = ["set", "hash", "zset", "list", "none"];
        let of = |key: &'static str| (0..40).flat_map(move |n| on(key, n));
        let lines: Vec<String> = keys.into_iter().flat_map(of).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (together, apart) = (open(), open());
        let one_by_one: Vec<_> =
            argv(&lines).iter().map(|command| apart.command(command).unwrap()).collect();
        assert_eq!(together.pipeline(&argv(&lines)).unwrap(), one_by_one);
        let reads = ["GET big", "SISMEMBER set m7", "HGET hash m1", "ZSCORE zset m9"].repeat(20);
        let one_by_one: Vec<_> =
            argv(&reads).iter().map(|command| apart.command(command).unwrap()).collect();
        assert_eq!(together.pipeline(&argv(&reads)).unwrap(), one_by_one);
        assert_eq!(together.check().unwrap(), [""; 0]);
    }

    /// Random commands on a few keys. Members come and go, all sorts of commands write records in
    /// between, and some commands fail.
    fn at_random(seed: u64) -> Vec<String> {
        const LINES: [&str; 34] = [
            "SADD K M",
            "SADD K M M M M M",
            "SREM K M",
            "SREM K M M M",
            "SPOP K 0",
            "SCARD K",
            "HSET K M N",
            "HSET K M N M N M N",
            "HDEL K M",
            "HINCRBY K M N",
            "HGET K M",
            "HLEN K",
            "ZADD K N M",
            "ZADD K N M N M N M",
            "ZREM K M",
            "ZINCRBY K N M",
            "ZPOPMIN K",
            "ZCARD K",
            "ZRANGE K 0 -1 WITHSCORES",
            "ZADD K x M",
            "HINCRBY K M x",
            "EXPIRE K 1000",
            "PERSIST K",
            "TTL K",
            "DEL K",
            "RENAME K K",
            "COPY K K REPLACE",
            "SMOVE K K M",
            "SET K N",
            "INCR K",
            "RPUSH K M",
            "TYPE K",
            "SMEMBERS K",
            "HGETALL K",
        ];
        let mut state = seed;
        let mut below = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % most
        };
        let mut lines = Vec::new();
        for n in 0..150 {
            // A key keeps its type for a while, otherwise most commands would fail.
            let pattern = match below(10) {
                0 => LINES[below(LINES.len())],
                _ => LINES[n / 50 * 6 + below(6)],
            };
            let word = |word: &str| match word {
                "K" => format!("k{}", below(4)),
                "M" => format!("m{}", below(9)),
                "N" => below(5).to_string(),
                other => other.to_owned(),
            };
            lines.push(pattern.split(' ').map(word).collect::<Vec<_>>().join(" "));
        }
        lines
    }

    #[test]
    fn commands_that_come_back_to_a_key_find_it_as_it_is() {
        for seed in 0..150 {
            let packed_max_members = [0, 3, 128][usize::try_from(seed % 3).unwrap()];
            let open = || {
                let options = Options { packed_max_members, ..Options::default() };
                Db::open(":memory:", options).unwrap()
            };
            let lines = at_random(seed);
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let (together, queued, apart) = (open(), open(), open());
            let one_by_one: Vec<_> =
                argv(&lines).iter().map(|command| apart.command(command).unwrap()).collect();
            let mut session = queued.session();
            session.command(&[b"MULTI"]).unwrap();
            argv(&lines).iter().for_each(|command| drop(session.command(command).unwrap()));
            let executed = session.command(&[b"EXEC"]).unwrap();
            assert_eq!(executed, Reply::Array(one_by_one.clone()), "seed {seed}: {lines:?}");
            for (part, expected) in lines.chunks(40).zip(one_by_one.chunks(40)) {
                let replies = together.pipeline(&argv(part)).unwrap();
                assert_eq!(replies, expected, "seed {seed}: {part:?}");
            }
            for db in [&together, &queued, &apart] {
                assert_eq!(db.check().unwrap(), [""; 0], "seed {seed}");
                for key in ["k0", "k1", "k2", "k3"] {
                    let content =
                        |db: &Db| db.command(&[b"SORT", key.as_bytes(), b"ALPHA"]).unwrap();
                    assert_eq!(content(db), content(&apart), "seed {seed}, {key}");
                }
            }
        }
    }

    /// SMOVE has already saved its source when its destination refuses the member.
    #[test]
    fn what_a_command_saved_before_it_failed_is_not_found_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let open = |max_value_bytes, packed_max_members| {
            let options = Options { max_value_bytes, packed_max_members, ..Options::default() };
            Db::open(dir.path(), options).unwrap()
        };
        for packed_max_members in [0, 128] {
            let long = "m".repeat(200);
            let db = open(1000, packed_max_members);
            db.sadd(b"from", &[long.as_bytes(), b"other"]).unwrap();
            db.close().unwrap();
            let db = open(100, packed_max_members);
            let lines =
                ["SADD from x", &format!("SMOVE from to {long}"), "SCARD from", "SADD from y"];
            let replies = db.pipeline(&argv(&lines)).unwrap();
            assert!(matches!(replies[1], Reply::Error(_)));
            assert_eq!(replies[2..], [Reply::Int(3), Reply::Int(1)]);
            assert_eq!(db.scard(b"from").unwrap(), 4);
            assert_eq!(db.check().unwrap(), [""; 0]);
            db.del(&[b"from"]).unwrap();
            db.close().unwrap();
        }
    }

    #[test]
    fn writes_are_one_commit() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let before = db.engine_stats().commits;
        db.pipeline(&argv(&["SET a 1", "SET b 2", "RPUSH l x", "SADD a m"])).unwrap();
        assert_eq!(db.engine_stats().commits, before + 1);
        db.pipeline(&argv(&["GET a", "NOSUCH"])).unwrap();
        assert_eq!(db.engine_stats().commits, before + 1);
    }

    #[test]
    fn it_ends_where_it_is_told_to() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let commands = argv(&["SET a 1", "INCR a", "SET a 5", "GET a"]);
        let replies = db.pipeline_while(&commands, |reply| *reply != Reply::Int(2)).unwrap();
        assert_eq!(replies, [Reply::OK, Reply::Int(2)]);
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
        let reads = argv(&["GET a", "GET a"]);
        assert_eq!(db.pipeline_while(&reads, |_| false).unwrap().len(), 1);
    }

    #[test]
    fn calls_of_commands_found_before_are_as_those_by_name() {
        let lines = ["SET a 1", "INCR a", "GET", "LPUSH a x", "HSET h f v", "GET a"];
        let open = || Db::open(":memory:", Options::default()).unwrap();
        let commands = argv(&lines);
        let info = |argv: &Vec<&[u8]>| {
            crate::commands().find(|info| info.name().as_bytes() == argv[0]).unwrap()
        };
        let calls: Vec<_> = commands.iter().map(|argv| info(argv).call(argv)).collect();
        let by_name = open().pipeline(&commands).unwrap();
        assert_eq!(open().run_calls(&calls, |_, _| true).unwrap(), by_name);
    }

    #[test]
    fn who_asks_is_told_how_much_is_written_so_far() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let commands = argv(&["SETRANGE a 9999 x", "GET a", "SETRANGE b 9999 x", "SET c v"]);
        let info = |name: &[u8]| crate::commands().find(|info| info.name().as_bytes() == name);
        let calls: Vec<_> = commands.iter().map(|argv| info(argv[0]).unwrap().call(argv)).collect();
        let mut written = Vec::new();
        let replies = db.run_calls(&calls, |_, bytes| {
            written.push(bytes);
            bytes < 20_000
        });
        assert_eq!(replies.unwrap().len(), 3);
        assert!(matches!(written[..], [10_000..11_000, b, 20_000..22_000] if b == written[0]));
        assert_eq!(db.exists(&[b"a", b"b", b"c"]).unwrap(), 2);
    }

    #[test]
    fn what_only_a_session_knows_is_misuse_and_nothing_runs() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let error = db.pipeline(&argv(&["SET a 1", "MULTI"])).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Misuse);
        assert_eq!(db.get(b"a").unwrap(), None);
    }
}
