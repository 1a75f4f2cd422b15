//! Targets over what the library exports. Each takes any bytes, and must neither panic nor allocate
//! more than a multiple of them.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use lsmkv::encoding::header::Header;
use lsmkv::encoding::keys::{
    after_prefix, prefix, prefix_len, row_key, split_meta_key, split_row_key,
};
use lsmkv::encoding::meta::{Body, is_packed, with_expiry};
use lsmkv::encoding::packed::Packed;
use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::io::fs::FileSystem as _;
use lsmkv::{Db, Options, Reply, SyncMode};

/// A record of the meta tree, and the members that are stored in it.
pub fn packed_record(data: &[u8]) {
    if let Ok(header) = Header::decode(data) {
        let _ = header.expired(1);
        let _ = Body::decode(header.kind, data).map(|body| (body.size(), body.version()));
        if let Some(record) = with_expiry(data, 77) {
            assert_eq!(Header::decode(&record).map(|header| header.expire_ms).ok(), Some(77));
        }
    }
    let _ = is_packed(data);
    let record = Bytes::copy_from_slice(data);
    let Ok(packed) = Packed::decode(record) else { return };
    let sound = packed.validate().is_ok();
    let mut entries = packed.entries();
    let mut members = Vec::new();
    while let Ok(Some(entry)) = entries.advance() {
        members.push(packed.bytes()[entry.member].to_vec());
        let _ = &packed.bytes()[entry.value];
    }
    let mut ascending = packed.entries();
    while let Ok(Some(_)) = ascending.next_ascending() {}
    let index = packed.index();
    for member in members.iter().take(64).map(Vec::as_slice).chain([&b""[..], b"other"]) {
        let found = packed.get(member).map(|value| value.map(<[u8]>::to_vec));
        if sound {
            let by_index = index.as_ref().unwrap().get(member).map(<[u8]>::to_vec);
            assert_eq!(found.unwrap(), by_index, "both lookups agree");
        }
        let mut changed = packed.clone();
        if changed.put(member, b"value", usize::from(u16::MAX)) == Ok(true) && sound {
            assert_eq!(changed.get(member).unwrap(), Some(&b"value"[..]), "what was put is there");
            changed.validate().unwrap();
        }
        if changed.remove(member).is_ok() && sound {
            assert_eq!(changed.get(member).unwrap(), None, "what was removed is gone");
        }
    }
}

/// Keys of the three trees.
pub fn keys(data: &[u8]) {
    let _ = split_meta_key(data);
    let length = prefix_len(data);
    let row = split_row_key(data);
    if let Some(row) = &row {
        let head = prefix(row.space, &row.user_key, row.version);
        assert_eq!(length, Some(head.len()), "both find the sub key");
        assert_eq!(row_key(&head, row.sub_key)[..], *data, "a key reads back");
        if let Some(after) = after_prefix(&head) {
            assert!(after[..] > *data, "the end of a prefix is after its rows");
        }
    }
}

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

/// A store with the usual options, or with all that is small as small as it can be.
fn store(small: bool) -> Db {
    let mut options = Options {
        sync: SyncMode::Off,
        max_key_bytes: 4096,
        max_value_bytes: 64 << 10,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    };
    if small {
        options.write_buffer = 64 << 10;
        options.log_segment_bytes = 16 << 10;
        options.table_bytes = 16 << 10;
        options.memory_budget = 4 << 20;
        options.packed_max_members = 0;
    }
    let fs = Arc::new(MemFs::untracked());
    let clock = Arc::new(ManualClock::at(1_000_000));
    Db::open_on(fs, Path::new("/db"), options, clock).expect("a new store")
}

/// A fuzzer uses a pair of stores for so many inputs, and empties it after each.
const INPUTS_OF_A_PAIR: u32 = if cfg!(fuzzing) { 500 } else { 1 };

/// Commands by name, one per line, in two stores that differ in every size: all replies are equal.
/// The line `~` flushes the second store, `!` compacts it.
pub fn commands(data: &[u8]) {
    thread_local! {
        static PAIR: RefCell<Option<(u32, [Db; 2])>> = const { RefCell::new(None) };
    }
    let kept = PAIR.take().filter(|(inputs, _)| *inputs < INPUTS_OF_A_PAIR);
    let (inputs, pair) = kept.unwrap_or_else(|| (0, [store(false), store(true)]));
    commands_in(&pair, data);
    for db in &pair {
        assert_eq!(db.check().expect("a check"), [""; 0]);
    }
    if inputs + 1 == INPUTS_OF_A_PAIR {
        pair.into_iter().for_each(|db| db.close().expect("a close"));
        return;
    }
    for db in &pair {
        db.command(&[b"FLUSHALL"]).expect("an empty store");
    }
    PAIR.set(Some((inputs + 1, pair)));
}

fn commands_in([usual, small]: &[Db; 2], data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n').take(200) {
        match line {
            b"" => continue,
            b"~" => {
                small.flush().expect("a flush");
                continue;
            }
            b"!" => {
                small.compact().expect("a compaction");
                continue;
            }
            _ => {}
        }
        let words = words(line);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let name = String::from_utf8_lossy(words[0]).to_uppercase();
        if SEPARATE.contains(&name.as_str()) {
            continue;
        }
        let replies = [usual.command(&words), small.command(&words)].map(|reply| match reply {
            Ok(reply) => reply,
            Err(error) => Reply::Error(error.to_string()),
        });
        assert_eq!(replies[0], replies[1], "{}", String::from_utf8_lossy(line));
    }
}

fn damaged_store_options() -> Options {
    Options {
        background_threads: 1,
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
fn files_of_today() -> &'static [(String, Vec<u8>)] {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let (fs, dir) = (MemFs::untracked(), Path::new("/db"));
        let options = Options { packed_max_members: 4, ..damaged_store_options() };
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
        let read = |path: std::path::PathBuf| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            fs.read_file(&path).ok().map(|bytes| (name, bytes))
        };
        let mut files: Vec<_> = fs.paths().into_iter().filter_map(read).collect();
        files.sort();
        drop(db);
        files
    })
}

/// The files of a store of format 1, whose process was killed.
fn files_of_format_1() -> &'static [(String, Vec<u8>)] {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let below = |root: &Path| root.join("tests/testdata/stores/format-1-killed");
        let dir = [root, &root.join("../..")].map(below).into_iter().find(|dir| dir.exists());
        let entries = std::fs::read_dir(dir.expect("the store of a killed process"));
        let mut files: Vec<_> = entries
            .expect("a directory")
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, std::fs::read(path).expect("a file"))
            })
            .collect();
        files.sort();
        files
    })
}

/// A store with damage: each five bytes of the input change one place of one file. An input of whole
/// fives damages a store of format 1, any other one of today's format. Opening, reading and checking
/// it may fail, and nothing more.
pub fn store_directory(data: &[u8]) {
    let fs = MemFs::untracked();
    let dir = Path::new("/db");
    fs.create_dir(dir).expect("a directory");
    let (changes, rest) = data.as_chunks::<5>();
    let files = if rest.is_empty() { files_of_format_1() } else { files_of_today() };
    let mut files = files.to_vec();
    for change in changes.iter().take(64) {
        let [file, how, low, high, with] = *change;
        let count = files.len();
        let other = files[usize::from(with) % count].1.clone();
        let (_, bytes) = &mut files[usize::from(file) % count];
        let at = usize::from(u16::from_le_bytes([low, high]));
        let at = if bytes.is_empty() { 0 } else { at % bytes.len() };
        match how % 6 {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= with),
            1 => bytes.truncate(at),
            2 => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
            3 => bytes.extend(std::iter::repeat_n(with, at)),
            4 => bytes.iter_mut().skip(at).zip(&other).take(256).for_each(|(byte, of)| *byte = *of),
            _ => *bytes = other,
        }
    }
    for (name, bytes) in &files {
        fs.write_file(&dir.join(name), bytes).expect("a file");
    }
    let clock = Arc::new(ManualClock::at(1_000_000));
    let options = damaged_store_options();
    let Ok(db) = Db::open_on(Arc::new(fs), dir, options, clock) else { return };
    let _ = db.check();
    let _ = db.verify(|_, _| std::ops::ControlFlow::Continue(()));
    if let Ok(Reply::Array(found)) = db.command(&[b"KEYS", b"*"]) {
        // The store has a few hundred keys, and reading all of them takes most of the time.
        let every = found.len() / 64 + 1;
        for key in found.iter().step_by(every) {
            let Reply::Bulk(key) = key else { continue };
            for command in ["GET", "HGETALL", "SMEMBERS", "TTL"] {
                let _ = db.command(&[command.as_bytes(), key]);
            }
            let _ = db.command(&[b"ZRANGE", key, b"0", b"-1"]);
            let _ = db.command(&[b"LRANGE", key, b"0", b"-1"]);
        }
    }
    let _ = db.command(&[b"SET", b"new", b"value"]);
    let _ = db.compact();
    let _ = db.close();
}
