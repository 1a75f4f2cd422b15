//! Random options and operations, small when they fail.

use lsmkv::engine::CacheFill;
use lsmkv::io::mem::CrashMode;
use lsmkv::{Compression, Options, SyncMode};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::walk::{Bounds, Step};
use super::{Blob, Write};

/// What a case does to a store, one after the other.
#[derive(Clone, Debug)]
pub enum Op {
    /// One commit; `durable` waits for the device whatever the store's mode.
    Commit {
        writes: Vec<Write>,
        durable: bool,
    },
    /// Many small commits of neighbouring keys, to fill levels.
    Fill {
        tree: usize,
        first: u32,
        count: u32,
        step: u32,
        value: Blob,
    },
    /// Deletes what a fill wrote.
    Clear {
        tree: usize,
        first: u32,
        count: u32,
        step: u32,
    },
    Get {
        tree: usize,
        key: Blob,
    },
    MultiGet {
        tree: usize,
        keys: Vec<Blob>,
    },
    Walk {
        tree: usize,
        bounds: Bounds,
        steps: Vec<Step>,
        cache_fill: CacheFill,
    },
    OpenSnapshot,
    /// Reads everything of the snapshot `which` and walks it.
    ReadSnapshot {
        which: usize,
        tree: usize,
        bounds: Bounds,
        steps: Vec<Step>,
    },
    DropSnapshot {
        which: usize,
    },
    /// An iterator kept open while the store goes on.
    OpenWalk {
        tree: usize,
        bounds: Bounds,
    },
    ResumeWalk {
        which: usize,
        steps: Vec<Step>,
    },
    DropWalk {
        which: usize,
    },
    Check,
    Sync,
    Flush,
    Compact,
    WaitIdle,
    /// Opens a copy of the files, read-only.
    Peek,
    /// Close and open again.
    Reopen,
    /// Drop without close, and open again.
    Abandon,
    /// The file system as a crash leaves it now, and open that.
    Crash {
        mode: CrashMode,
        seed: u64,
    },
}

/// The key a fill writes `index`-th.
pub fn fill_key(index: u32) -> Vec<u8> {
    format!("fill{index:05}").into_bytes()
}

/// Few keys, so that overwrites are frequent: all short ones of a small alphabet (the empty one,
/// prefixes of each other), some with a long common prefix, some of the fills.
pub fn key() -> impl Strategy<Value = Blob> {
    let short = vec(select(&[0u8, b'a', b'b', 0xff][..]), 0..4);
    let long = vec(select(&[b'x', b'y'][..]), 0..3).prop_map(|tail| {
        [&b"a prefix shared by several keys, longer than a block of 64 bytes:"[..], &tail].concat()
    });
    prop_oneof![6 => short, 2 => long, 1 => (0u32..300).prop_map(fill_key)].prop_map(Blob)
}

/// Mostly a few bytes; lengths around the one from which values are pinned; several KiB.
pub fn value() -> impl Strategy<Value = Blob> {
    let len = prop_oneof![
        8 => 0usize..40,
        1 => 1020usize..1030,
        1 => 2000usize..7000,
    ];
    (any::<u8>(), len).prop_map(|(byte, len)| Blob(vec![byte; len]))
}

fn write() -> impl Strategy<Value = Write> {
    (0usize..3, key(), option::weighted(0.7, value())).prop_map(|(tree, key, value)| Write {
        tree,
        key,
        value,
    })
}

fn bounds() -> impl Strategy<Value = Bounds> {
    (option::weighted(0.3, key()), option::weighted(0.3, key()))
        .prop_map(|(lower, upper)| Bounds { lower, upper })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::First),
        1 => Just(Step::Last),
        2 => key().prop_map(Step::Seek),
        2 => key().prop_map(Step::SeekBefore),
        6 => Just(Step::Next),
        6 => Just(Step::Prev),
    ];
    vec(step, 1..16)
}

fn fill() -> impl Strategy<Value = (usize, u32, u32, u32)> {
    (0usize..3, 0u32..100, 20u32..150, 1u32..4)
}

fn writing() -> BoxedStrategy<Op> {
    let value = (any::<u8>(), 20usize..200).prop_map(|(byte, len)| Blob(vec![byte; len]));
    prop_oneof![
        8 => (vec(write(), 1..2), prop::bool::weighted(0.1))
            .prop_map(|(writes, durable)| Op::Commit { writes, durable }),
        4 => (vec(write(), 0..12), prop::bool::weighted(0.1))
            .prop_map(|(writes, durable)| Op::Commit { writes, durable }),
        2 => (fill(), value).prop_map(|((tree, first, count, step), value)| {
            Op::Fill { tree, first, count, step, value }
        }),
        1 => fill().prop_map(|(tree, first, count, step)| Op::Clear { tree, first, count, step }),
    ]
    .boxed()
}

fn reading() -> BoxedStrategy<Op> {
    let walk = (0usize..3, bounds(), steps(), any::<bool>());
    let read_snapshot = (0usize..4, 0usize..3, bounds(), steps());
    prop_oneof![
           2 => (0usize..3, key()).prop_map(|(tree, key)| Op::Get { tree, key }),
           1 => (0usize..3, vec(key(), 0..8)).prop_map(|(tree, keys)| Op::MultiGet { tree, keys }),
           4 => walk.prop_map(|(tree, bounds, steps, skip)| Op::Walk {
    tree, bounds, steps, cache_fill: CacheFill::skip_if(skip) }),
           2 => Just(Op::OpenSnapshot),
           2 => read_snapshot.prop_map(|(which, tree, bounds, steps)| {
               Op::ReadSnapshot { which, tree, bounds, steps }
           }),
           1 => (0usize..4).prop_map(|which| Op::DropSnapshot { which }),
           2 => (0usize..3, bounds()).prop_map(|(tree, bounds)| Op::OpenWalk { tree, bounds }),
           2 => (0usize..4, steps()).prop_map(|(which, steps)| Op::ResumeWalk { which, steps }),
           1 => (0usize..4).prop_map(|which| Op::DropWalk { which }),
           1 => Just(Op::Check),
       ]
    .boxed()
}

fn upheaval() -> BoxedStrategy<Op> {
    let crash = (select(&CrashMode::ALL[..]), any::<u64>());
    prop_oneof![
        2 => Just(Op::Sync),
        4 => Just(Op::Flush),
        2 => Just(Op::Compact),
        2 => Just(Op::WaitIdle),
        1 => Just(Op::Peek),
        1 => Just(Op::Reopen),
        1 => Just(Op::Abandon),
        2 => crash.prop_map(|(mode, seed)| Op::Crash { mode, seed }),
    ]
    .boxed()
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(prop_oneof![5 => writing(), 4 => reading(), 2 => upheaval()], 1..120)
}

/// Options that make everything happen early and often.
pub fn options(background_threads: u32) -> impl Strategy<Value = Options> {
    let sizes = (
        select(&[0u64, 4 << 10, 8 << 10, 16 << 10, 64 << 10][..]),
        select(&[1u64 << 10, 4 << 10, 64 << 10][..]),
        select(&[64u32, 200, 1024][..]),
        select(&[4u64 << 10, 16 << 10, 64 << 10][..]),
    );
    let memory =
        (select(&[0u64, 64 << 10, 1 << 20][..]), select(&[0u64, 1, 4 << 10, 64 << 10][..]));
    let rest = (
        2u32..5,
        select(&[0u32, 10][..]),
        select(&[Compression::None, Compression::Lz4][..]),
        select(&[SyncMode::Always, SyncMode::Interval, SyncMode::Off][..]),
        select(&[1u64, 1000][..]),
    );
    (sizes, memory, rest).prop_map(move |(sizes, memory, rest)| Options {
        write_buffer: sizes.0,
        table_bytes: sizes.1,
        block_bytes: sizes.2,
        log_segment_bytes: sizes.3,
        memory_budget: memory.0,
        block_cache: memory.1,
        level_ratio: rest.0,
        bloom_bits: rest.1,
        compression: rest.2,
        sync: rest.3,
        sync_interval_ms: rest.4,
        background_threads,
        ..Options::default()
    })
}
