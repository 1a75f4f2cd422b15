//! Commands that arrive together and are committed together.

use super::ahead::bring_near;
use super::args::{Args, wrong_number};
use super::catalog::Call;
use super::dispatch::{as_reply, find, fits, name_of, refuse_session, unknown};
use super::generated::dispatch::run;
use super::plan::{Planned, scope_of};
use super::reply::Reply;
use super::spec::Row;
use crate::error::Result;
use crate::types::Db;
use crate::types::txn::Tx;

/// A command, or the reply to what is none.
enum Step<'a> {
    Runs(Planned<'a>),
    Refused(Reply),
}

impl Db {
    /// Runs commands one after the other, each as [`Db::command`] would, with nothing of other
    /// threads in between, and commits what they write as one: for many small writes much cheaper
    /// than one at a time. A command that fails is an error in its place and changes nothing; if
    /// the store fails, nothing of any of them is there.
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

    /// [`Db::pipeline`], which ends after a reply of which `go_on` says no: the commands behind it
    /// have not run, and there are fewer replies than commands. For callers that cannot take
    /// replies of any size.
    pub fn pipeline_while<'a>(
        &self,
        commands: &[impl AsRef<[&'a [u8]]>],
        go_on: impl FnMut(&Reply) -> bool,
    ) -> Result<Vec<Reply>> {
        let step = |command| self.step(command);
        let steps = commands.iter().map(|c| step(c.as_ref())).collect::<Result<Vec<_>>>()?;
        let mut go_on = go_on;
        self.run_steps(&steps, |reply, _| go_on(reply))
    }

    /// [`Db::pipeline_while`] for commands that were looked up already. `go_on` is also told how
    /// many bytes they have written so far, which stay in memory until all are committed.
    pub fn calls_while(
        &self,
        calls: &[Call<'_>],
        go_on: impl FnMut(&Reply, usize) -> bool,
    ) -> Result<Vec<Reply>> {
        let steps = calls.iter().map(|call| self.planned(call.row, call.argv));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        self.run_steps(&steps, go_on)
    }

    fn run_steps(
        &self,
        steps: &[Step<'_>],
        mut go_on: impl FnMut(&Reply, usize) -> bool,
    ) -> Result<Vec<Reply>> {
        let commands: Vec<&Planned<'_>> = steps.iter().filter_map(Step::command).collect();
        let run_all = |tx: &mut Tx<'_>| {
            bring_near(tx, &commands);
            let mut replies = Vec::with_capacity(steps.len());
            for step in steps {
                let reply = step.run(tx)?;
                let ends = !go_on(&reply, tx.bytes_aside());
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
        let Some(row) = find(name) else {
            refuse_session(name)?;
            return Ok(Step::Refused(unknown(argv)));
        };
        self.planned(row, argv)
    }

    fn planned<'a>(&self, row: &'static Row, argv: &'a [&'a [u8]]) -> Result<Step<'a>> {
        if !fits(row.arity, argv.len()) {
            return as_reply(wrong_number(row.name)).map(Step::Refused);
        }
        Ok(Step::Runs(Planned { row, argv, database: self.database() }))
    }
}

impl<'a> Step<'a> {
    fn command(&self) -> Option<&Planned<'a>> {
        match self {
            Self::Runs(planned) => Some(planned),
            Self::Refused(_) => None,
        }
    }

    /// A command's error is its reply, and it has changed nothing.
    fn run(&self, tx: &mut Tx<'_>) -> Result<Reply> {
        match self {
            Self::Runs(Planned { row, argv, .. }) => {
                let args = Args::new(argv.get(1..).unwrap_or_default());
                tx.attempt(|tx| run(row.name, tx, args)).or_else(as_reply)
            }
            Self::Refused(reply) => Ok(reply.clone()),
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

    /// Enough of them, over memtables that are large enough, for what they look for to be read
    /// ahead: of all types, of keys that are missing, and in words that make no sense.
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
    fn calls_of_commands_looked_up_before_are_as_those_by_name() {
        let lines = ["SET a 1", "INCR a", "GET", "LPUSH a x", "HSET h f v", "GET a"];
        let open = || Db::open(":memory:", Options::default()).unwrap();
        let commands = argv(&lines);
        let info = |argv: &Vec<&[u8]>| {
            crate::commands().find(|info| info.name().as_bytes() == argv[0]).unwrap()
        };
        let calls: Vec<_> = commands.iter().map(|argv| info(argv).call(argv)).collect();
        let by_name = open().pipeline(&commands).unwrap();
        assert_eq!(open().calls_while(&calls, |_, _| true).unwrap(), by_name);
    }

    #[test]
    fn who_asks_is_told_how_much_is_written_so_far() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let commands = argv(&["SETRANGE a 9999 x", "GET a", "SETRANGE b 9999 x", "SET c v"]);
        let info = |name: &[u8]| crate::commands().find(|info| info.name().as_bytes() == name);
        let calls: Vec<_> = commands.iter().map(|argv| info(argv[0]).unwrap().call(argv)).collect();
        let mut written = Vec::new();
        let replies = db.calls_while(&calls, |_, bytes| {
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
