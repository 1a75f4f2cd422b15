//! What loom checks of commits and views. `memtable::models` has the memtables.

use std::sync::Arc;

use loom::thread;

use crate::engine::batch::{Batch, TreeId, decode};
use crate::engine::committer::{Commit, Committer};
use crate::engine::entry::Sequence;
use crate::engine::hash::HashSeed;
use crate::engine::memtable::MemtableSet;
use crate::engine::snapshot::Sequences;
use crate::engine::sstable::CacheFill;
use crate::engine::version::Version;
use crate::engine::view::{PublishedView, View};
use crate::engine::wal::LogPosition;
use crate::sync::Mutex;

pub use crate::engine::memtable::models as memtable;

const TREE: TreeId = TreeId(0);

/// What of a store commits and reads need, with a list instead of the log.
struct Store {
    committer: Committer,
    sequences: Sequences,
    view: PublishedView,
    log: Mutex<Vec<Vec<u8>>>,
}

impl Store {
    fn new() -> Arc<Self> {
        let start = LogPosition::new(1, 0);
        let view = View {
            active: Arc::new(MemtableSet::new(1, 1, start, HashSeed::from_raw(1))),
            immutable: Vec::new(),
            version: Version::empty(1),
            gets: Arc::default(),
        };
        Arc::new(Self {
            committer: Committer::default(),
            sequences: Sequences::starting_after(0),
            view: PublishedView::new(view),
            log: Mutex::new(Vec::new()),
        })
    }

    /// Commits one key, as the engine does it.
    fn put(&self, key: &[u8]) -> Commit {
        let mut batch = Batch::new();
        batch.put(TREE, key, b"value");
        let commit = self.committer.commit(&mut batch, false, |_, batches| {
            let mut sequence = 0;
            for batch in batches.iter_mut() {
                sequence = self.sequences.allocate();
                batch.seal(sequence);
                self.log.lock().push(batch.sealed().to_vec());
            }
            let view = self.view.load();
            for batch in batches.iter() {
                view.active.apply(batch.sealed())?;
            }
            self.committer.note_changes(batches, sequence);
            self.sequences.publish(sequence);
            Ok(Commit { sequence, position: LogPosition::new(1, self.log.lock().len() as u64) })
        });
        assert!(batch.is_empty());
        commit.unwrap()
    }

    /// Freezes the memtables, as a flush does it.
    fn freeze(&self) {
        let _no_commit_runs = self.committer.lead();
        let last = self.sequences.visible();
        self.view.change(|old| old.freeze(last, 1, LogPosition::new(1, 1)));
    }

    /// The keys of the log, in its order. Their sequence numbers count from 1.
    fn logged(&self) -> Vec<Vec<u8>> {
        let log = self.log.lock();
        let mut keys = Vec::new();
        for (payload, expected) in log.iter().zip(1..) {
            let (sequence, operations) = decode(payload).unwrap();
            assert_eq!(sequence, expected, "the log has the order of the sequence numbers");
            keys.extend(operations.map(|operation| operation.unwrap().key.to_vec()));
        }
        keys
    }

    fn finds(&self, view: &View, key: &[u8], at: Sequence) -> bool {
        view.get(TREE, key, at, CacheFill::Skip).unwrap().is_some()
    }
}

/// Whatever the order of three writers, each commit is in the log once, in the order of the sequence
/// numbers, and visible when its writer returns; and nobody waits for ever.
pub fn commit_queue() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let store = Store::new();
        let keys: [&[u8]; 2] = [b"a", b"b"];
        let write = |key: &'static [u8]| {
            let store = Arc::clone(&store);
            move || {
                let commit = store.put(key);
                let (view, sequence) = store.view.read_point(&store.sequences);
                assert!(commit.sequence <= sequence && store.finds(&view, key, sequence));
                assert!(store.committer.last_change(TREE) >= 1);
            }
        };
        let others = keys.map(|key| thread::spawn(write(key)));
        write(b"c")();
        others.into_iter().for_each(|other| other.join().unwrap());
        let mut logged = store.logged();
        logged.sort();
        assert_eq!(logged, [b"a", b"b", b"c"]);
        assert_eq!(store.sequences.visible(), 3);
    });
}

/// A read point names a sequence number. Everything up to it is in the view, also if the memtables
/// are frozen and written to while the reader takes both.
pub fn read_point_beside_a_freeze() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let store = Store::new();
        let writer = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                store.put(b"a");
                store.freeze();
                store.put(b"b");
            })
        };
        let (view, sequence) = store.view.read_point(&store.sequences);
        let keys: [&[u8]; 2] = [b"a", b"b"];
        for (key, written) in keys.into_iter().zip(1..) {
            let found = store.finds(&view, key, sequence);
            assert_eq!(found, written <= sequence, "commit {written} at {sequence}");
        }
        writer.join().unwrap();
    });
}

/// Two changes of the view at once: none is lost.
pub fn changes_of_the_view() {
    loom::model(|| {
        let store = Store::new();
        let other = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.freeze())
        };
        let start = LogPosition::new(1, 2);
        store.view.change(|old| old.freeze(0, 1, start));
        other.join().unwrap();
        assert_eq!(store.view.load().immutable.len(), 2);
    });
}
