//! Commands by name, in two stores that differ in every size.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::{Db, Options, Reply, SyncMode};

const SEPARATE: &[&str] = &[
    // Drawn at random, or different by design.
    "SPOP",
    "SRANDMEMBER",
    "HRANDFIELD",
    "ZRANDMEMBER",
    "RANDOMKEY",
    "OBJECT",
    "SCAN",
    "HSCAN",
    "SSCAN",
    "ZSCAN",
    "MEMORY",
    "DEBUG",
    "INFO",
    "LASTSAVE",
    "TIME",
];

/// The words of a line of commands. A word `%NN` is the byte NN, repeated `x` times for `%NNxM`.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let word = |word: &[u8]| -> Vec<u8> {
        let text = std::str::from_utf8(word).ok().and_then(|text| text.strip_prefix('%'));
        let parsed = text.and_then(|text| {
            let (byte, times) = text.split_once('x').unwrap_or((text, "1"));
            Some((u8::from_str_radix(byte, 16).ok()?, times.parse::<u16>().ok()?))
        });
        match parsed {
            Some((byte, times)) => vec![byte; usize::from(times % 2048)],
            None => word.to_vec(),
        }
    };
    line.split(|byte| *byte == b' ').map(word).collect()
}

/// A fuzzer uses a pair of stores for so many inputs, and empties it after each.
const INPUTS_OF_A_PAIR: u32 = if cfg!(fuzzing) { 200 } else { 1 };

/// A fuzzer's stores have no background threads, unless an input asks for them: what they do is then
/// decided by the input alone. Stores of a user have at least one.
const FEWEST_THREADS: u32 = if cfg!(fuzzing) { 0 } else { 1 };

/// The most lines of an input.
const LINES: usize = 200;

/// A store with the usual options, or with all that is small as small as it can be.
struct Side {
    fs: MemFs,
    clock: Arc<ManualClock>,
    options: Options,
    db: Db,
}

impl Side {
    fn new(small: bool, background_threads: u32) -> Self {
        let mut options = Options {
            sync: SyncMode::Off,
            max_key_bytes: 4096,
            max_value_bytes: 64 << 10,
            ttl_cleaner_interval_s: 0,
            background_threads,
            ..Options::default()
        };
        if small {
            options.write_buffer = 64 << 10;
            options.log_segment_bytes = 16 << 10;
            options.table_bytes = 16 << 10;
            options.memory_budget = 4 << 20;
            options.packed_max_members = 0;
        }
        let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1_000_000)));
        let db = open(&fs, &options, &clock);
        Self { fs, clock, options, db }
    }

    /// Opens the store again, after a close or after the death of its process.
    fn reopen(self, after_close: bool) -> Self {
        let Self { fs, clock, options, db } = self;
        if after_close {
            db.close().expect("a close");
        }
        drop(db);
        let db = open(&fs, &options, &clock);
        Self { fs, clock, options, db }
    }
}

fn open(fs: &MemFs, options: &Options, clock: &Arc<ManualClock>) -> Db {
    let (fs, clock) = (Arc::new(fs.clone()), Arc::clone(clock));
    Db::open_on(fs, Path::new("/db"), options.clone(), clock).expect("a store")
}

/// The store with the usual options and the small one.
struct Pair {
    usual: Side,
    small: Side,
    inputs: u32,
    record: Option<File>,
}

impl Pair {
    fn new(background_threads: u32) -> Self {
        let [usual, small] = [false, true].map(|small| Side::new(small, background_threads));
        // The inputs of the pair so far, as one input: it fails alone if the last of them does.
        let record = std::env::var_os("LSMKV_FUZZ_RECORD").filter(|_| cfg!(fuzzing));
        let record = record.map(|path| File::create(path).expect("the record of a pair"));
        Self { usual, small, inputs: 0, record }
    }

    fn run(mut self, data: &[u8]) -> Self {
        if let Some(record) = &mut self.record {
            record.write_all(&[data, b"\n@\n"].concat()).expect("the record of a pair");
        }
        let mut lines = 0;
        for line in data.split(|byte| *byte == b'\n') {
            lines += 1;
            if line == b"@" {
                self.end();
                lines = 0;
            } else if lines <= LINES {
                self = self.line(line);
            }
        }
        self.end();
        self.inputs += 1;
        self
    }

    fn line(mut self, line: &[u8]) -> Self {
        match line {
            b"" | b"*" => {}
            b"~" => self.small.db.flush().expect("a flush"),
            b"!" => self.small.db.compact().expect("a compaction"),
            b"^" => self.small = self.small.reopen(true),
            b"&" => self.small = self.small.reopen(false),
            _ => self.command(line),
        }
        self
    }

    fn command(&self, line: &[u8]) {
        let words = words(line);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let name = String::from_utf8_lossy(words[0]).to_uppercase();
        if SEPARATE.contains(&name.as_str()) {
            return;
        }
        let replies = [&self.usual, &self.small].map(|side| match side.db.command(&words) {
            Ok(reply) => reply,
            Err(error) => Reply::Error(error.to_string()),
        });
        assert_eq!(replies[0], replies[1], "{}", String::from_utf8_lossy(line));
    }

    /// Checks both stores and empties them.
    fn end(&self) {
        for side in [&self.usual, &self.small] {
            assert_eq!(side.db.check().expect("a check"), [""; 0]);
            side.db.command(&[b"FLUSHALL"]).expect("an empty store");
        }
    }
}

/// Commands by name, one per line, in two stores that differ in every size: all replies are equal.
/// Other lines are for the second store: `~` flushes it, `!` compacts it, `^` closes it and opens it
/// again, `&` opens it again as after a kill. `@` checks and empties both stores. A first line `*`
/// asks for background threads.
pub fn commands(data: &[u8]) {
    thread_local! {
        static PAIR: RefCell<Option<Pair>> = const { RefCell::new(None) };
    }
    if data.starts_with(b"*\n") {
        Pair::new(1).run(data);
        return;
    }
    let pair = PAIR.take().unwrap_or_else(|| Pair::new(FEWEST_THREADS)).run(data);
    if pair.inputs == INPUTS_OF_A_PAIR {
        [pair.usual, pair.small].into_iter().for_each(|side| side.db.close().expect("a close"));
    } else {
        PAIR.set(Some(pair));
    }
}
