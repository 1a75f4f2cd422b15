//! Whole stores with damaged files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::io::fs::FileSystem as _;
use lsmkv::{Db, Options, Reply};

const DIR: &str = "/db";
/// The most keys that an input reads one by one.
const KEYS_READ: usize = 12;

fn options(background_threads: u32) -> Options {
    Options {
        background_threads,
        write_buffer: 64 << 10,
        table_bytes: 16 << 10,
        log_segment_bytes: 16 << 10,
        memory_budget: 4 << 20,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    }
}

/// The files of a store of today's format with a few keys of each type in tables and in the log,
/// whose process was killed.
fn store_of_today() -> &'static MemFs {
    static STORE: OnceLock<MemFs> = OnceLock::new();
    STORE.get_or_init(|| {
        let (fs, dir) = (MemFs::untracked(), Path::new(DIR));
        let options = Options { packed_max_members: 4, ..options(1) };
        let clock = Arc::new(ManualClock::at(1_000_000));
        let db = Db::open_on(Arc::new(fs.clone()), dir, options, clock).expect("a new store");
        for round in ["1", "2", "3"] {
            for line in [
                "SET string{} one-{}",
                "SET other{} value EX 1000",
                "HSET small{} field value",
                "HSET large{} a 1 b 2 c 3 d 4 e 5 f 6",
                "RPUSH list{} a b c d e f g h",
                "SADD set{} a b c d e f g h",
                "ZADD zset{} 1 a 2 b 3 c 4 d 5 e 6 f",
                "DEL string1 large1",
                "APPEND string2 more",
            ] {
                let line = line.replace("{}", round);
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                db.command(&words).expect("a command");
            }
            match round {
                "1" => db.flush().expect("a flush"),
                "2" => db.compact().expect("a compaction"),
                _ => db.sync().expect("a sync"),
            }
        }
        let image = fs.deep_clone();
        drop(db);
        image
    })
}

/// The files of a store of format 1, whose process was killed.
fn store_of_format_1() -> &'static MemFs {
    static STORE: OnceLock<MemFs> = OnceLock::new();
    STORE.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let below = |root: &Path| root.join("tests/testdata/stores/format-1-killed");
        let dir = [root, &root.join("../..")].map(below).into_iter().find(|dir| dir.exists());
        let entries = std::fs::read_dir(dir.expect("the store of a killed process"));
        let fs = MemFs::untracked();
        fs.create_dir(Path::new(DIR)).expect("a directory");
        for entry in entries.expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name");
            let bytes = std::fs::read(&path).expect("a file");
            fs.write_file(&Path::new(DIR).join(name), &bytes).expect("a file");
        }
        fs
    })
}

/// Changes one place of one file.
fn damage(fs: &MemFs, files: &[PathBuf], [file, how, low, high, with]: [u8; 5]) {
    let chosen = |number: u8| &files[usize::from(number) % files.len()];
    let path = chosen(file);
    let mut bytes = fs.read_file(path).expect("a file");
    let other = || fs.read_file(chosen(with)).expect("a file");
    let at = usize::from(u16::from_le_bytes([low, high]));
    let at = if bytes.is_empty() { 0 } else { at % bytes.len() };
    match how % 6 {
        0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= with),
        1 => bytes.truncate(at),
        2 => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
        3 => bytes.extend(std::iter::repeat_n(with, at)),
        4 => bytes.iter_mut().skip(at).zip(&other()).take(256).for_each(|(byte, of)| *byte = *of),
        _ => bytes = other(),
    }
    fs.write_file(path, &bytes).expect("a file");
}

/// Reads some keys, of which `first` chooses.
fn read_some(db: &Db, first: usize) {
    let Ok(Reply::Array(found)) = db.command(&[b"KEYS", b"*"]) else { return };
    let every = found.len() / KEYS_READ + 1;
    for key in found.iter().skip(first % every).step_by(every) {
        let Reply::Bulk(key) = key else { continue };
        for command in ["GET", "HGETALL", "SMEMBERS", "TTL"] {
            let _ = db.command(&[command.as_bytes(), key]);
        }
        let _ = db.command(&[b"ZRANGE", key, b"0", b"-1"]);
        let _ = db.command(&[b"LRANGE", key, b"0", b"-1"]);
    }
}

/// A store with damage: each five bytes of the input change one place of one file. An input of whole
/// fives damages a store of format 1, any other one of today's format. Opening, reading and checking
/// it may fail, and nothing more. A fuzzer's stores have no background threads, unless an odd byte
/// follows the fives.
pub fn store_directory(data: &[u8]) {
    let (changes, rest) = data.as_chunks::<5>();
    let fs = if rest.is_empty() { store_of_format_1() } else { store_of_today() }.deep_clone();
    let files = fs.paths();
    for change in changes.iter().take(64) {
        damage(&fs, &files, *change);
    }
    let asks = rest.first().is_some_and(|byte| byte % 2 == 1);
    let options = options(u32::from(asks || !cfg!(fuzzing)));
    let clock = Arc::new(ManualClock::at(1_000_000));
    let Ok(db) = Db::open_on(Arc::new(fs), Path::new(DIR), options, clock) else { return };
    let _ = db.check();
    let _ = db.verify(|_, _| std::ops::ControlFlow::Continue(()));
    read_some(&db, data.iter().map(|byte| usize::from(*byte)).sum());
    let _ = db.command(&[b"SET", b"new", b"value"]);
    let _ = db.compact();
    let _ = db.close();
}
