//! What a full disk says to a write that frees space and cannot go on all the same: who holds the
//! space, or how much may be deleted at a time. Without threads in the background the answer comes at
//! once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod fault_support;

use fault_support::open_mem;
use lsmkv::engine::{Batch, Engine, MemFs, TreeId, WriteOptions};
use lsmkv::{Error, ErrorKind, Options, Result, SyncMode};

const SEGMENT_BYTES: u64 = 96 << 10;
const TREE: TreeId = TreeId(0);

fn options() -> Options {
    Options {
        sync: SyncMode::Off,
        background_threads: 0,
        write_buffer: 64 << 10,
        table_bytes: 32 << 10,
        block_bytes: 1024,
        memory_budget: 2 << 20,
        log_segment_bytes: SEGMENT_BYTES,
        ..Options::default()
    }
}

/// A key so long that its deletion takes nearly the space of what it deletes.
fn key(n: usize) -> Vec<u8> {
    format!("{:0300}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

/// A store that has filled its disk, and the number of its keys.
struct FullStore {
    fs: MemFs,
    engine: Engine,
    keys: usize,
}

impl FullStore {
    fn new(options: Options) -> Self {
        let fs = MemFs::with_capacity(3 << 20);
        let engine = open_mem(&fs, options).unwrap();
        let (mut keys, mut refused) = (0, 0);
        while refused < 3 {
            let mut batch = Batch::new();
            batch.put(TREE, &key(keys), b"value");
            match engine.write(&mut batch, WriteOptions::default()) {
                Ok(_) => (keys, refused) = (keys + 1, 0),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
                    refused += 1;
                }
            }
        }
        Self { fs, engine, keys }
    }

    fn delete(&self, keys: std::ops::Range<usize>) -> Result<()> {
        let mut batch = Batch::new();
        keys.for_each(|n| batch.delete(TREE, &key(n)));
        let frees = WriteOptions { frees_space: true, ..WriteOptions::default() };
        self.engine.write(&mut batch, frees).map(|_| ())
    }

    /// Somebody else takes what is free.
    fn take_free_space(&self) {
        self.fs.set_capacity(self.fs.bytes_in_use());
    }

    /// Deletes one key after the other until that is refused, and returns the key and the refusal.
    /// Meanwhile somebody else takes what comes back.
    fn refused_delete(&self) -> (usize, Error) {
        for n in 0..self.keys {
            self.take_free_space();
            if let Err(error) = self.delete(n..n + 1) {
                assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
                return (n, error);
            }
        }
        panic!("all {} deletes went through", self.keys)
    }

    /// With space again, what was refused goes through.
    fn goes_on(&self, refused: usize) {
        self.fs.set_capacity(u64::MAX);
        self.delete(refused..self.keys.min(refused + 100)).unwrap();
        assert_eq!(self.engine.reader().unwrap().get(TREE, &key(refused)).unwrap(), None);
    }
}

fn assert_says(error: &Error, text: &str) {
    assert!(error.message().contains(text), "{:?} says no {text:?}", error.message());
}

#[test]
fn a_refused_delete_names_the_snapshots_that_hold_the_space() {
    for count in [1, 2] {
        let full = FullStore::new(options());
        let held: Vec<_> = (0..count).map(|_| full.engine.snapshot().unwrap()).collect();
        let (refused, error) = full.refused_delete();
        assert_says(&error, &format!("{count} snapshots, iterators or transactions keep what was"));
        assert_says(&error, "end them");
        drop(held);
        full.goes_on(refused);
    }
}

/// Beside a thread that failed, and looked again five times a second, a delete waited for ever.
#[test]
fn a_delete_beside_threads_is_refused_in_time() {
    let full = FullStore::new(Options { background_threads: 1, ..options() });
    let held = full.engine.snapshot().unwrap();
    let mut began = std::time::Instant::now();
    let refused = (0..full.keys).find_map(|n| {
        full.take_free_space();
        began = std::time::Instant::now();
        Some((n, full.delete(n..n + 1).err()?))
    });
    let (refused, error) = refused.expect("a snapshot holds the space");
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert_says(&error, "1 snapshots, iterators or transactions keep what was");
    drop(held);
    full.goes_on(refused);
}

#[test]
fn a_refused_delete_says_if_nobody_holds_the_space() {
    let full = FullStore::new(options());
    let (refused, error) = full.refused_delete();
    assert_says(&error, "no space is left to free");
    full.goes_on(refused);
}

#[test]
fn a_delete_of_too_much_at_once_is_told_the_limit() {
    let full = FullStore::new(options());
    full.take_free_space();
    let error = full.delete(0..400).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    let limit = SEGMENT_BYTES - 256;
    assert_says(&error, &format!("a command may write {limit} bytes to the log at once"));
    assert_says(&error, "delete less at a time");
    let is_set = |n| full.engine.reader().unwrap().get(TREE, &key(n)).unwrap().is_some();
    assert!((0..400).all(is_set), "a refused delete has deleted");
    full.delete(0..200).unwrap();
    full.delete(200..400).unwrap();
    assert!(!(0..400).any(is_set), "less at a time");
}

#[test]
fn a_store_without_a_reserve_says_that_it_has_none() {
    let full = FullStore::new(Options { disk_reserve: 0, ..options() });
    let (refused, error) = full.refused_delete();
    assert_says(&error, "the store has no disk_reserve");
    full.goes_on(refused);
}
