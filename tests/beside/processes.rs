use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lsmkv::Db;

use crate::{get, reader, writer};

/// Set in the child: the directory of the store.
const CHILD_DIR: &str = "LSMKV_TEST_BESIDE_DIR";
/// How long readers look at each life of the writer, in milliseconds.
const TIME: &str = "LSMKV_TEST_BESIDE_MS";

/// Not a test of its own: what the writer process runs until it is killed. It says the number of
/// each round that has returned.
#[test]
fn child_that_writes() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let db = writer(Path::new(&dir));
    let mut session = db.session();
    let mut run = |argv: &[&str]| {
        let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
        session.command(&argv).unwrap();
    };
    let first = get(&db, "counter").map_or(0, |n| n.parse::<u64>().unwrap() + 1);
    for n in first.. {
        let number = n.to_string();
        run(&["MSET", "a", &number, "b", &number]);
        let filler = "x".repeat(300);
        run(&["SET", &format!("filler{}", n % 500), &filler]);
        run(&["SET", "counter", &number]);
        run(&["SELECT", "1"]);
        run(&["MSET", "a", &number, "b", &number]);
        if n % 7 == 0 {
            run(&["FLUSHDB"]);
        }
        // Each database always knows its own number, whatever it was before.
        for command in [
            &["MULTI"][..],
            &["SWAPDB", "2", "3"],
            &["SELECT", "2"],
            &["SET", "home", "2"],
            &["SELECT", "3"],
            &["SET", "home", "3"],
            &["EXEC"],
            &["SELECT", "0"],
        ] {
            run(command);
        }
        if n % 40 == 0 {
            db.flush().unwrap();
        }
        if n % 150 == 0 {
            db.compact().unwrap();
        }
        let mut out = std::io::stdout().lock();
        out.write_all(format!("round {n}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
    }
}

/// A writer process, which is killed when this is dropped.
pub(crate) struct Writer {
    child: Child,
    /// One more than the last round that has returned.
    pub(crate) rounds: Arc<AtomicU64>,
}

impl Writer {
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["processes::child_that_writes", "--exact", "--nocapture"])
            .env(CHILD_DIR, dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let rounds = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rounds);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(n) = line.strip_prefix("round ") {
                    counted.store(n.parse::<u64>().unwrap() + 1, Ordering::Release);
                }
            }
        });
        let writer = Self { child, rounds };
        let begun = Instant::now();
        while writer.rounds.load(Ordering::Acquire) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the writer does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        writer
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn number(db: &Db, key: &str) -> Option<u64> {
    get(db, key).map(|text| text.parse().unwrap())
}

fn pair(db: &Db) -> Vec<Option<u64>> {
    let values = db.mget(&[b"a", b"b"]).unwrap();
    let parse = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    values.iter().map(|value| value.as_deref().map(parse)).collect()
}

/// What holds at every moment; the counter.
fn check(db: &Db) -> u64 {
    let at = |database| db.select(database).unwrap();
    for pair in [pair(db), pair(&at(1))] {
        assert_eq!(pair[0], pair[1], "one batch, seen by halves");
    }
    for home in [2, 3] {
        let found = number(&at(home), "home");
        assert!(found.is_none_or(|found| found == u64::from(home)), "{home} is {found:?}");
    }
    let counter = number(db, "counter").unwrap();
    let then = db.snapshot().unwrap();
    let of_pair = pair(&then)[0].unwrap();
    let of_snapshot = number(&then, "counter").unwrap();
    assert!(of_snapshot <= of_pair && of_pair <= of_snapshot + 1, "{of_snapshot}, {of_pair}");
    assert!(counter <= of_snapshot, "the counter goes back");
    counter
}

#[test]
fn readers_that_refresh_beside_a_busy_writer_see_whole_commits_and_all_that_returned() {
    let dir = tempfile::tempdir().unwrap();
    let life = std::env::var(TIME).map_or(1200, |ms| ms.parse().unwrap());
    let mut seen = None;
    for _ in 0..3 {
        let writer = Writer::start(dir.path());
        let seen = &*seen.get_or_insert_with(|| reader(dir.path()));
        let (stop, rounds) = (AtomicBool::new(false), &writer.rounds);
        let refreshes = AtomicU64::new(0);
        std::thread::scope(|threads| {
            for refreshing in [true, true, false] {
                let (stop, refreshes) = (&stop, &refreshes);
                threads.spawn(move || {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let returned = rounds.load(Ordering::Acquire);
                        if refreshing {
                            seen.refresh().unwrap();
                            refreshes.fetch_add(1, Ordering::Relaxed);
                        }
                        let counter = check(seen);
                        assert!(counter >= last, "the counter went from {last} to {counter}");
                        assert!(!refreshing || counter + 1 >= returned, "{counter} of {returned}");
                        last = counter;
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(life));
            stop.store(true, Ordering::Relaxed);
        });
        assert!(refreshes.load(Ordering::Relaxed) > 20, "{refreshes:?}");
        let returned = rounds.load(Ordering::Acquire);
        drop(writer);
        seen.refresh().unwrap();
        assert!(check(seen) + 1 >= returned, "a killed writer takes nothing with it");
    }
    let seen = seen.unwrap();
    assert_eq!(seen.check().unwrap(), [""; 0]);
}
